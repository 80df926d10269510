//! What goes back to a client: bytes that are there, or bytes that come while they are sent.
//!
//! The runtime moves the bytes, with back-pressure, deadlines and a watch on the client; a system says where they come
//! from. A [`Reader`] holds one piece at a time for the runtime, so what a connection costs in memory is what its reader
//! makes it cost.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::io;
use std::mem::replace;
use std::pin::Pin;
use std::sync::Arc;

/// A future that the runtime's thread of sockets waits for. It must not block: files are for
/// `tokio::task::spawn_blocking`, of which a server has a few threads.
pub type BodyFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Bytes for the client, and what becomes of its connection.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The bytes.
    pub body: Body,
    /// What becomes of the connection.
    pub then: Then,
}

impl Reply {
    /// A reply of these bytes.
    pub fn new(bytes: Vec<u8>, then: Then) -> Self {
        Self { body: Body::Bytes(bytes), then }
    }

    /// A reply of bytes that come while they are sent.
    pub fn stream(source: Arc<dyn Source>, then: Then) -> Self {
        Self { body: Body::Stream(source), then }
    }
}

/// What becomes of a connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It stays open for the next request.
    Keep,
    /// It is closed. Bytes of the client beyond the request are ignored.
    Close,
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

/// The bytes of an answer on their way to one client.
pub trait Reader: Debug + Send {
    /// The next piece; an empty one is the end. The runtime asks for it when the client has taken the piece before. May
    /// wait for work that goes on.
    ///
    /// # Errors
    /// Fails where the answer cannot go on. The connection is then reset, so that no client takes the part for the
    /// whole.
    fn piece(&mut self) -> BodyFuture<'_, &[u8]>;
}

/// An answer that several clients may read, each from its start and at its own pace.
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
