//! What to send and how: the one trait to write for a system to be loaded.

use std::future::Future;
use std::io;
use std::pin::Pin;

use kendall_record::Outcome;
use serde::{Deserialize, Serialize};

/// A future that stays on the generator's thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// One request, as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its class, an index into [`Workload::classes`].
    pub class: u32,
    /// What is sent.
    pub bytes: Vec<u8>,
}

/// A class of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestClass {
    /// What it is called.
    pub name: String,
    /// Its priority: what a second of its delay costs, beside that of the other classes.
    pub weight: f64,
}

/// The requests of a client, and the way to a server that answers them. The one trait to write for a new system.
pub trait Workload: Send + Sync {
    /// The request with this number: a pure function of the workload's seed and the number, so that any request
    /// can be made again alone.
    fn request(&self, index: u64) -> Request;

    /// The classes; one for a workload without classes.
    fn classes(&self) -> Vec<RequestClass>;

    /// Opens a connection. Called within a tokio runtime of one thread.
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>>;
}

/// A connection that carries one request at a time.
pub trait Connection {
    /// The client's port, by which a server's stamps are matched.
    fn port(&self) -> u16;

    /// Sends a request and waits for its whole answer. The stamps are set as things happen, so that they are
    /// there even if the caller gives up and drops the future.
    fn exchange<'a>(
        &'a mut self,
        index: u64,
        request: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange>;
}

/// What happened on a connection, by [`kendall_record::clock::now_ns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Just before the first byte was handed to the kernel.
    pub sent: Option<i64>,
    /// When the first byte of the answer had been read.
    pub first_byte: Option<i64>,
    /// When the answer was complete, or the exchange failed.
    pub completed: Option<i64>,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// [`Outcome::Answered`], [`Outcome::Wrong`] or [`Outcome::Refused`].
    pub outcome: Outcome,
    /// Whether the connection can carry another request.
    pub reuse: Reuse,
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It can.
    Keep,
    /// It is spent.
    Close,
}
