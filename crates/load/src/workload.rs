//! The requests to send, and their route: the only trait to implement for a system.

use std::net::SocketAddr;

use crate::connection::Connect;
use crate::dialog::{ConnectionKind, Dialogs, Wire};
use crate::request::{Request, RequestClass};
use crate::session::Sessions;

/// The requests of a client, and the route to a server that answers them. The only trait to implement for a new
/// system.
pub trait Workload: Send + Sync {
    /// The request with this number: a pure function of the workload's seed and the number, so that any request
    /// can be recreated alone.
    fn request(&self, index: u64) -> Request;

    /// The classes; one for a workload without classes.
    fn classes(&self) -> Vec<RequestClass>;

    /// The route of requests to the server and of answers back.
    fn route(&self) -> Route<'_>;
}

/// The route of requests to the server and of answers back.
#[derive(Clone)]
pub enum Route<'a> {
    /// The workload is bytes over sockets of the generator; a [`Dialog`](crate::Dialog) is their protocol. The
    /// most precise route, and by far the cheapest.
    Bytes(Wire, &'a dyn Dialogs),
    /// Over the sessions of users, on sockets of the generator.
    Sessions(SocketAddr, ConnectionKind, &'a dyn Sessions),
    /// Over connections that bring their own futures, for protocols whose libraries need a runtime.
    Tasks(&'a dyn Connect),
}
