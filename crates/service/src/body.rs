//! Bodies that do not fit into one buffer: of requests on their way in, and of answers on their way out.
//!
//! The runtime moves the bytes, with back-pressure, deadlines and an eye on the client; a system says where they go
//! ([`Sink`]) and where they come from ([`Reader`]). Neither side ever holds more than one piece for the runtime, so
//! what a connection costs in memory is what its sink or reader makes it cost.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::io;
use std::mem::replace;
use std::pin::Pin;
use std::sync::Arc;

use crate::handler::{Reply, Then};

/// A future that the runtime's thread of sockets waits for. It must not block: files are for
/// `tokio::task::spawn_blocking`, of which a server has a few threads.
pub type BodyFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Where the body of one request goes, while its work waits or is done.
///
/// Dropped without [`finish`](Self::finish), the request came to nothing: its client went away or sent too little, it
/// was refused, nobody [wants its body](crate::Handler::wants_body) any more, or the sink itself failed.
pub trait Sink: Debug + Send + 'static {
    /// How many bytes the body has, by what the request announced.
    fn length(&self) -> u64;

    /// Room for the next bytes, at least one. Asked only while bytes are to come, of which no more are put there. May
    /// take its time, and the client waits as long.
    ///
    /// # Errors
    /// Fails where the body can go nowhere. The request is then refused.
    fn room(&mut self) -> BodyFuture<'_, &mut [u8]>;

    /// So many bytes have been put at the beginning of the room.
    ///
    /// # Errors
    /// As [`room`](Self::room).
    fn filled(&mut self, bytes: usize) -> BodyFuture<'_, ()>;

    /// The client sent less than it announced, or too little for too long.
    fn truncated(&mut self) {}

    /// The body is complete and the work came to this reply: makes of both what this client is sent, and says what
    /// becomes of its connection. All requests of a flight get the same reply, but each has a body of its own.
    fn finish(self: Box<Self>, reply: Reply) -> (Box<dyn Reader>, Then);
}

/// The bytes of an answer on their way to one client.
pub trait Reader: Debug + Send {
    /// The next piece; an empty one is the end. Asked for when the client has taken the piece before. May wait for
    /// work that goes on.
    ///
    /// # Errors
    /// Fails where the answer cannot go on. The connection is then reset, so that nobody takes the part for the
    /// whole.
    fn piece(&mut self) -> BodyFuture<'_, &[u8]>;
}

/// An answer that several may read, each from its start and at its own pace.
pub trait Source: Debug + Send + Sync + 'static {
    /// Begins to read it.
    fn open(self: Arc<Self>) -> Box<dyn Reader>;
}

/// Bytes that are all there.
#[derive(Clone, Debug)]
pub struct Whole {
    bytes: Vec<u8>,
    is_read: bool,
}

impl Whole {
    /// A reader of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, is_read: false }
    }
}

impl Reader for Whole {
    fn piece(&mut self) -> BodyFuture<'_, &[u8]> {
        if replace(&mut self.is_read, true) {
            self.bytes = Vec::new();
        }
        Box::pin(ready(Ok(self.bytes.as_slice())))
    }
}

/// The bytes of a [`Reply`].
#[derive(Clone, Debug)]
pub enum Body {
    /// All of them.
    Bytes(Vec<u8>),
    /// They come while they are sent.
    Stream(Arc<dyn Source>),
}

impl Body {
    /// A reader of it.
    pub fn read(self) -> Box<dyn Reader> {
        match self {
            Self::Bytes(bytes) => Box::new(Whole::new(bytes)),
            Self::Stream(source) => source.open(),
        }
    }
}
