//! What to send, and which of the two ways it goes: the one trait to write for a system to be loaded.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::connection::Connect;
use crate::dialog::{Dialogs, Wire};

/// One request, as it goes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its class, an index into [`Workload::classes`].
    pub class: u32,
    /// What is sent. Requests that are alike share their bytes.
    pub bytes: Bytes,
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

    /// How requests get to the server and answers back.
    fn way(&self) -> Way<'_>;
}

/// How requests get to the server and answers back.
#[derive(Clone)]
pub enum Way<'a> {
    /// As bytes over sockets that the generator owns; what they mean, a [`Dialog`](crate::Dialog) says. The most
    /// precise way, and by far the cheapest.
    Bytes(Wire, &'a dyn Dialogs),
    /// Over connections that bring their own futures, for protocols whose libraries want a runtime.
    Tasks(&'a dyn Connect),
}

/// Whether a connection can carry another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It can.
    Keep,
    /// It is spent.
    Close,
}
