//! The server: each request keeps a worker for the time that its nonce and the server's seed draw.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use kendall_service::{
    Config, Counter, Decoded, Decoding, Handler, Interrupt, Malformed, Registry, Reply, Server, ServiceError,
    Step, Then, Turn,
};
use kendall_station::{Discipline, GittinsTable, Job, Law, Size};
use kendall_stats::random::{Purpose, stream};

use crate::holding::{compute, sleep, sleep_precisely};
use crate::protocol::{ANSWER_BYTES, NoRequest, REFUSED, REQUEST_BYTES, decode_request, encode_answer};

const NS_PER_S: f64 = 1e9;
/// A worker's first chunk: a millisecond.
const FIRST_CHUNK_NS: u64 = 1_000_000;
/// Nobody is held longer than a day, whatever the law's tail.
const LONGEST_S: f64 = 86_400.0;
/// How long a client may have a connection open and ask nothing. It is the generator's pool that decides which of its
/// connections rest.
pub(crate) const REST: Duration = Duration::from_secs(3600);

/// How a worker holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum How {
    /// It sleeps, so there may be more workers than processors.
    #[default]
    Sleeping,
    /// It keeps a processor busy for the drawn time, as a server that computes does. With more workers than processors, or
    /// others who want them, it takes longer.
    Computing,
}

/// What clients of a synthetic server speak.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// A request at a time, answered on its own connection: [`crate::protocol`].
    #[default]
    Requests,
    /// Users hold sessions, and answers arrive on the session of the user that the request names:
    /// [`crate::protocol::session`].
    Sessions,
}

/// What a synthetic server is told at its start.
#[derive(Clone, Debug)]
pub struct Options {
    /// What any server is told: its workers are the servers of the station, and it has room for `max_waiting` more requests.
    pub service: Config,
    /// The law of the hold times.
    pub law: Law,
    /// The seed of the hold times.
    pub seed: u64,
    /// How workers hold.
    pub how: How,
    /// What clients speak.
    pub dialect: Dialect,
}

/// Opens the sockets of a server of requests.
///
/// # Errors
/// Fails if an address is taken or the file of stamps cannot be written.
pub fn bind(options: Options) -> Result<Server<Hold>, ServiceError> {
    Server::bind(config(&options), Hold::new(&options))
}

/// What the runtime is told.
pub(crate) fn config(options: &Options) -> Config {
    Config { patience: REST, request_deadline: REST, ..options.service.clone() }
}

/// The synthetic server as the runtime sees it. The unit of work is a nanosecond; sizes are in seconds.
#[derive(Debug)]
pub struct Hold {
    law: Law,
    seed: u64,
    how: How,
    discipline: Discipline,
    /// What the orders that look at expected sizes are told of every request.
    expected: Size,
    /// By how much holds were longer than drawn, in nanoseconds, over all.
    overshoot_ns: Counter,
}

/// A request in the hands of the runtime.
#[derive(Debug)]
pub struct Task {
    nonce: u64,
    left_ns: i64,
}

/// What came of a turn.
pub(crate) enum Held {
    All,
    Part { attained: f64 },
}

thread_local! {
    /// Whether this worker's sleeps are precise already.
    static PRECISE: Cell<bool> = const { Cell::new(false) };
}

impl Hold {
    /// The system without its sockets.
    pub fn new(options: &Options) -> Self {
        let discipline = options.service.discipline;
        let expected = match (discipline, &options.law) {
            (Discipline::Gittins | Discipline::CMu, Law::Exponential { mean_s }) => Size::Memoryless(*mean_s),
            (Discipline::Gittins | Discipline::CMu, law) => Size::Law(Arc::new(GittinsTable::new(law))),
            _ => Size::Unknown,
        };
        Self {
            law: options.law.clone(),
            seed: options.seed,
            how: options.how,
            discipline,
            expected,
            overshoot_ns: Counter::default(),
        }
    }

    /// How long the request with this nonce is held, in seconds: a pure function of the seed and the nonce.
    pub fn hold_s(&self, nonce: u64) -> f64 {
        self.law.sample(&mut stream(self.seed, Purpose::Service, nonce)).min(LONGEST_S)
    }

    /// What the discipline may know of the request with this nonce, and for how many nanoseconds it is held.
    pub(crate) fn work(&self, nonce: u64) -> (Job, i64) {
        let hold_s = self.hold_s(nonce);
        let size = match self.discipline {
            Discipline::ShortestRemaining => Size::Exactly(hold_s),
            _ => self.expected.clone(),
        };
        (Job { size, ..Job::new() }, (hold_s * NS_PER_S).round() as i64)
    }

    /// Holds a worker for the rest of a request, or a part of it.
    pub(crate) fn hold(&self, left_ns: &mut i64, units: u64, interrupt: &Interrupt) -> Held {
        if !PRECISE.replace(true) {
            sleep_precisely();
        }
        let stretch_ns = self.stretch_ns(*left_ns, units);
        let held_ns = match self.how {
            How::Sleeping => sleep(stretch_ns, interrupt),
            How::Computing => compute(stretch_ns, interrupt),
        };
        self.overshoot_ns.inc_by((held_ns - stretch_ns).max(0).cast_unsigned());
        *left_ns -= held_ns;
        if *left_ns <= 0 { Held::All } else { Held::Part { attained: held_ns as f64 / NS_PER_S } }
    }

    /// How long to hold before looking up: to the end, since a more urgent request interrupts, but where requests take turns or
    /// become less urgent as they are served.
    fn stretch_ns(&self, left_ns: i64, units: u64) -> i64 {
        match self.discipline {
            Discipline::ProcessorSharing | Discipline::Gittins => {
                left_ns.min(i64::try_from(units).unwrap_or(i64::MAX))
            }
            _ => left_ns,
        }
    }
}

impl Handler for Hold {
    type Task = Task;
    type Answer = [u8; ANSWER_BYTES];

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn decode(&self, bytes: &[u8]) -> Decoding<Self> {
        let nonce = match decode_request(bytes) {
            Ok(nonce) => nonce,
            Err(NoRequest::Incomplete) => return Ok(None),
            Err(NoRequest::Zero) => return Err(Malformed),
        };
        let (job, left_ns) = self.work(nonce);
        Ok(Some(Decoded::work(REQUEST_BYTES, job, Task { nonce, left_ns })))
    }

    fn first_chunk(&self) -> u64 {
        FIRST_CHUNK_NS
    }

    fn advance(&self, task: &mut Task, turn: &mut Turn<Self::Answer>) -> Step<Self::Answer> {
        match self.hold(&mut task.left_ns, turn.units(), turn.interrupt()) {
            Held::All => Step::Done(encode_answer(task.nonce)),
            Held::Part { attained } => Step::Continue { attained },
        }
    }

    fn encode(&self, answer: Self::Answer) -> Reply {
        Reply::new(answer.to_vec(), Then::Keep)
    }

    fn refusal(&self) -> Self::Answer {
        REFUSED
    }

    fn register(&self, registry: &mut Registry) {
        let help = "By how much holds were longer than drawn, in nanoseconds, over all";
        registry.register("hold_overshoot_nanoseconds", help, self.overshoot_ns.clone());
    }
}
