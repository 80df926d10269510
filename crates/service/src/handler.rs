//! The interface between a system and the runtime: the end of a request, its work, a piece of that work, and the bytes
//! of its answer.

use kendall_station::Job;
use prometheus_client::registry::Registry;

use crate::reply::Reply;
use crate::turn::{Step, Turn};
use crate::upload::Sink;

/// A system in the form of the runtime. One handler serves all connections and all workers.
pub trait Handler: Send + Sync + 'static {
    /// One request in service, with the state of its work.
    type Task: Send + 'static;

    /// The answer to a request. Requests that are served as one get clones.
    type Answer: Clone + Send + 'static;

    /// Reads the request at the beginning of `bytes`, which are never empty; `None` if it is incomplete. Called again
    /// from the start of the request whenever more bytes have arrived. Must be quick: it runs on the thread of all
    /// sockets.
    ///
    /// # Errors
    /// Fails on bytes that cannot become a request. The server then closes the connection without an answer.
    fn decode(&self, bytes: &[u8]) -> Decoding<Self>;

    /// Does one [`Turn`]'s units of the task. The worker does nothing else until it returns.
    fn advance(&self, task: &mut Self::Task, turn: &mut Turn<Self::Answer>) -> Step<Self::Answer>;

    /// The bytes of the answer. Must be quick, as [`decode`](Self::decode). If a request has a [`Sink`] for its body,
    /// the sink encodes the answer instead.
    fn encode(&self, answer: Self::Answer) -> Reply;

    /// The answer to a rejected request.
    fn refusal(&self) -> Self::Answer;

    /// The most bytes of a request, without its body: 64 KiB by default. A longer request is malformed.
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

/// The result of [`Handler::decode`].
pub type Decoding<H> = Result<Option<Decoded<<H as Handler>::Task, <H as Handler>::Answer>>, Malformed>;

/// Bytes that cannot become a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A complete request, except for its body, if it has one: that follows the bytes it took.
#[derive(Debug)]
pub struct Decoded<T, A> {
    pub(crate) used_bytes: usize,
    pub(crate) kind: RequestKind<T, A>,
    pub(crate) body: Option<Box<dyn Sink<A>>>,
}

/// The kind of a request.
#[derive(Debug)]
pub(crate) enum RequestKind<T, A> {
    /// A request that needs no work: it never waits.
    Known(A),
    Work {
        job: Job,
        task: T,
        key: Option<Vec<u8>>,
    },
}

impl<T, A> Decoded<T, A> {
    /// A request of the first `used_bytes` bytes, which a worker serves. The discipline may use the `job`; its sizes are
    /// in the unit of [`Step::Continue`].
    pub fn work(used_bytes: usize, job: Job, task: T) -> Self {
        Self { used_bytes, kind: RequestKind::Work { job, task, key: None }, body: None }
    }

    /// A request of the first `used_bytes` bytes whose answer needs no work. It never waits.
    pub fn answer(used_bytes: usize, answer: A) -> Self {
        Self { used_bytes, kind: RequestKind::Known(answer), body: None }
    }

    /// Marks requests with the same key as equal: this one joins the one that waits or is in service already, and adds
    /// its weight to it. Has no effect on a request without work.
    #[must_use]
    pub fn sharing(mut self, with: Vec<u8>) -> Self {
        if let RequestKind::Work { key, .. } = &mut self.kind {
            *key = Some(with);
        }
        self
    }

    /// Adds a body to the request, which goes to the sink. The work waits and runs while the body arrives; a worker
    /// whose work is done does not wait for the body.
    #[must_use]
    pub fn with_body(mut self, sink: impl Sink<A>) -> Self {
        self.body = Some(Box::new(sink));
        self
    }
}
