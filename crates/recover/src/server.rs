//! The server: each request is a search for a password and the derivation of a key, while its file arrives; then the server
//! returns the file, decrypted on the way.
//!
//! The protocol has no error message, so the server closes the connection of a failed request without a byte; the metrics
//! show the reason. Requests for the same password share the key; each has its own file.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kendall_digest::{Engine, Interrupt};
use kendall_record::clock::now_ns;
use kendall_service::{
    BodyFuture, Config, Counter, Decoded, Decoding, Handler, Malformed, Reader, Registry, Reply, Server,
    ServiceError, Sink, Step, Then, Turn, WholeBody,
};
use kendall_station::Job;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::cipher::Cipher;
use crate::keys::{Expectation, Key, Keys};
use crate::protocol::{BLOCK_BYTES, Dialect, HEAD_BYTES_AT_MOST, Head, NoHead, encode_answer};
use crate::search::{
    Finder, FinderError, FinderOptions, FoundPassword, Hash, Hunt, PasswordQuery, PasswordSource, Progress,
};
use crate::spool::{Spool, SpoolBudget, SpoolOptions};
use crate::trace::{Cost, Trace, TraceError};

/// The candidates of a worker's first chunk, well below a millisecond.
const FIRST_CHUNK: u64 = 65_536;

/// The options of a server of file recovery. Begin with [`RecoverOptions::new`] and replace what should differ.
#[derive(Clone, Debug)]
pub struct RecoverOptions {
    /// The options of every server.
    pub service: Config,
    /// The search for passwords.
    pub finder: FinderOptions,
    /// The dialect of the protocol.
    pub dialect: Dialect,
    /// The most keys in the cache.
    pub key_entries: NonZeroUsize,
    /// The storage of waiting files.
    pub spool: SpoolOptions,
    /// The most bytes of an encrypted file; a request with a longer one is closed unread.
    pub most_file_bytes: u64,
    /// The file for the costs of each request, if any.
    pub trace: Option<PathBuf>,
}

impl RecoverOptions {
    /// The defaults of every server with 1,024 connections, 65,536 keys, files of 1 GiB.
    pub fn new(listen: SocketAddr, engine: Engine) -> Self {
        Self {
            service: Config { max_connections: 1024, ..Config::new(listen) },
            finder: FinderOptions::new(engine),
            dialect: Dialect::default(),
            key_entries: NonZeroUsize::new(65_536).expect("it is not zero"),
            spool: SpoolOptions::default(),
            most_file_bytes: 1 << 30,
            trace: None,
        }
    }
}

/// The reason why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The runtime's error.
    #[error(transparent)]
    Service(#[from] ServiceError),
    /// The error of the finder.
    #[error(transparent)]
    Finder(#[from] FinderError),
    /// The error of the trace.
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// Opens the server's sockets.
///
/// # Errors
/// Fails if an address is in use, the file of stamps or the trace cannot be written or threads cannot be started.
pub fn bind(options: RecoverOptions) -> Result<Server<Recover>, ServerError> {
    let service = options.service.clone();
    Ok(Server::bind(service, Recover::new(options)?)?)
}

/// Serves until SIGINT or SIGTERM. Calls `ready` with the address once the server accepts connections.
///
/// # Errors
/// As [`bind`], and if the stamps cannot be written.
pub fn serve(options: RecoverOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), ServerError> {
    Ok(bind(options)?.run_until_signalled(ready)?)
}

/// File recovery in the form of the runtime. The unit of work is a candidate.
#[derive(Debug)]
pub struct Recover {
    finder: Finder,
    keys: Arc<Keys>,
    dialect: Dialect,
    budget: Arc<SpoolBudget>,
    most_file_bytes: u64,
    counts: Arc<Counts>,
    trace: Arc<Trace>,
}

/// The counters.
#[derive(Debug)]
struct Counts {
    outcomes: Family<[(&'static str, &'static str); 1], Counter>,
    search_s: Histogram,
    key_s: Histogram,
}

/// The outcome of a request, in addition to the runtime's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The file is decrypted and returned.
    Recovered,
    /// No candidate has its digest.
    NotFound,
    /// The search would exceed the limit of candidates.
    BeyondBound,
    /// No password has such a length.
    ImpossibleLength,
    /// The file is longer than the limit.
    TooLarge,
    /// The length of its file is not a multiple of a block.
    WrongLength,
    /// The file was encrypted under another password, or is damaged.
    WrongPadding,
    /// Fewer bytes of its file arrived than announced.
    Truncated,
}

impl Outcome {
    const ALL: [Self; 8] = [
        Self::Recovered,
        Self::NotFound,
        Self::BeyondBound,
        Self::ImpossibleLength,
        Self::TooLarge,
        Self::WrongLength,
        Self::WrongPadding,
        Self::Truncated,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Recovered => "recovered",
            Self::NotFound => "not-found",
            Self::BeyondBound => "beyond-bound",
            Self::ImpossibleLength => "impossible-length",
            Self::TooLarge => "too-large",
            Self::WrongLength => "wrong-length",
            Self::WrongPadding => "wrong-padding",
            Self::Truncated => "truncated",
        }
    }
}

