//! The server: each request is a search, executed in the order of the discipline, by one of several
//! assignments of searches to processors.
//!
//! Every complete request gets exactly 8 bytes. The protocol has no error, and course clients wait for ever
//! for a missing answer, so a request that finds nothing, or is rejected, gets the answer 0.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kendall_digest::gpu::{Device, Gpu, Sums};
use kendall_digest::sha256::{Outcome, Targets, scan};
use kendall_digest::{Engine, Interrupt};
use kendall_service::{
    Counter, Decoded, Decoding, Handler, Registry, Reply, Server, ServiceError, Step, Then, Turn,
};
use kendall_station::{Job, Size};

use crate::gang::{BoardEntry, Gang, Lead};
use crate::memory::Answers;
use crate::options::{Execution, ReverseOptions, Sharing};
use crate::process::{Finding, Process};
use crate::protocol::{NOT_FOUND, REQUEST_BYTES, Request, encode_answer};
use crate::search::Key;

/// The candidates of a worker's first chunk, well below a millisecond.
const FIRST_CHUNK: u64 = 16_384;

/// Opens the server's sockets and starts the threads that search.
///
/// # Errors
/// Fails if an address is in use, the file of stamps cannot be written or threads cannot be started.
pub fn bind(options: ReverseOptions) -> Result<Server<Reverse>, ServiceError> {
    let runtime = options.runtime();
    Server::bind(runtime, Reverse::new(options)?)
}

/// Serves until SIGINT or SIGTERM. Calls `ready` with the address once the server accepts connections.
///
/// # Errors
/// As [`bind`], and if the stamps cannot be written.
pub fn serve(options: ReverseOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), ServiceError> {
    bind(options)?.run_until_signalled(ready)
}

/// Hash reversal in the form of the runtime. The unit of work is a candidate.
#[derive(Debug)]
pub struct Reverse {
    searchers: Searchers,
    engine: Engine,
    sharing: Sharing,
    most_candidates: u64,
    deadline: Duration,
    answers: Option<Answers>,
    /// Candidates hashed by the threads of this server.
    hashed: Counter,
    /// Requests whose range has no answer.
    not_found: Counter,
    /// Requests whose range ends before it begins.
    empty: Counter,
    /// Requests whose range is wider than the limit.
    beyond_bound: Counter,
    /// Requests that were abandoned at the deadline.
    late: Counter,
    /// Requests with a priority outside the protocol.
    odd_priorities: Counter,
    /// Processes that could not be started or ended without a result.
    process_failures: Counter,
}

/// The searcher of a server.
#[derive(Debug)]
enum Searchers {
    Gang(Gang),
    /// The workers search by themselves, without a gang.
    Workers,
    Processes {
        program: PathBuf,
    },
}

/// A search in the runtime.
#[derive(Debug)]
pub struct Task {
    key: Key,
    work: Work,
    spent: Duration,
}

#[derive(Debug)]
enum Work {
    Shared(BoardEntry),
    /// The search has reached this candidate.
    Alone(u64),
    Process(Option<Process>),
}

impl Reverse {
    /// The system without its sockets.
    ///
    /// # Errors
    /// Fails if threads cannot be started.
    pub fn new(options: ReverseOptions) -> Result<Self, ServiceError> {
        let threads = options.service.workers;
        let hashed = Counter::default();
        let searchers = match options.execution {
            Execution::SharedChunks => {
                let card = card(options.device)?;
                let gang = Gang::new(
                    threads,
                    card,
                    options.cluster,
                    options.engine,
                    options.sharing,
                    hashed.clone(),
                );
                Searchers::Gang(
                    gang.map_err(|source| ServiceError::Start { what: "threads that search", source })?,
                )
            }
            Execution::Sequential | Execution::ThreadPool => Searchers::Workers,
            Execution::ProcessPerRequest => Searchers::Processes { program: options.program },
        };
        Ok(Self {
            searchers,
            engine: options.engine,
            sharing: options.sharing,
            most_candidates: options.most_candidates,
            deadline: options.deadline,
            hashed,
            answers: Answers::new(options.memory, options.memory_entries),
            not_found: Counter::default(),
            empty: Counter::default(),
            beyond_bound: Counter::default(),
            late: Counter::default(),
            odd_priorities: Counter::default(),
            process_failures: Counter::default(),
        })
    }

