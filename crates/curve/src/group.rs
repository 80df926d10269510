//! A server on several threads: an endpoint for each, all at one address.
//!
//! The kernel gives all packets of one client address to one socket, so a connection lives where its first packets arrive.
//! A client that moves may arrive at another thread. Its packets carry its short-term key, by which that thread finds the
//! connection's thread and hands them over.

use std::net::SocketAddr;
use std::num::NonZero;
use std::sync::Arc;
use std::thread;

use curvecp::{LongTermNonces, ServerConfig};
use tokio::sync::Notify;

use crate::member::{Group, Member};
use crate::socket::{Socket, bind_alone};
use crate::{CurveError, Endpoint, Stream};

/// A server on several threads, each with a socket at the same address.
///
/// The limits of a configuration, such as that of connections, hold for each thread.
#[derive(Debug)]
pub struct ServerGroup {
    endpoints: Vec<Endpoint>,
    accepted: Arc<Notify>,
}

impl ServerGroup {
    /// Binds the sockets and starts the threads; port 0 takes a free one, and a port of another server is refused. `config` and
    /// `nonces` are called for each thread: the key must be the same, the nonces must not.
    ///
    /// A thread ends when the group is dropped and its last connection is over.
    ///
    /// # Errors
    /// [`CurveError::Bind`], also where a thread cannot be started, and the errors of `nonces`.
    pub fn bind<N: LongTermNonces + Send + 'static>(
        address: SocketAddr,
        threads: NonZero<usize>,
        mut config: impl FnMut() -> ServerConfig,
        mut nonces: impl FnMut() -> Result<N, CurveError>,
    ) -> Result<Self, CurveError> {
        // Sockets that share an address would share it with another server, too, unnoticed: this one is refused then.
        let address = bind_alone(address)
            .and_then(|socket| socket.local_addr())
            .map_err(|source| CurveError::Bind { address, source })?;
        let group = Arc::new(Group::new(threads.get()));
        let mut endpoints = Vec::with_capacity(threads.get());
        for own in 0..threads.get() {
            let failed = |source| CurveError::Bind { address, source };
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
            let within = runtime.enter();
            let socket = Socket::bind_shared(address).map_err(failed)?;
            let member = Member::new(group.clone(), own);
            let (endpoint, driver) =
                Endpoint::new(socket, Some(config()), Box::new(nonces()?), Some(member)).map_err(failed)?;
            drop(within);
            thread::Builder::new()
                .name(format!("curve-{own}"))
                .spawn(move || runtime.block_on(driver))
                .map_err(failed)?;
            endpoints.push(endpoint);
        }
        Ok(Self { endpoints, accepted: group.accepted() })
    }

    /// The address of all sockets.
    pub fn address(&self) -> SocketAddr {
        self.endpoints[0].address()
    }

    /// Waits for a client, at any thread. Can be cancelled without losing one.
    ///
    /// # Errors
    /// [`CurveError::EndpointClosed`], once any of the threads has ended.
    pub async fn accept(&self) -> Result<Stream, CurveError> {
        loop {
            for endpoint in &self.endpoints {
                if let Some(stream) = endpoint.take_incoming()? {
                    return Ok(stream);
                }
            }
            self.accepted.notified().await;
        }
    }

    /// Waits until all connections are over.
    pub async fn idle(&self) {
        for endpoint in &self.endpoints {
            endpoint.idle().await;
        }
    }
}
