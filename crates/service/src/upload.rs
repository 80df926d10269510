//! Bodies of requests that do not fit into one buffer: they stream into a [`Sink`] of the system's while the work waits
//! and is done.

use std::fmt::Debug;

use crate::reply::{BodyFuture, Reader, Then};

/// Where the body of one request goes. `A` is the system's [`Answer`](crate::Handler::Answer).
///
/// Dropped without [`finish`](Self::finish), the request came to nothing: its client went away or sent too little, it
/// was refused, its body was no longer [wanted](Self::wanted), or the sink itself failed.
pub trait Sink<A>: Debug + Send + 'static {
    /// How many bytes the body has, as the request announced.
    fn length(&self) -> u64;

    /// Space for the next bytes, at least one. The runtime asks only while bytes are to come, and puts no more of them
    /// there. May take its time, and the client waits as long.
    ///
    /// # Errors
    /// Fails where the body can go nowhere. The request is then refused.
    fn room(&mut self) -> BodyFuture<'_, &mut [u8]>;

    /// The given number of bytes was put at the beginning of the space.
    ///
    /// # Errors
    /// As [`room`](Self::room).
    fn filled(&mut self, bytes: usize) -> BodyFuture<'_, ()>;

    /// The client sent less than it announced, or too little for too long.
    fn truncated(&mut self) {}

    /// The test of whether the body is still wanted once the work came to an answer; by default it always is. If not, the
    /// answer is sent at once, without this sink, and what the client still sends is read and dropped.
    fn wanted(&self) -> fn(&A) -> bool {
        |_| true
    }

    /// The body is complete and the work came to this answer: makes of both what this client is sent, and says what
    /// becomes of its connection. All requests of a flight get the same answer, but each has its own body.
    fn finish(self: Box<Self>, answer: A) -> (Box<dyn Reader>, Then);
}
