//! What a system tells the runtime: where a request ends, what work it is, and how to do a piece of it.

use kendall_station::Job;
use prometheus_client::registry::Registry;

use crate::body::{Body, Sink};

/// A system, as the runtime sees it. One handler serves all connections and all workers.
pub trait Handler: Send + Sync + 'static {
    /// One request in the hands of a worker, with all that was done for it so far.
    type Task: Send + 'static;

    /// The most bytes a request can have, its body excluded. A longer one is malformed.
    fn max_request_bytes(&self) -> usize;

    /// Reads the request at the beginning of `bytes`, which are never empty; `None` if it is not there in full.
    /// Called again from the start of the request whenever more bytes have come. Must be quick: it runs on the
    /// thread of all sockets.
    ///
    /// # Errors
    /// Fails on bytes that cannot become a request. The connection is then closed without an answer.
    fn decode(&self, bytes: &[u8]) -> Result<Option<Decoded<Self::Task>>, Malformed>;

    /// How many units to do in a worker's first chunk. The runtime measures how long a chunk takes and adapts.
    /// A unit is whatever the handler can count: candidates, rows, bytes.
    fn first_chunk(&self) -> u64 {
        1
    }

    /// Does at most `units` more units of the task, on the given worker; workers count from 0. Until it returns,
    /// the worker does nothing else.
    fn advance(&self, worker: usize, task: &mut Self::Task, units: u64) -> Step;

    /// Asks the `advance` that this worker is in to return before its units are done, for somebody more urgent
    /// came or its client went. Called from any thread. A wish that comes while the worker is in no `advance` may
    /// cut the next one short; one that is ignored costs no more than the rest of the chunk.
    fn interrupt(&self, worker: usize) {
        let _ = worker;
    }

    /// Requests other than the one in hand, by their [keys](Decoded::Work), that were answered on the way. Asked
    /// after each `advance`.
    fn answered_besides(&self) -> Vec<(Vec<u8>, Reply)> {
        Vec::new()
    }

    /// The service that a task received so far, in ns, where the handler knows better than the wall clock: a
    /// process that shares the processors with others, say.
    fn service_ns(&self, task: &Self::Task) -> Option<i64> {
        let _ = task;
        None
    }

    /// The part of a done task's service, in ns, that every request costs whatever it asks, where the handler tells it apart.
    fn fixed_ns(&self, task: &Self::Task) -> Option<i64> {
        let _ = task;
        None
    }

    /// Whether the body of a request is still wanted once its work came to this reply. If not, the reply is sent at once,
    /// as it is, and what the client still sends is read and dropped.
    fn wants_body(&self, reply: &Reply) -> bool {
        let _ = reply;
        true
    }

    /// The answer to a request that is turned away. May be empty. It is sent as it is, and no [`Sink`] makes anything of it.
    fn refusal(&self) -> Reply;

    /// Adds the system's own metrics to those of the runtime. Names get the prefix `kendall_`.
    fn register(&self, registry: &mut Registry) {
        let _ = registry;
    }
}

/// Bytes that cannot become a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A request in full, but for its body, if it has one: that follows the bytes it took.
#[derive(Debug)]
pub enum Decoded<Task> {
    /// A request whose answer needs no work. It never waits.
    Answer {
        /// How many bytes it took.
        used_bytes: usize,
        /// The answer.
        reply: Reply,
        /// Where its body goes, if it has one.
        body: Option<Box<dyn Sink>>,
    },
    /// A request to be served by a worker.
    Work {
        /// How many bytes it took.
        used_bytes: usize,
        /// What the discipline may know of it. Sizes are in the unit of [`Step::Continue`].
        job: Job,
        /// The work itself.
        task: Task,
        /// What the request asks, if one that asks the same may have the same answer: it then joins the one that
        /// waits or is served already, and adds its weight to it.
        key: Option<Vec<u8>>,
        /// Where its body goes, if it has one. The work waits and is done while the body comes; a worker whose work
        /// is done waits for no body.
        body: Option<Box<dyn Sink>>,
    },
}

/// What came of a chunk of work.
#[derive(Debug)]
pub enum Step {
    /// There is more to do.
    Continue {
        /// The service that the job received in this chunk.
        attained: f64,
    },
    /// The answer has begun, and there is more to do: a [`Body::Stream`] that grows with the work. All who asked are
    /// sent it from its start, those who come to ask the same later, too. The work ends with [`Done`](Self::Done), whose
    /// own reply reaches nobody then. An answer that has begun and cannot go on ends with a reset of its connections.
    Begun {
        /// What is sent from now on.
        reply: Reply,
        /// The service that the job received in this chunk.
        attained: f64,
    },
    /// The answer is there.
    Done(Reply),
}

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
}

/// What becomes of a connection after a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It stays open for the next request.
    Keep,
    /// It is closed. Bytes of the client beyond the request are ignored.
    Close,
}
