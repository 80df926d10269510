//! The interface between a system of lasting connections and the runtime. A client holds a session and sends any number of
//! requests in it, and the server can send messages without a request.
//!
//! Requests of a session are served concurrently, up to [`SessionLimits::requests`], each like a request of a plain
//! connection: admitted, ordered by the discipline, counted and stamped. Answers and pushes leave in order of their
//! creation.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use kendall_station::Job;
use prometheus_client::registry::Registry;
use tokio_rustls::TlsAcceptor;

use crate::handler::Malformed;
use crate::outlet::{Message, Outlet, Rules, SessionLimits};
use crate::turn::{Step, Turn};

/// A system whose clients hold sessions. One value serves all sessions and all workers; serve it with
/// [`Server::bind_sessions`](crate::Server::bind_sessions).
pub trait Sessions: Send + Sync + 'static {
    /// The system's state of one session. It lives on the thread of all sockets.
    type Session: Send + 'static;

    /// One request in service, with the state of its work.
    type Task: Send + 'static;

    /// Answers and pushes.
    type Message: Message;

    /// Opens a session for a client that has connected. Any thread may push messages to it through the outlet from now on.
    fn open(&self, outlet: Outlet<Self::Message>, peer: SocketAddr) -> Self::Session;

    /// Reads the request at the beginning of `bytes`, which are never empty; `None` if it is incomplete. Called again from
    /// the start of the request whenever more bytes have arrived. Must be quick: it runs on the thread of all sockets.
    ///
    /// # Errors
    /// Fails on bytes that cannot become a request. The session then ends.
    fn decode(&self, session: &mut Self::Session, bytes: &[u8]) -> SessionDecoding<Self>;

    /// Does one [`Turn`]'s units of the task. [`Step::Done`] has the resulting message and its recipient; it is sent once
    /// the request is counted, so that a client with the message never finds the request still in service. [`Step::Begun`]
    /// sends a message before the work is over.
    fn advance(
        &self,
        task: &mut Self::Task,
        turn: &mut Turn<Delivery<Self::Message>>,
    ) -> Step<Delivery<Self::Message>>;

    /// Closes the session: its client disconnected or was silent for too long, it violated the protocol or read its messages
    /// too slowly, or the server shuts down. Called exactly once for each session, after its requests in service were
    /// withdrawn and its outlet was closed.
    fn close(&self, session: Self::Session);

    /// The most bytes of a request: 64 KiB by default. A longer one is malformed.
    fn max_request_bytes(&self) -> usize {
        64 * 1024
    }

    /// The number of units of a worker's first chunk. The runtime measures how long a chunk takes and adapts.
    fn first_chunk(&self) -> u64 {
        1
    }

    /// Adds the system's own metrics to those of the runtime. Names get the prefix `kendall_`.
    fn register(&self, registry: &mut Registry) {
        let _ = registry;
    }
}

/// The message that results from a request's work, and the session that gets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery<M> {
    /// There is no message.
    Nothing,
    /// The session of the request gets it.
    Here(M),
    /// The message goes to another session.
    Elsewhere {
        /// The session that gets the message.
        to: Outlet<M>,
        /// The message.
        message: M,
        /// The message to the session of the request if that one has ended or its queue is full.
        unreached: M,
    },
}

impl<M: Message> Delivery<M> {
    /// Sends the message for another session; returns the message for the session of the request.
    pub(crate) fn dispatch(self) -> Option<M> {
        match self {
            Self::Nothing => None,
            Self::Here(message) => Some(message),
            Self::Elsewhere { to, message, unreached } => to.push(&message).err().map(|_| unreached),
        }
    }
}

/// The result of [`Sessions::decode`].
pub type SessionDecoding<S> =
    Result<Option<SessionDecoded<<S as Sessions>::Task, <S as Sessions>::Message>>, Malformed>;

/// A request of a session.
pub struct SessionDecoded<T, M> {
    pub(crate) used_bytes: usize,
    pub(crate) request: Request<T, M>,
}

/// The kind of a request of a session.
pub(crate) enum Request<T, M> {
    Nothing,
    Known(M),
    Work { job: Job, task: T, key: Option<Vec<u8>>, refusal: M },
    Awaited(Awaited<M>),
}

/// An answer that another source provides, and the message to the client if it never comes.
pub(crate) struct Awaited<M> {
    pub(crate) answer: Pin<Box<dyn Future<Output = M> + Send>>,
    pub(crate) refusal: M,
}

impl<T, M> SessionDecoded<T, M> {
    /// A message of the first `used_bytes` bytes without an effect: a greeting, a keep-alive.
    pub fn nothing(used_bytes: usize) -> Self {
        Self { used_bytes, request: Request::Nothing }
    }

    /// A request of the first `used_bytes` bytes whose answer needs no work. It never waits.
    pub fn answer(used_bytes: usize, message: M) -> Self {
        Self { used_bytes, request: Request::Known(message) }
    }

    /// A request of the first `used_bytes` bytes, which a worker serves, and the answer if it is rejected.
    pub fn work(used_bytes: usize, job: Job, task: T, refusal: M) -> Self {
        Self { used_bytes, request: Request::Work { job, task, key: None, refusal } }
    }

    /// A request of the first `used_bytes` bytes whose answer another source provides, for example a database. No worker
    /// waits for it. The answer is awaited on the thread of all sockets, also if the session has ended meanwhile, and must
    /// come in bounded time; `refusal` is sent if it panics.
    pub fn awaited(used_bytes: usize, answer: impl Future<Output = M> + Send + 'static, refusal: M) -> Self {
        Self { used_bytes, request: Request::Awaited(Awaited { answer: Box::pin(answer), refusal }) }
    }

    /// Shares the request as [`Decoded::sharing`](crate::Decoded::sharing) does, among all sessions.
    #[must_use]
    pub fn sharing(mut self, with: Vec<u8>) -> Self {
        if let Request::Work { key, .. } = &mut self.request {
            *key = Some(with);
        }
        self
    }
}

impl<T: fmt::Debug, M: fmt::Debug> fmt::Debug for SessionDecoded<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SessionDecoded");
        shown.field("used_bytes", &self.used_bytes);
        match &self.request {
            Request::Nothing => &mut shown,
            Request::Known(message) => shown.field("answer", message),
            Request::Work { task, .. } => shown.field("task", task),
            Request::Awaited(Awaited { refusal, .. }) => shown.field("refusal", refusal),
        }
        .finish_non_exhaustive()
    }
}

/// A system of sessions for a [`Server`](crate::Server).
pub struct InSessions<S> {
    pub(crate) system: S,
    pub(crate) rules: Arc<Rules>,
    /// The TLS acceptor of its connections, if they are secured.
    pub(crate) tls: Option<TlsAcceptor>,
}

impl<S: Sessions> InSessions<S> {
    pub(crate) fn new(limits: SessionLimits, tls: Option<TlsAcceptor>, system: S) -> Self {
        let rules = Rules { limits, queued: Default::default(), refused: Default::default() };
        Self { system, rules: Arc::new(rules), tls }
    }
}
