//! The outgoing side of a session: a queue of messages from any thread, in order of their creation, to one client.
//!
//! The queue has a limit of messages and one of bytes, and a [policy](WhenFull) for a push that finds it full. It always
//! accepts an answer to the session's own request: the runtime reads no further request while the queue is full or
//! [`SessionLimits::requests`] are in service, so answers exceed the limits by at most that many messages.

use std::marker::PhantomData;
use std::mem::take;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;

/// A message of a server in a session: an answer, or a message without a request.
pub trait Message: Clone + Send + 'static {
    /// Appends the bytes of the message.
    fn encode(&self, bytes: &mut Vec<u8>);
}

/// The limits of each session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionLimits {
    /// The most messages that may wait until the client reads them.
    pub messages: usize,
    /// The largest number of bytes of these messages.
    pub bytes: usize,
    /// What happens to a push beyond these limits.
    pub when_full: WhenFull,
    /// The most requests of a client in service; the next ones wait unread.
    pub requests: usize,
    /// How long a client may send no request while none is in service, before its session ends.
    pub idle: Duration,
}

impl Default for SessionLimits {
    /// 1,024 messages of 1 MiB together, further pushes rejected; 64 requests; 5 minutes.
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

/// What happens to a push when the queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenFull {
    /// The push is rejected, and the session continues.
    #[default]
    RefusePush,
    /// The push is rejected, and the session ends: for systems whose clients must not miss a message.
    EndSession,
}

/// The reason why a message was not pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushError {
    /// The client reads its messages too slowly.
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
    shared: Arc<OutletShared>,
    message: PhantomData<fn(M)>,
}

#[derive(Debug)]
struct OutletShared {
    rules: Arc<Rules>,
    state: Mutex<State>,
    /// Signals that there is something to write, or that the session should end.
    to_write: Notify,
    /// Signals that another request can be read.
    to_read: Notify,
}

/// The shared settings and counters of all sessions of a server.
#[derive(Debug)]
pub(crate) struct Rules {
    pub(crate) limits: SessionLimits,
    /// Messages queued, answers and pushes.
    pub(crate) queued: Counter,
    /// Pushes rejected because a queue was full.
    pub(crate) refused: Counter,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    /// Encoded messages, one after the other, and their number.
    bytes: Vec<u8>,
    messages: usize,
    /// The messages and bytes that are being written.
    writing: (usize, usize),
    /// The session's requests in service.
    requests: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// Accepts answers, and ends when all requests are answered and all messages written.
    Ending,
    /// A push found the queue full.
    Overrun,
    Ended,
}

/// The next step of the writer of a session.
#[derive(Debug)]
pub(crate) enum ToWrite {
    Bytes(Vec<u8>),
    /// Everything is written, and the session should end.
    End,
    /// The session should end, because a push found the queue full.
    Overrun,
}

impl<M: Message> Outlet<M> {
    pub(crate) fn new(rules: Arc<Rules>) -> Self {
        let state =
            State { phase: Phase::Open, bytes: Vec::new(), messages: 0, writing: (0, 0), requests: 0 };
        let shared =
            OutletShared { rules, state: Mutex::new(state), to_write: Notify::new(), to_read: Notify::new() };
        Self { shared: Arc::new(shared), message: PhantomData }
    }

    /// Queues a message for the client, behind all that were queued before.
    ///
    /// # Errors
    /// Fails if the queue is full, or the session has ended. The message is then not sent.
    pub fn push(&self, message: &M) -> Result<(), PushError> {
        let bytes = encoded(message);
        let limits = &self.shared.rules.limits;
        let mut state = self.shared.lock();
        if state.phase != Phase::Open {
            return Err(PushError::Ended);
        }
        if state.messages() >= limits.messages || state.bytes() + bytes.len() > limits.bytes {
            if limits.when_full == WhenFull::EndSession {
                state.phase = Phase::Overrun;
                self.shared.to_write.notify_one();
            }
            self.shared.rules.refused.inc();
            return Err(PushError::Full);
        }
        self.shared.queue(state, &bytes);
        Ok(())
    }

    /// Ends the session once its requests in service are answered and the queued messages are sent. No more messages can
    /// be pushed.
    pub fn end(&self) {
        let mut state = self.shared.lock();
        if state.phase == Phase::Open {
            state.phase = Phase::Ending;
        }
        drop(state);
        self.shared.to_write.notify_one();
    }

    /// Registers a request that was read, for which an answer will come.
    pub(crate) fn expect_answer(&self) {
        self.shared.lock().requests += 1;
    }

    /// Queues the answer to a request, if it has one. The queue always accepts it.
    pub(crate) fn answer(&self, message: Option<&M>) {
        let bytes = message.map(encoded);
        let mut state = self.shared.lock();
        state.requests -= 1;
        match bytes {
            Some(bytes) if state.phase != Phase::Ended => self.shared.queue(state, &bytes),
            _ => {
                let is_ending = state.phase == Phase::Ending;
                drop(state);
                if is_ending {
                    self.shared.to_write.notify_one();
                }
            }
        }
        self.shared.to_read.notify_one();
    }

    /// Queues a part of an answer; more will follow.
    pub(crate) fn begin_answer(&self, message: &M) {
        let bytes = encoded(message);
        let state = self.shared.lock();
        if state.phase != Phase::Ended {
            self.shared.queue(state, &bytes);
        }
    }

    /// Whether requests of the session are in service.
    pub(crate) fn is_busy(&self) -> bool {
        self.shared.lock().requests > 0
    }

    /// Whether no further request should be read.
    fn is_full(&self) -> bool {
        let limits = &self.shared.rules.limits;
        let state = self.shared.lock();
        state.requests >= limits.requests
            || state.messages() >= limits.messages
            || state.bytes() >= limits.bytes
    }

    /// Returns once another request can be read.
    pub(crate) async fn capacity(&self) {
        while self.is_full() {
            self.shared.to_read.notified().await;
        }
    }

    /// Waits for messages to write, in their order, or for the end of the session.
    pub(crate) async fn to_write(&self) -> ToWrite {
        loop {
            let next = self.shared.lock().next();
            match next {
                Some(next) => return next,
                None => self.shared.to_write.notified().await,
            }
        }
    }

    /// Records that the messages were written.
    pub(crate) fn written(&self) {
        self.shared.lock().writing = (0, 0);
        self.shared.to_read.notify_one();
    }

    /// Closes the session: drops the queued messages.
    pub(crate) fn close(&self) {
        let mut state = self.shared.lock();
        state.phase = Phase::Ended;
        state.bytes = Vec::new();
        state.messages = 0;
    }
}

impl OutletShared {
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
        Self { shared: Arc::clone(&self.shared), message: PhantomData }
    }
}

impl<M> PartialEq for Outlet<M> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<M> Eq for Outlet<M> {}
