//! What a system tells the runtime: where a request ends, what work it is, how to do a piece of it, and how its answer
//! goes over the wire.

use kendall_station::Job;
use prometheus_client::registry::Registry;

use crate::reply::Reply;
use crate::turn::{Step, Turn};
use crate::upload::Sink;

/// A system, as the runtime sees it. One handler serves all connections and all workers.
pub trait Handler: Send + Sync + 'static {
    /// One request in the hands of a worker, with all that was done for it so far.
    type Task: Send + 'static;

    /// What a request comes to. Requests that are served as one get clones.
    type Answer: Clone + Send + 'static;

    /// Reads the request at the beginning of `bytes`, which are never empty; `None` if it is not there in full.
    /// Called again from the start of the request whenever more bytes have come. Must be quick: it runs on the
    /// thread of all sockets.
    ///
    /// # Errors
    /// Fails on bytes that cannot become a request. The connection is then closed without an answer.
    fn decode(&self, bytes: &[u8]) -> Decoding<Self>;

    /// Does one [`Turn`]'s units of the task. Until it returns, the worker does nothing else.
    fn advance(&self, task: &mut Self::Task, turn: &mut Turn<Self::Answer>) -> Step<Self::Answer>;

    /// The answer as it goes over the wire. Must be quick, as [`decode`](Self::decode). Where a request has a
    /// [`Sink`] that takes its body, the sink encodes the answer instead.
    fn encode(&self, answer: Self::Answer) -> Reply;

    /// The answer to a request that is turned away.
    fn refusal(&self) -> Self::Answer;

    /// The most bytes a request can have, its body excluded: 64 KiB unless the system says otherwise. A longer request
    /// is malformed.
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

/// What [`Handler::decode`] makes of bytes.
pub type Decoding<H> = Result<Option<Decoded<<H as Handler>::Task, <H as Handler>::Answer>>, Malformed>;

/// Bytes that cannot become a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A request in full, but for its body, if it has one: that follows the bytes it took.
#[derive(Debug)]
pub struct Decoded<T, A> {
    pub(crate) used_bytes: usize,
    pub(crate) asked: Asked<T, A>,
    pub(crate) body: Option<Box<dyn Sink<A>>>,
}

/// What a request asks for.
#[derive(Debug)]
pub(crate) enum Asked<T, A> {
    /// Nothing that needs work: it never waits.
    Known(A),
    Work {
        job: Job,
        task: T,
        key: Option<Vec<u8>>,
    },
}

impl<T, A> Decoded<T, A> {
    /// A request of the first `used_bytes` bytes, to be served by a worker. The discipline may know the `job`; its sizes
    /// are in the unit of [`Step::Continue`].
    pub fn work(used_bytes: usize, job: Job, task: T) -> Self {
        Self { used_bytes, asked: Asked::Work { job, task, key: None }, body: None }
    }

    /// A request of the first `used_bytes` bytes whose answer needs no work. It never waits.
    pub fn answer(used_bytes: usize, answer: A) -> Self {
        Self { used_bytes, asked: Asked::Known(answer), body: None }
    }

    /// Requests with the same key may have the same answer: this one joins the one that waits or is served already, and
    /// adds its weight to it. Changes nothing where no work is asked for.
    #[must_use]
    pub fn sharing(mut self, with: Vec<u8>) -> Self {
        if let Asked::Work { key, .. } = &mut self.asked {
            *key = Some(with);
        }
        self
    }

    /// The request has a body, which goes there. The work waits and is done while the body comes; a worker whose work is
    /// done waits for no body.
    #[must_use]
    pub fn with_body(mut self, sink: impl Sink<A>) -> Self {
        self.body = Some(Box::new(sink));
        self
    }
}
