//! The way out of a session: messages of any thread, in the order in which they were made, on their way to one client.
//!
//! The queue has a bound in messages and one in bytes, and a [decision](WhenFull) for a push that finds it full. An answer
//! to the session's own request always has a place: the runtime reads no further request while the queue is full or as
//! many as [`SessionLimits::requests`] are in service, so answers exceed the bounds by that many messages at most.

use std::marker::PhantomData;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;

/// What a server says in a session: an answer, or a message that no request asked for.
pub trait Message: Clone + Send + 'static {
    /// Appends the message as it goes over the wire.
    fn encode(&self, bytes: &mut Vec<u8>);
}

/// The bounds of each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// Messages that may wait until the client takes them.
    pub messages: usize,
    /// Their bytes.
    pub bytes: usize,
    /// What happens to a push beyond these bounds.
    pub when_full: WhenFull,
    /// The client's requests that are admitted at a time; the next ones wait unread.
    pub requests: usize,
    /// How long a client may send no request while none is in service, before its session ends.
    pub idle: Duration,
}

impl Default for SessionLimits {
    /// 1,024 messages of 1 MiB together, further pushes refused; 64 requests; 5 minutes.
    fn default() -> Self {
        Self {
            messages: 1024,
            bytes: 1 << 20,
            when_full: WhenFull::RefusePush,
            requests: 64,
            idle: Duration::from_secs(300),
        }
    }
}

/// What happens to a push for whose message there is no place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// It is refused, and the session goes on.
    #[default]
    RefusePush,
    /// It is refused, and the session ends: for systems whose clients must miss nothing.
    EndSession,
}

/// Why a message was not pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The client takes its messages too slowly.
    #[error("the session's queue is full")]
    Full,
    /// The session has ended or is about to.
    #[error("the session has ended")]
    Ended,
}

/// A session's handle: any thread may push messages through it. Clones are the same session; two are equal if they are of
/// the same session.
#[derive(Debug)]
pub struct Outlet<M> {
    way: Arc<Way>,
    message: PhantomData<fn(M)>,
}

#[derive(Debug)]
struct Way {
    rules: Arc<Rules>,
    state: Mutex<State>,
    /// There is something to write, or the session is to end.
    to_write: Notify,
    /// There is a place for another request.
    to_read: Notify,
}

/// What all sessions of a server have in common.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) limits: SessionLimits,
    /// Messages queued, answers and pushes.
    pub(crate) queued: Counter,
    /// Pushes refused because a queue was full.
    pub(crate) refused: Counter,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Encoded messages, one after the other, and how many there are.
    bytes: Vec<u8>,
    messages: usize,
    /// Those that are being written, in messages and bytes.
    writing: (usize, usize),
    /// The session's requests in service.
    requests: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Takes answers, and ends when all requests are answered and all messages written.
    Ending,
    /// A push found the queue full.
    Overrun,
    Ended,
}

/// What is to be written in a session.
#[derive(Debug)]
pub(crate) enum ToWrite {
    Bytes(Vec<u8>),
    /// All is written, and the session is to end.
    End,
    /// The session is to end, for a push found the queue full.
    Overrun,
}

