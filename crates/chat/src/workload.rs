//! The requests of a population of users: registrations, log-ins, queries for present users, and calls. The i-th is a pure
//! function of (seed, i).
//!
//! Before the first connection, the workload registers the accounts that log-ins and calls need. A registration and a log-in are
//! two requests to the server each, on one connection; the server's stamps of an operation are those of its first request.

mod entry;
mod line;
mod population;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use kendall_load::{Connect, Connection, LocalFuture, Request, RequestClass, Route, Workload};
use tokio::sync::OnceCell;

use crate::client::{Client, ClientError};
use line::Line;
use population::Population;

pub use population::{Mix, Operation};

/// The workload of a directory server.
#[derive(Debug)]
pub struct ChatWorkload {
    population: Arc<Population>,
    /// Whether the accounts are there that must be.
    prepared: OnceCell<()>,
    /// How many connections there were.
    lines: AtomicU64,
}

impl ChatWorkload {
    /// The requests of one seed, for one server.
    pub fn new(server: SocketAddr, seed: u64, mix: Mix) -> Self {
        let population = Arc::new(Population::new(server, seed, mix));
        Self { population, prepared: OnceCell::new(), lines: AtomicU64::new(0) }
    }

    /// Registers the accounts that are to be there from the beginning.
    async fn prepare(&self) -> Result<(), ClientError> {
        let population = &*self.population;
        if population.shares.iter().all(|(operation, _)| *operation == Operation::Register) {
            return Ok(());
        }
        let mut client = Client::connect(population.server, &population.mix.security).await?;
        for number in 0..population.mix.accounts {
            population.ensure(&mut client, &population.known_name(number.into())).await?;
        }
        Ok(())
    }
}

impl Workload for ChatWorkload {
    fn request(&self, index: u64) -> Request {
        Request::new(self.population.class(index) as u32, Bytes::new())
    }

    fn classes(&self) -> Vec<RequestClass> {
        let shares = &self.population.shares;
        let class = |(operation, share): &(Operation, f64)| RequestClass {
            share: (shares.len() > 1).then_some(*share),
            ..RequestClass::new(operation.name(), 1.0)
        };
        shares.iter().map(class).collect()
    }

    fn route(&self) -> Route<'_> {
        Route::Tasks(self)
    }
}

impl Connect for ChatWorkload {
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async {
            self.prepared.get_or_try_init(|| self.prepare()).await.map_err(failed)?;
            let population = Arc::clone(&self.population);
            let client =
                Client::connect(population.server, &population.mix.security).await.map_err(failed)?;
            let number = self.lines.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(Line::new(population, client, number)) as Box<dyn Connection>)
        })
    }
}

fn failed(error: ClientError) -> io::Error {
    match error {
        ClientError::Connect { source, .. } | ClientError::Connection(source) => source,
        other => io::Error::other(other),
    }
}
