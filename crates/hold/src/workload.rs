//! The requests of a client, which consist of their nonces. The i-th is a pure function of (seed, i).

use std::net::SocketAddr;

use bytes::Bytes;
use kendall_load::{ConnectionKind, Dialog, Dialogs, Request, RequestClass, Reuse, Route, Wire, Workload};
use kendall_stats::random::{Purpose, derive};

use crate::client::Client;
use crate::protocol::encode_request;

/// The workload of a synthetic server.
#[derive(Clone, Debug)]
pub struct HoldWorkload {
    server: SocketAddr,
    seed: u64,
}

impl HoldWorkload {
    /// The requests of one seed, for one server.
    pub fn new(server: SocketAddr, seed: u64) -> Self {
        Self { server, seed }
    }

    /// The nonce of the i-th request; never 0.
    pub fn nonce(&self, index: u64) -> u64 {
        derive(self.seed, Purpose::Request, index).max(1)
    }
}

impl Workload for HoldWorkload {
    fn request(&self, index: u64) -> Request {
        Request::new(0, Bytes::copy_from_slice(&encode_request(self.nonce(index))))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        let wire = Wire { to: self.server, kind: ConnectionKind::TCP, reuse: Reuse::Keep };
        Route::Bytes(wire, self)
    }
}

impl Dialogs for HoldWorkload {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Client::default())
    }
}
