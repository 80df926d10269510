//! What a system of lasting connections tells the runtime. A client holds a session and asks in it as often as it likes,
//! and the server may speak unasked.
//!
//! Requests of a session are served side by side, up to [`SessionLimits::requests`], each like a request of a plain
//! connection: admitted, ordered by the discipline, counted and stamped. Answers and pushes leave in the order in which
//! they were made.

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
    /// What the system keeps of one session. It lives on the thread of all sockets.
    type Session: Send + 'static;

    /// One request in the hands of a worker, with all that was done for it so far.
    type Task: Send + 'static;

    /// Answers and pushes.
    type Message: Message;

    /// A client has connected. Through the outlet, any thread may push messages to it from now on.
    fn open(&self, outlet: Outlet<Self::Message>, peer: SocketAddr) -> Self::Session;

    /// Reads the request at the beginning of `bytes`, which are never empty; `None` if it is not there in full.
    /// Called again from the start of the request whenever more bytes have come. Must be quick: it runs on the
    /// thread of all sockets.
    ///
    /// # Errors
    /// Fails on bytes that cannot become a request. The session then ends.
    fn decode(&self, session: &mut Self::Session, bytes: &[u8]) -> Hearing<Self>;

    /// Does one [`Turn`]'s units of the task. [`Step::Done`] says which message the work comes to and who gets it; it is
    /// sent once the request is counted, so that who has it never finds the request in service still. [`Step::Begun`] sends
    /// a message before the work is over.
    fn advance(
        &self,
        task: &mut Self::Task,
        turn: &mut Turn<Delivery<Self::Message>>,
    ) -> Step<Delivery<Self::Message>>;

    /// The session is over: its client went away or was silent for too long, it broke the protocol or took its messages too
    /// slowly, or the server shuts down. Called exactly once for each session, after its requests in service were
    /// withdrawn and its outlet was closed.
    fn close(&self, session: Self::Session);

    /// The most bytes a request can have: 64 KiB unless the system says otherwise. A longer one is malformed.
    fn max_request_bytes(&self) -> usize {
        64 * 1024
    }

    /// How many units a worker's first chunk has. The runtime measures how long a chunk takes and adapts.
    fn first_chunk(&self) -> u64 {
        1
    }

    /// Adds the system's own metrics to those of the runtime. Names get the prefix `kendall_`.
    fn register(&self, registry: &mut Registry) {
        let _ = registry;
    }
}

/// The message that a request's work comes to, and the session that gets it.
#[derive(Clone, Debug, PartialEq)]
pub enum Delivery<M> {
    /// There is no message.
    Nothing,
    /// The session of the request gets it.
    Here(M),
    /// Another session gets it.
    Elsewhere {
        /// That session.
        to: Outlet<M>,
        /// What it is sent.
        message: M,
        /// What the session of the request is sent if that one has ended or its queue is full.
        unreached: M,
    },
}

impl<M: Message> Delivery<M> {
    /// Sends what goes to another session; returns what the session of the request is to get.
    pub(crate) fn dispatch(self) -> Option<M> {
        match self {
            Self::Nothing => None,
            Self::Here(message) => Some(message),
            Self::Elsewhere { to, message, unreached } => to.push(&message).err().map(|_| unreached),
        }
    }
}

/// What [`Sessions::decode`] makes of bytes.
pub type Hearing<S> = Result<Option<Heard<<S as Sessions>::Task, <S as Sessions>::Message>>, Malformed>;

/// A request of a session.
pub struct Heard<T, M> {
    pub(crate) used_bytes: usize,
    pub(crate) request: Request<T, M>,
}

/// What a request of a session asks for.
pub(crate) enum Request<T, M> {
    Nothing,
    Known(M),
    Work { job: Job, task: T, key: Option<Vec<u8>>, refusal: M },
    Awaited(Awaited<M>),
}

/// An answer that comes from elsewhere, and what the client is sent should it never come.
pub(crate) struct Awaited<M> {
    pub(crate) answer: Pin<Box<dyn Future<Output = M> + Send>>,
    pub(crate) refusal: M,
}

impl<T, M> Heard<T, M> {
    /// The first `used_bytes` bytes ask for nothing: a greeting, a sign of life.
    pub fn nothing(used_bytes: usize) -> Self {
        Self { used_bytes, request: Request::Nothing }
    }

    /// A request of the first `used_bytes` bytes whose answer needs no work. It never waits.
    pub fn answer(used_bytes: usize, message: M) -> Self {
        Self { used_bytes, request: Request::Known(message) }
    }

    /// A request of the first `used_bytes` bytes, to be served by a worker, and the answer to it should it be turned away.
    pub fn work(used_bytes: usize, job: Job, task: T, refusal: M) -> Self {
        Self { used_bytes, request: Request::Work { job, task, key: None, refusal } }
    }

    /// A request of the first `used_bytes` bytes whose answer comes from elsewhere, for example from a database. No worker
    /// waits for it. The answer is awaited on the thread of all sockets, also when the session has ended meanwhile, and must
    /// come in bounded time; `refusal` is sent if it panics.
    pub fn awaited(used_bytes: usize, answer: impl Future<Output = M> + Send + 'static, refusal: M) -> Self {
        Self { used_bytes, request: Request::Awaited(Awaited { answer: Box::pin(answer), refusal }) }
    }

    /// As [`Decoded::sharing`](crate::Decoded::sharing), among all sessions.
    #[must_use]
    pub fn sharing(mut self, with: Vec<u8>) -> Self {
        if let Request::Work { key, .. } = &mut self.request {
            *key = Some(with);
        }
        self
    }
}

impl<T: fmt::Debug, M: fmt::Debug> fmt::Debug for Heard<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Heard");
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

/// A system of sessions as a [`Server`](crate::Server) serves it.
pub struct InSessions<S> {
    pub(crate) system: S,
    pub(crate) rules: Arc<Rules>,
    /// What secures its connections, if anything.
    pub(crate) tls: Option<TlsAcceptor>,
}

impl<S: Sessions> InSessions<S> {
    pub(crate) fn new(limits: SessionLimits, tls: Option<TlsAcceptor>, system: S) -> Self {
        let rules = Rules { limits, queued: Default::default(), refused: Default::default() };
        Self { system, rules: Arc::new(rules), tls }
    }
}