impl<M: Message> Outlet<M> {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        let state =
            State { phase: Phase::Open, bytes: Vec::new(), messages: 0, writing: (0, 0), requests: 0 };
        let way = Way { rules, state: Mutex::new(state), to_write: Notify::new(), to_read: Notify::new() };
        Self { way: Arc::new(way), message: PhantomData }
    }

    /// Queues a message for the client, behind all that were queued before.
    ///
    /// # Errors
    /// Fails where the queue is full, and where the session has ended. The message is then not sent.
    pub fn push(&self, message: &M) -> Result<(), PushError> {
        let bytes = encoded(message);
        let limits = &self.way.rules.limits;
        let mut state = self.way.lock();
        if state.phase != Phase::Open {
            return Err(PushError::Ended);
        }
        if state.messages() >= limits.messages || state.bytes() + bytes.len() > limits.bytes {
            if limits.when_full == WhenFull::EndSession {
                state.phase = Phase::Overrun;
                self.way.to_write.notify_one();
            }
            self.way.rules.refused.inc();
            return Err(PushError::Full);
        }
        self.way.queue(state, &bytes);
        Ok(())
    }

    /// Ends the session once its requests in service are answered and what is queued is sent. No message can be pushed
    /// any more.
    pub fn end(&self) {
        let mut state = self.way.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Ending;
        }
        drop(state);
        self.way.to_write.notify_one();
    }

    /// A request has been read, and an answer will come.
    pub(crate) fn expect_answer(&self) {
        self.way.lock().requests += 1;
    }

    /// The answer to a request is made, if it has one. It always has a place.
    pub(crate) fn answer(&self, message: Option<&M>) {
        let bytes = message.map(encoded);
        let mut state = self.way.lock();
        state.requests -= 1;
        match bytes {
            Some(bytes) if state.phase != Phase::Ended => self.way.queue(state, &bytes),
            _ => {
                let is_ending = state.phase == Phase::Ending;
                drop(state);
                if is_ending {
                    self.way.to_write.notify_one();
                }
            }
        }
        self.way.to_read.notify_one();
    }

    /// A part of an answer is made; more is to come.
    pub(crate) fn begin_answer(&self, message: &M) {
        let bytes = encoded(message);
        let state = self.way.lock();
        if state.phase != Phase::Ended {
            self.way.queue(state, &bytes);
        }
    }

    /// Whether requests of the session are in service.
    pub(crate) fn is_busy(&self) -> bool {
        self.way.lock().requests > 0
    }

    /// Whether no further request should be read.
    fn is_full(&self) -> bool {
        let limits = &self.way.rules.limits;
        let state = self.way.lock();
        state.requests >= limits.requests
            || state.messages() >= limits.messages
            || state.bytes() >= limits.bytes
    }

    /// Returns once there is a place for another request.
    pub(crate) async fn capacity(&self) {
        while self.is_full() {
            self.way.to_read.notified().await;
        }
    }

    /// Waits for messages to write, in their order, or for the end of the session.
    pub(crate) async fn to_write(&self) -> ToWrite {
        loop {
            let next = self.way.lock().next();
            match next {
                Some(next) => return next,
                None => self.way.to_write.notified().await,
            }
        }
    }

    /// What was to be written is.
    pub(crate) fn written(&self) {
        self.way.lock().writing = (0, 0);
        self.way.to_read.notify_one();
    }

    /// The session is over: what is queued is dropped.
    pub(crate) fn close(&self) {
        let mut state = self.way.lock();
        state.phase = Phase::Ended;
        state.bytes = Vec::new();
        state.messages = 0;
    }
}

impl Way {
    fn queue(&self, mut state: MutexGuard<'_, State>, bytes: &[u8]) {
        state.bytes.extend_from_slice(bytes);
        state.messages += 1;
        drop(state);
        self.rules.queued.inc();
        self.to_write.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it holds a session's queue")
    }
}

impl State {
    fn messages(&self) -> usize {
        self.messages + self.writing.0
    }

    fn bytes(&self) -> usize {
        self.bytes.len() + self.writing.1
    }

    fn next(&mut self) -> Option<ToWrite> {
        if self.phase == Phase::Overrun {
            return Some(ToWrite::Overrun);
        }
        if !self.bytes.is_empty() {
            self.writing = (take(&mut self.messages), self.bytes.len());
            return Some(ToWrite::Bytes(take(&mut self.bytes)));
        }
        (self.phase == Phase::Ending && self.requests == 0).then_some(ToWrite::End)
    }
}

fn encoded(message: &impl Message) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(&mut bytes);
    bytes
}

impl<M> Clone for Outlet<M> {
    fn clone(&self) -> Self {
        Self { way: Arc::clone(&self.way), message: PhantomData }
    }
}

impl<M> PartialEq for Outlet<M> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.way, &other.way)
    }
}

impl<M> Eq for Outlet<M> {}
