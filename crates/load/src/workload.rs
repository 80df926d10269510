//! What to send, and the route it takes: the one trait to write for a system to be loaded.

use std::net::SocketAddr;

use crate::connection::Connect;
use crate::dialog::{ConnectionKind, Dialogs, Wire};
use crate::request::{Request, RequestClass};
use crate::session::Sessions;

/// The requests of a client, and the way to a server that answers them. The one trait to write for a new system.
pub trait Workload: Send + Sync {
    /// The request with this number: a pure function of the workload's seed and the number, so that any request
    /// can be made again alone.
    fn request(&self, index: u64) -> Request;

    /// The classes; one for a workload without classes.
    fn classes(&self) -> Vec<RequestClass>;

    /// How requests get to the server and answers back.
    fn route(&self) -> Route<'_>;
}

/// How requests get to the server and answers back.
#[derive(Clone)]
pub enum Route<'a> {
    /// As bytes over sockets that the generator owns; what they mean, a [`Dialog`](crate::Dialog) says. The most
    /// precise way, and by far the cheapest.
    Bytes(Wire, &'a dyn Dialogs),
    /// Over the sessions of users, on sockets that the generator owns.
    Sessions(SocketAddr, ConnectionKind, &'a dyn Sessions),
    /// Over connections that bring their own futures, for protocols whose libraries want a runtime.
    Tasks(&'a dyn Connect),
}