    /// The answer to a search that has ended.
    fn answer(&self, key: Key, found: Option<u64>) -> Option<u64> {
        if let Some(answers) = &self.answers {
            answers.remember(key, found);
        }
        found
    }

    /// Continues a search on the runtime's own worker.
    fn search(&self, key: Key, at: &mut u64, turn: &Turn<Option<u64>>) -> Step<Option<u64>> {
        let to = at.saturating_add(turn.units()).min(key.end);
        let from = *at;
        let interrupt = Interrupt::over(turn.interrupt().word());
        let outcome = scan(self.engine, &Targets::one(key.digest), from..to, interrupt);
        self.hashed.inc_by(outcome.reached(&(from..to)) - from);
        *at = match outcome {
            Outcome::Found { value, .. } => return Step::Done(self.answer(key, Some(value))),
            Outcome::Absent if to == key.end => return Step::Done(self.answer(key, None)),
            Outcome::Absent => to,
            Outcome::Stopped { at } => at,
        };
        Step::Continue { attained: (*at - from) as f64 }
    }

    /// Does a turn's work on a search.
    fn advance_search(&self, task: &mut Task, turn: &mut Turn<Option<u64>>) -> Step<Option<u64>> {
        let key = task.key;
        match (&self.searchers, &mut task.work) {
            (Searchers::Gang(gang), Work::Shared(place)) => {
                let lead = gang.lead(place, turn.units(), turn.interrupt());
                for (key, found) in gang.ended_besides() {
                    turn.answer_besides(key.to_bytes(), self.answer(key, found));
                }
                match lead {
                    Lead::Unfinished(tested) => Step::Continue { attained: tested as f64 },
                    Lead::Ended(found) => Step::Done(self.answer(key, found)),
                }
            }
            (Searchers::Workers, Work::Alone(at)) => self.search(key, at, turn),
            (Searchers::Processes { program }, Work::Process(process)) => {
                match self.await_process(program, key, process) {
                    Awaited::NotYet => Step::Continue { attained: 0.0 },
                    Awaited::Failed => Step::Done(None),
                    Awaited::Finding(Finding { value, processor_ns }) => {
                        turn.report_service_ns(processor_ns);
                        Step::Done(self.answer(key, value))
                    }
                }
            }
            _ => unreachable!("only a searching executor has tasks"),
        }
    }

    /// Starts the process of a request, or checks whether it is done.
    fn await_process(&self, program: &Path, key: Key, process: &mut Option<Process>) -> Awaited {
        let result = match process {
            None => Process::start(program, self.engine, key).map(|started| {
                *process = Some(started);
                None
            }),
            Some(process) => process.wait(),
        };
        match result {
            Ok(None) => Awaited::NotYet,
            Ok(Some(finding)) => Awaited::Finding(finding),
            Err(error) => {
                self.process_failures.inc();
                tracing::error!(%error, program = %program.display(), "a process for a request failed");
                Awaited::Failed
            }
        }
    }
}

/// The graphics card, if one is requested and found.
fn card(device: Device) -> Result<Option<Gpu>, ServiceError> {
    if device == Device::Cpu {
        return Ok(None);
    }
    match (Gpu::find(Sums::default()), device) {
        (Ok(card), _) => {
            tracing::info!(card = card.name(), "a graphics card takes part in the search");
            Ok(Some(card))
        }
        (Err(absent), Device::Gpu) => {
            Err(ServiceError::Start { what: "search on a graphics card", source: io::Error::other(absent) })
        }
        (Err(absent), _) => {
            tracing::info!(%absent, "the search uses no graphics card");
            Ok(None)
        }
    }
}

