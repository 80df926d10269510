//! Bodies of requests that do not fit into one buffer: they stream into a [`Sink`] of the system while the work waits and
//! runs.

use std::fmt::Debug;

use crate::reply::{BodyFuture, Reader, Then};

/// The destination of the body of one request. `A` is the system's [`Answer`](crate::Handler::Answer).
///
/// If it is dropped without [`finish`](Self::finish), the request failed: its client disconnected or sent too little, it
/// was rejected, its body was no longer [wanted](Self::wanted), or the sink itself failed.
pub trait Sink<A>: Debug + Send + 'static {
    /// The length of the body, as the request announced.
    fn length(&self) -> u64;

    /// Space for the next bytes, at least one. The runtime only calls this while bytes are missing, once some can be read,
    /// and writes no more than the missing ones. [`filled`](Self::filled) follows without a wait for the client, so a sink
    /// need not hold its space between the calls. The call may wait, and the client waits as long.
    ///
    /// # Errors
    /// Fails if there is no space for the body. The request is then rejected.
    fn buffer(&mut self) -> BodyFuture<'_, &mut [u8]>;

    /// Records that the given number of bytes, possibly 0, was written to the beginning of the space.
    ///
    /// # Errors
    /// As [`buffer`](Self::buffer).
    fn filled(&mut self, bytes: usize) -> BodyFuture<'_, ()>;

    /// Records that the client sent less than it announced, or too little for too long.
    fn truncated(&mut self) {}

    /// The test of whether the body is still wanted once the work has an answer; by default it always is. If not, the
    /// answer is sent at once, without this sink, and the rest of the body is read and discarded.
    fn wanted(&self) -> fn(&A) -> bool {
        |_| true
    }

    /// Makes the reply for this client from its complete body and the answer of the work, and decides the fate of its
    /// connection. All requests of a flight get the same answer, but each has its own body.
    fn finish(self: Box<Self>, answer: A) -> (Box<dyn Reader>, Then);
}
