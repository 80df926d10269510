//! The server: each request occupies a worker for the time drawn from its nonce and the server's seed.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use kendall_service::{
    Config, Counter, Decoded, Decoding, Handler, Interrupt, Malformed, Registry, Reply, Server, ServiceError,
    Step, Then, Turn,
};
use kendall_station::{Discipline, GittinsTable, Job, Knows, Law, Size};
use kendall_stats::random::{Purpose, stream};

use crate::holding::{compute, sleep, sleep_precisely};
use crate::protocol::{ANSWER_BYTES, NoRequest, REFUSED, REQUEST_BYTES, decode_request, encode_answer};

const NS_PER_S: f64 = 1e9;
/// A worker's first chunk: a millisecond.
const FIRST_CHUNK_NS: u64 = 1_000_000;
/// The longest hold, whatever the law's tail: a day.
const LONGEST_S: f64 = 86_400.0;
/// How long a client may keep a connection open without a request. The generator's pool decides which of its connections stay
/// idle.
pub(crate) const REST: Duration = Duration::from_secs(3600);

/// How a worker holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HoldMode {
    /// The worker sleeps, so there can be more workers than processors.
    #[default]
    Sleeping,
    /// The worker keeps a processor busy for the drawn time, as a server that computes does. With more workers than processors, or
    /// other busy programs, it takes longer.
    Computing,
}

/// The protocol of the clients of a synthetic server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// A request at a time, answered on its own connection: [`crate::protocol`].
    #[default]
    Requests,
    /// Users hold sessions, and answers arrive on the session of the user that the request names:
    /// [`crate::protocol::session`].
    Sessions,
}

/// The options of a synthetic server.
#[derive(Clone, Debug)]
pub struct HoldOptions {
    /// The options of every server: its workers are the servers of the station, and `max_waiting` more requests can wait.
    pub service: Config,
    /// The law of the hold times.
    pub law: Law,
    /// The seed of the hold times.
    pub seed: u64,
    /// How workers hold.
    pub mode: HoldMode,
    /// The protocol of clients.
    pub dialect: Dialect,
}

/// Opens the sockets of a server of requests.
///
/// # Errors
/// Fails if an address is in use or the file of stamps cannot be written.
pub fn bind(options: HoldOptions) -> Result<Server<Hold>, ServiceError> {
    Server::bind(config(&options), Hold::new(&options))
}

/// The configuration of the runtime.
pub(crate) fn config(options: &HoldOptions) -> Config {
    Config { patience: REST, ..options.service.clone() }
}

/// The synthetic server in the form of the runtime. The unit of work is a nanosecond; sizes are in seconds.
#[derive(Debug)]
pub struct Hold {
    law: Law,
    seed: u64,
    mode: HoldMode,
    discipline: Discipline,
    /// The expected size of every request, for disciplines that order by it.
    expected: Size,
    /// The total time by which holds were longer than drawn, in nanoseconds.
    overshoot_ns: Counter,
}

/// A request in the runtime.
#[derive(Debug)]
pub struct Task {
    nonce: u64,
    left_ns: i64,
}

/// The result of a turn.
pub(crate) enum HoldProgress {
    All,
    Part { attained: f64 },
}

thread_local! {
    /// Whether this worker's sleeps are precise already.
    static PRECISE: Cell<bool> = const { Cell::new(false) };
}

impl Hold {
    /// The system without its sockets.
    pub fn new(options: &HoldOptions) -> Self {
        let discipline = options.service.discipline;
        let expected = match (discipline.knows(), &options.law) {
            (Knows::WeightAndMean | Knows::WeightAndLaw, Law::Exponential { mean_s }) => {
                Size::Memoryless(*mean_s)
            }
            (Knows::WeightAndMean | Knows::WeightAndLaw, law) => Size::Law(Arc::new(GittinsTable::new(law))),
            (Knows::Nothing | Knows::Weight | Knows::Size, _) => Size::Unknown,
        };
        Self {
            law: options.law.clone(),
            seed: options.seed,
            mode: options.mode,
            discipline,
            expected,
            overshoot_ns: Counter::default(),
        }
    }

    /// The hold time of the request with this nonce, in seconds: a pure function of the seed and the nonce.
    pub fn hold_s(&self, nonce: u64) -> f64 {
        self.law.sample(&mut stream(self.seed, Purpose::Service, nonce)).min(LONGEST_S)
    }

    /// The job of the request with this nonce, for the discipline, and its hold time in nanoseconds.
    pub(crate) fn work(&self, nonce: u64) -> (Job, i64) {
        let hold_s = self.hold_s(nonce);
        let size = match self.discipline.knows() {
            Knows::Size => Size::Exactly(hold_s),
            Knows::Nothing | Knows::Weight | Knows::WeightAndMean | Knows::WeightAndLaw => {
                self.expected.clone()
            }
        };
        (Job { size, ..Job::new() }, (hold_s * NS_PER_S).round() as i64)
    }

    /// Holds a worker for the rest of a request, or a part of it.
    pub(crate) fn hold(&self, left_ns: &mut i64, units: u64, interrupt: &Interrupt) -> HoldProgress {
        if !PRECISE.replace(true) {
            sleep_precisely();
        }
        let stretch_ns = self.stretch_ns(*left_ns, units);
        let held_ns = match self.mode {
            HoldMode::Sleeping => sleep(stretch_ns, interrupt),
            HoldMode::Computing => compute(stretch_ns, interrupt),
        };
        self.overshoot_ns.inc_by((held_ns - stretch_ns).max(0).cast_unsigned());
        *left_ns -= held_ns;
        if *left_ns <= 0 {
            HoldProgress::All
        } else {
            HoldProgress::Part { attained: held_ns as f64 / NS_PER_S }
        }
    }

    /// How long to hold before the next check: to the end, since a more urgent request interrupts, except where requests
    /// alternate or become less urgent as they are served.
    fn stretch_ns(&self, left_ns: i64, units: u64) -> i64 {
        if self.discipline.shares() || self.discipline.knows() == Knows::WeightAndLaw {
            left_ns.min(i64::try_from(units).unwrap_or(i64::MAX))
        } else {
            left_ns
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
            HoldProgress::All => Step::Done(encode_answer(task.nonce)),
            HoldProgress::Part { attained } => Step::Continue { attained },
        }
    }

    fn encode(&self, answer: Self::Answer) -> Reply {
        Reply::new(answer.to_vec(), Then::Keep)
    }

    fn refusal(&self) -> Self::Answer {
        REFUSED
    }

    fn register(&self, registry: &mut Registry) {
        let help = "Total time by which holds were longer than drawn, in nanoseconds";
        registry.register("hold_overshoot_nanoseconds", help, self.overshoot_ns.clone());
    }
}