impl Counts {
    fn count(&self, outcome: Outcome) {
        self.outcomes.get_or_create(&[("outcome", outcome.name())]).inc();
    }
}

/// A request in the runtime.
#[derive(Debug)]
pub struct Task {
    stage: Stage,
    searched: Duration,
}

#[derive(Debug)]
enum Stage {
    /// The search has tried this many candidates.
    Hunting { hunt: Box<Hunt>, tried: u64 },
    /// The password is known, and only the key is missing.
    Known { found: FoundPassword, _expectation: Expectation },
}

impl Recover {
    /// The system without its sockets.
    ///
    /// # Errors
    /// Fails if threads cannot be started or the trace cannot be written.
    pub fn new(options: RecoverOptions) -> Result<Self, ServerError> {
        // From 10 µs in steps of two to 84 s.
        let times = || Histogram::new(exponential_buckets(1e-5, 2.0, 24));
        let counts = Counts { outcomes: Family::default(), search_s: times(), key_s: times() };
        for outcome in Outcome::ALL {
            let _ = counts.outcomes.get_or_create(&[("outcome", outcome.name())]);
        }
        Ok(Self {
            keys: Arc::new(Keys::new(options.finder.engine, options.key_entries)),
            finder: Finder::new(options.finder)?,
            dialect: options.dialect,
            budget: SpoolBudget::new(options.spool),
            most_file_bytes: options.most_file_bytes,
            counts: Arc::new(counts),
            trace: Arc::new(Trace::create(options.trace.as_deref())?),
        })
    }

    /// The next step for a request whose file fits the cipher.
    fn course(&self, query: PasswordQuery) -> Course {
        if let Some(found) = self.finder.at_once(&query) {
            if let Some(key) = self.keys.cached(&found.password) {
                return Course::Answer(Ok(Solved { key, way: found.by, search_ns: 0, key_ns: 0 }));
            }
            let _expectation = self.keys.expect(&found.password);
            return Course::Work(Job::new(), Stage::Known { found, _expectation });
        }
        if self.finder.is_nowhere(&query) {
            return Course::Answer(Err(Some(Outcome::NotFound)));
        }
        let size = self.finder.size(&query);
        match self.finder.hunt(query) {
            Ok(hunt) => {
                let stage = Stage::Hunting { hunt: Box::new(hunt), tried: 0 };
                Course::Work(Job { size, ..Job::new() }, stage)
            }
            Err(error) => {
                tracing::debug!(%error, "a request is not searched for");
                Course::Answer(Err(Some(match error {
                    FinderError::Lengths(_) => Outcome::ImpossibleLength,
                    _ => Outcome::BeyondBound,
                })))
            }
        }
    }

    /// Continues the hunt; `Err` is the result of the step while no password is found.
    fn hunt(
        &self,
        hunt: &mut Hunt,
        tried: &mut u64,
        turn: &Turn<Answer>,
    ) -> Result<FoundPassword, Step<Answer>> {
        match hunt.advance(Interrupt::over(turn.interrupt().word()), turn.units()) {
            Progress::More { tried: now } => {
                let attained = (now - *tried) as f64;
                *tried = now;
                Err(Step::Continue { attained })
            }
            Progress::Found(found) => Ok(found),
            Progress::Nowhere { .. } => Err(Step::Done(Err(Some(Outcome::NotFound)))),
        }
    }
}

/// The next step for a request.
enum Course {
    /// The key is known, or the request fails.
    Answer(Answer),
    Work(Job, Stage),
}

/// The key of a search: requests with the same key share one flight.
fn key(query: &PasswordQuery) -> Vec<u8> {
    let (algorithm, digest): (u8, &[u8]) = match &query.hash {
        Hash::Sha1(digest) => (0, digest),
        Hash::Sha256(digest) => (1, digest),
        Hash::Md5(digest) => (2, digest),
    };
    let mut key = vec![algorithm];
    key.extend(digest);
    key.extend(query.lengths.start().to_be_bytes());
    key.extend(query.lengths.end().to_be_bytes());
    key
}

impl Handler for Recover {
    type Task = Task;
    type Answer = Answer;

    fn max_request_bytes(&self) -> usize {
        HEAD_BYTES_AT_MOST
    }

    fn decode(&self, bytes: &[u8]) -> Decoding<Self> {
        let (head, used_bytes) = match Head::decode(bytes, self.dialect) {
            Ok(decoded) => decoded,
            Err(NoHead::Incomplete) => return Ok(None),
            Err(NoHead::Malformed) => return Err(Malformed),
        };
        let Head { id, hash, lengths, file_bytes } = head;
        if file_bytes > self.most_file_bytes {
            return Ok(Some(Decoded::answer(used_bytes, Err(Some(Outcome::TooLarge)))));
        }
        let upload = |cipher| Upload {
            spool: Spool::new(&self.budget, file_bytes, cipher),
            id,
            dialect: self.dialect,
            counts: Arc::clone(&self.counts),
            trace: Arc::clone(&self.trace),
        };
        if file_bytes == 0 || !file_bytes.is_multiple_of(BLOCK_BYTES) {
            let answer = Err(Some(Outcome::WrongLength));
            return Ok(Some(Decoded::answer(used_bytes, answer).with_body(upload(None))));
        }
        let query = PasswordQuery { hash, lengths };
        let flight = key(&query);
        Ok(Some(match self.course(query) {
            Course::Answer(answer) => {
                let cipher = answer.ok().map(|solved| Cipher::new(solved.key));
                Decoded::answer(used_bytes, answer).with_body(upload(cipher))
            }
            Course::Work(job, stage) => {
                let task = Task { stage, searched: Duration::ZERO };
                Decoded::work(used_bytes, job, task).sharing(flight).with_body(upload(None))
            }
        }))
    }

