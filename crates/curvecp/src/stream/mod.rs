//! The two byte streams of a connection: bytes that are sent and not yet acknowledged, and bytes that have arrived
//! and are not yet read.

mod ranges;
mod receive;
mod ring;
mod send;

pub(crate) use ranges::Ranges;
pub(crate) use receive::{Arrival, FIRST_WINDOW, ReceiveStream};
pub(crate) use send::{SendStream, Unit};

use std::fmt::Debug;

/// The outcome of reading from a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Read {
    /// The number of bytes read, at least one.
    Bytes(usize),
    /// Nothing has arrived that was not read before.
    Blocked,
    /// The peer ended its stream in success and everything was read.
    Finished,
    /// The peer ended its stream in failure, or the connection failed; everything that arrived in order was read.
    Failed,
}