/// The outcome of waiting for a process.
enum Awaited {
    NotYet,
    Finding(Finding),
    Failed,
}

impl Handler for Reverse {
    type Task = Task;
    /// The number behind the digest, if there is one in the range.
    type Answer = Option<u64>;

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn decode(&self, bytes: &[u8]) -> Decoding<Self> {
        let Some(request) = Request::decode(bytes) else { return Ok(None) };
        if !(1..=16).contains(&request.priority) {
            self.odd_priorities.inc();
        }
        if request.candidates() == 0 {
            self.empty.inc();
            tracing::debug!(start = request.start, end = request.end, "an empty range");
            return Ok(Some(Decoded::answer(REQUEST_BYTES, None)));
        }
        if let Some(found) = self.answers.as_ref().and_then(|answers| answers.recall(&request)) {
            return Ok(Some(Decoded::answer(REQUEST_BYTES, found)));
        }
        if request.candidates() > self.most_candidates {
            self.beyond_bound.inc();
            tracing::debug!(start = request.start, end = request.end, "a range that is too wide");
            return Ok(Some(Decoded::answer(REQUEST_BYTES, None)));
        }
        let job = Job {
            // A request of weight 0 would wait for ever while there are others.
            weight: f64::from(request.priority.max(1)),
            size: Size::UniformUpTo(request.candidates() as f64),
            attained: 0.0,
        };
        let key = Key::of(&request);
        let work = match &self.searchers {
            Searchers::Gang(gang) => Work::Shared(gang.enter(key)),
            Searchers::Workers => Work::Alone(key.start),
            Searchers::Processes { .. } => Work::Process(None),
        };
        let request = Decoded::work(REQUEST_BYTES, job, Task { key, work, spent: Duration::ZERO });
        // Two requests are equal if they only differ in the priority.
        Ok(Some(match self.sharing {
            Sharing::On => request.sharing(key.to_bytes()),
            Sharing::Off => request,
        }))
    }

    fn first_chunk(&self) -> u64 {
        FIRST_CHUNK
    }

    fn advance(&self, task: &mut Task, turn: &mut Turn<Option<u64>>) -> Step<Option<u64>> {
        let begun = Instant::now();
        let step = self.advance_search(task, turn);
        task.spent += begun.elapsed();
        if matches!(step, Step::Continue { .. }) && task.spent >= self.deadline {
            self.late.inc();
            tracing::debug!(start = task.key.start, end = task.key.end, "abandoned at the deadline");
            // The result is not cached: the rest of the range was not searched.
            return Step::Done(None);
        }
        step
    }

    fn encode(&self, answer: Option<u64>) -> Reply {
        if answer.is_none() {
            self.not_found.inc();
        }
        Reply::new(encode_answer(answer.unwrap_or(NOT_FOUND)).to_vec(), Then::Close)
    }

    /// The runtime counts it, so it is not a missing number.
    fn refusal(&self) -> Option<u64> {
        Some(NOT_FOUND)
    }

    fn register(&self, registry: &mut Registry) {
        let counters = [
            ("reverse_candidates", "Candidates hashed by the threads of this server", &self.hashed),
            ("reverse_not_found", "Requests without an answer", &self.not_found),
            ("reverse_empty_ranges", "Requests whose range ends before it begins", &self.empty),
            ("reverse_beyond_bound", "Requests whose range is wider than the limit", &self.beyond_bound),
            ("reverse_late", "Requests that were abandoned at the deadline", &self.late),
            ("reverse_odd_priorities", "Requests with a priority outside 1 to 16", &self.odd_priorities),
            ("reverse_process_failures", "Processes without a result", &self.process_failures),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
        if let Some(answers) = &self.answers {
            answers.register(registry);
        }
    }
}
