//! The server: each request keeps a worker for the time that its nonce and the server's seed draw.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kendall_service::{
    Config, Counter, Decoded, Handler, Malformed, Registry, Reply, Server, ServiceError, Step, Then,
};
use kendall_station::{Discipline, GittinsTable, Job, Law, Size};
use kendall_stats::random::{Purpose, stream};
use rustix::process::setpriority_process;

use crate::holding::{Bell, sleep_precisely};
use crate::protocol::{NoRequest, REFUSED, REQUEST_BYTES, decode_request, encode_answer};

const NS_PER_S: f64 = 1e9;
/// Nobody is held longer than a day, whatever the law's tail.
const LONGEST_S: f64 = 86_400.0;
/// How long a client may have a connection open and ask nothing. It is the generator's pool that decides which of its
/// connections rest.
const REST: Duration = Duration::from_secs(3600);

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
}

/// Opens the server's sockets.
///
/// # Errors
/// Fails if an address is taken, the file of stamps cannot be written or there are no descriptors left.
pub fn bind(options: Options) -> Result<Server<Hold>, ServiceError> {
    let service = Config { patience: REST, request_deadline: REST, ..options.service.clone() };
    let hold = Hold::new(&options).map_err(|source| ServiceError::Start { what: "workers", source })?;
    Server::bind(service, hold)
}

/// Serves until SIGINT or SIGTERM. Calls `ready` with the address once connections are accepted. Where that is permitted,
/// sleeping workers come before others of this machine: they ask for the processor for a moment, and what makes them wait
/// for it is no part of the law.
///
/// # Errors
/// As [`bind`], and if the stamps cannot be written.
pub fn serve(options: Options, ready: impl FnOnce(SocketAddr)) -> Result<(), ServiceError> {
    if options.how == How::Sleeping {
        // Refused without CAP_SYS_NICE; the overshoot that this leaves is in the stamps. The threads to come inherit it.
        let _ = setpriority_process(None, -20);
    }
    bind(options)?.run_until_signalled(ready)
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
    bells: Vec<Bell>,
    /// By how much holds were longer than drawn, in nanoseconds, over all.
    overshoot_ns: Counter,
}

/// A request in the hands of the runtime.
#[derive(Debug)]
pub struct Task {
    nonce: u64,
    left_ns: i64,
}

thread_local! {
    /// Whether this worker's sleeps are precise already.
    static PRECISE: Cell<bool> = const { Cell::new(false) };
}

impl Hold {
    /// The system without its sockets.
    ///
    /// # Errors
    /// Fails where there are no descriptors left.
    pub fn new(options: &Options) -> io::Result<Self> {
        let discipline = options.service.discipline;
        let expected = match (discipline, &options.law) {
            (Discipline::Gittins | Discipline::CMu, Law::Exponential { mean_s }) => Size::Memoryless(*mean_s),
            (Discipline::Gittins | Discipline::CMu, law) => Size::Law(Arc::new(GittinsTable::new(law))),
            _ => Size::Unknown,
        };
        Ok(Self {
            law: options.law.clone(),
            seed: options.seed,
            how: options.how,
            discipline,
            expected,
            bells: (0..options.service.workers.get()).map(|_| Bell::new()).collect::<io::Result<_>>()?,
            overshoot_ns: Counter::default(),
        })
    }

    /// How long the request with this nonce is held, in seconds: a pure function of the seed and the nonce.
    pub fn hold_s(&self, nonce: u64) -> f64 {
        self.law.sample(&mut stream(self.seed, Purpose::Service, nonce)).min(LONGEST_S)
    }

    fn job(&self, hold_s: f64) -> Job {
        let size = match self.discipline {
            Discipline::ShortestRemaining => Size::Exactly(hold_s),
            _ => self.expected.clone(),
        };
        Job { size, ..Job::new() }
    }

    /// How long to hold before looking up: to the end, since who is more urgent rings, but where requests take turns or
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

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn decode(&self, bytes: &[u8]) -> Result<Option<Decoded<Task>>, Malformed> {
        let nonce = match decode_request(bytes) {
            Ok(nonce) => nonce,
            Err(NoRequest::Incomplete) => return Ok(None),
            Err(NoRequest::Zero) => return Err(Malformed),
        };
        let hold_s = self.hold_s(nonce);
        let task = Task { nonce, left_ns: (hold_s * NS_PER_S).round() as i64 };
        Ok(Some(Decoded::Work {
            used_bytes: REQUEST_BYTES,
            job: self.job(hold_s),
            task,
            key: None,
            body: None,
        }))
    }

    fn first_chunk(&self) -> u64 {
        Duration::from_millis(1).as_nanos() as u64
    }

    fn advance(&self, worker: usize, task: &mut Task, units: u64) -> Step {
        if !PRECISE.replace(true) {
            sleep_precisely();
        }
        let (bell, stretch_ns) = (&self.bells[worker], self.stretch_ns(task.left_ns, units));
        let held_ns = match self.how {
            How::Sleeping => bell.sleep(stretch_ns),
            How::Computing => bell.compute(stretch_ns),
        };
        self.overshoot_ns.inc_by((held_ns - stretch_ns).max(0).cast_unsigned());
        task.left_ns -= held_ns;
        if task.left_ns <= 0 {
            let bytes = encode_answer(task.nonce).to_vec();
            return Step::Done(Reply::new(bytes, Then::Keep));
        }
        Step::Continue { attained: held_ns as f64 / NS_PER_S }
    }

    fn interrupt(&self, worker: usize) {
        self.bells[worker].ring();
    }

    fn refusal(&self) -> Reply {
        Reply::new(REFUSED.to_vec(), Then::Keep)
    }

    fn register(&self, registry: &mut Registry) {
        let help = "By how much holds were longer than drawn, in nanoseconds, over all";
        registry.register("hold_overshoot_nanoseconds", help, self.overshoot_ns.clone());
    }
}
