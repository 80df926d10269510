//! The reply to a client: bytes in memory, or bytes that are produced while they are sent.
//!
//! The runtime moves the bytes, with back-pressure, deadlines and a watch on the client; a system provides them. A
//! [`Reader`] holds one piece at a time for the runtime, so the memory of a connection is that of its reader.

use std::fmt::Debug;
use std::future::{Future, ready};
use std::io;
use std::mem::replace;
use std::pin::Pin;
use std::sync::Arc;

/// A future that the runtime's thread of sockets waits for. It must not block: files are for
/// `tokio::task::spawn_blocking`, of which a server has a few threads.
pub type BodyFuture<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// Bytes for the client, and the fate of its connection.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The bytes.
    pub body: Body,
    /// What happens to the connection.
    pub then: Then,
}

impl Reply {
    /// A reply of these bytes.
    pub fn new(bytes: Vec<u8>, then: Then) -> Self {
        Self { body: Body::Bytes(bytes), then }
    }

    /// A reply of bytes that are produced while they are sent.
    pub fn stream(source: Arc<dyn Source>, then: Then) -> Self {
        Self { body: Body::Stream(source), then }
    }
}

/// What happens to a connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// The connection stays open for the next request.
    Keep,
    /// The connection is closed. Bytes beyond the request are ignored.
    Close,
}

/// The bytes of a [`Reply`].
#[derive(Clone, Debug)]
pub enum Body {
    /// All bytes of the body.
    Bytes(Vec<u8>),
    /// Bytes that are produced while they are sent.
    Stream(Arc<dyn Source>),
}

impl Body {
    /// A reader of the body.
    pub fn read(self) -> Box<dyn Reader> {
        match self {
            Self::Bytes(bytes) => Box::new(WholeBody::new(bytes)),
            Self::Stream(source) => source.open(),
        }
    }
}

/// A reader of the bytes of an answer, for one client.
pub trait Reader: Debug + Send {
    /// The next piece; an empty one is the end. The runtime calls this when the client has read the previous piece. May
    /// wait for work in progress.
    ///
    /// # Errors
    /// Fails if the answer cannot continue. The server then resets the connection, so that no client takes the part for
    /// the whole.
    fn piece(&mut self) -> BodyFuture<'_, &[u8]>;
}

/// An answer that several clients may read, each from its start and at its own pace.
pub trait Source: Debug + Send + Sync + 'static {
    /// Starts a reader.
    fn open(self: Arc<Self>) -> Box<dyn Reader>;
}

/// Bytes that are in memory.
#[derive(Clone, Debug)]
pub struct WholeBody {
    bytes: Vec<u8>,
    is_read: bool,
}

impl WholeBody {
    /// A reader of these bytes.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, is_read: false }
    }
}

impl Reader for WholeBody {
    fn piece(&mut self) -> BodyFuture<'_, &[u8]> {
        if replace(&mut self.is_read, true) {
            self.bytes = Vec::new();
        }
        Box::pin(ready(Ok(self.bytes.as_slice())))
    }
}