    fn first_chunk(&self) -> u64 {
        FIRST_CHUNK
    }

    fn advance(&self, task: &mut Task, turn: &mut Turn<Answer>) -> Step<Answer> {
        let begun = Instant::now();
        let found = match &mut task.stage {
            Stage::Known { found, .. } => found.clone(),
            Stage::Hunting { hunt, tried } => {
                let hunted = self.hunt(hunt, tried, turn);
                task.searched += begun.elapsed();
                match hunted {
                    Ok(found) => found,
                    Err(step) => {
                        turn.report_fixed_ns(0);
                        return step;
                    }
                }
            }
        };
        self.counts.search_s.observe(task.searched.as_secs_f64());
        let derived = self.keys.derive(&found.password);
        self.counts.key_s.observe(derived.took_ns as f64 / 1e9);
        turn.report_fixed_ns(derived.took_ns as i64);
        let search_ns = task.searched.as_nanos() as u64;
        Step::Done(Ok(Solved { key: derived.key, way: found.by, search_ns, key_ns: derived.took_ns }))
    }

    /// For requests that fail: an `Upload` makes the answer of the others.
    fn encode(&self, answer: Answer) -> Reply {
        if let Err(Some(outcome)) = answer {
            self.counts.count(outcome);
        }
        Reply::new(Vec::new(), Then::Close)
    }

    fn refusal(&self) -> Answer {
        Err(None)
    }

    fn register(&self, registry: &mut Registry) {
        let Counts { outcomes, search_s, key_s } = &*self.counts;
        registry.register("recover_outcomes", "Outcomes of requests", outcomes.clone());
        let help = "Time of the search, for requests whose password a worker found";
        registry.register("recover_search_seconds", help, search_s.clone());
        let help = "Time for the key, for the same requests: a fixed cost of each";
        registry.register("recover_key_seconds", help, key_s.clone());
        let help = "Rows of the trace that were dropped because writing was too slow";
        registry.register("recover_trace_dropped", help, self.trace.dropped.clone());
        self.finder.register(registry);
        self.keys.register(registry);
    }
}

/// The result of a request: the key, of which its `Upload` makes the answer, or the outcome to count. A flight has one result, and
/// each of its requests counts; the runtime counts those that it rejects, which have no outcome.
type Answer = Result<Solved, Option<Outcome>>;

/// The key of a file, and the cost of its search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Solved {
    key: Key,
    way: PasswordSource,
    search_ns: u64,
    key_ns: u64,
}

/// The file of a request.
#[derive(Debug)]
struct Upload {
    spool: Spool,
    id: i32,
    dialect: Dialect,
    counts: Arc<Counts>,
    trace: Arc<Trace>,
}

impl Sink<Answer> for Upload {
    fn length(&self) -> u64 {
        self.spool.length()
    }

    fn buffer(&mut self) -> BodyFuture<'_, &mut [u8]> {
        Box::pin(self.spool.buffer())
    }

    fn filled(&mut self, bytes: usize) -> BodyFuture<'_, ()> {
        Box::pin(self.spool.filled(bytes))
    }

    fn truncated(&mut self) {
        self.counts.count(Outcome::Truncated);
    }

    fn wanted(&self) -> fn(&Answer) -> bool {
        Answer::is_ok
    }

    fn finish(self: Box<Self>, answer: Answer) -> (Box<dyn Reader>, Then) {
        let padded = answer.and_then(|solved| {
            let cipher = Cipher::new(solved.key);
            let padding = cipher.padding(self.spool.last_block()).map_err(|_| Some(Outcome::WrongPadding))?;
            Ok((solved, cipher, padding as u64))
        });
        match padded {
            Ok((Solved { way, search_ns, key_ns, .. }, cipher, padding)) => {
                self.counts.count(Outcome::Recovered);
                let (finished_ns, file_bytes) = (now_ns(), self.spool.length());
                self.trace.write(Cost { finished_ns, id: self.id, way, search_ns, key_ns, file_bytes });
                let head = encode_answer(self.dialect, self.id, file_bytes - padding);
                (Box::new(self.spool.decrypted(head, cipher, file_bytes - padding)), Then::Close)
            }
            Err(outcome) => {
                outcome.into_iter().for_each(|outcome| self.counts.count(outcome));
                (Box::new(WholeBody::new(Vec::new())), Then::Close)
            }
        }
    }
}
