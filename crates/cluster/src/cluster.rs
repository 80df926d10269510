//! A server's side of a cluster: the [`Coordinator`] with a connection, a ledger and a clock.
//!
//! A source of work opens a [`ClusterJob`], hands over chunks while [`ClusterJob::next_chunk`] says so, tests other candidates
//! itself, and takes the outcomes. A thread talks with NATS, another one writes the ledger; all calls return at once, except that
//! a job waits a moment for what the ledger knows of it. While there is no connection, chunks come back as if there were no workers.

mod bookkeeping;
mod talking;

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_nats::NatsAccess;
use tokio::runtime::Builder;
use tokio::sync::{mpsc as channel, oneshot};

use crate::coordinator::{ChunkOutcome, Coordinator, Effect, Opening};
use crate::error::ClusterError;
use crate::ledger::{Ledger, LedgerEntry, LedgerRecord};
use crate::protocol::{CoordinatorId, Queue};
use crate::ranges::RangeSet;
use crate::spec::{JobId, SearchKind, SearchSpec};

use bookkeeping::{Booking, MOST_BOOKINGS, keep_books};
use talking::{Talk, talk};

/// How long a job waits for the ledger before the search stays on this machine.
const LEDGER: Duration = Duration::from_secs(5);

/// The options of a server's side of a cluster.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// How to connect.
    pub access: NatsAccess,
    /// The file of the ledger; in memory if left out, for a server that is to leave nothing behind.
    pub ledger: Option<PathBuf>,
}

/// A server's side of a cluster. Clones share it; the last one ends it.
#[derive(Clone)]
pub struct Cluster(Arc<Running>);

struct Running {
    state: Arc<State>,
    talking: Option<JoinHandle<()>>,
    keeping: Option<JoinHandle<()>>,
}

/// What the threads share. Bookings for which the ledger has no capacity are dropped; workers deliver their reports again. The
/// other channels need no bound: a chunk makes a few messages, and [`Coordinator::next_chunk`] bounds the chunks.
struct State {
    desk: Mutex<Desk>,
    name: CoordinatorId,
    talks: channel::UnboundedSender<Talk>,
    bookings: mpsc::SyncSender<Booking>,
    begun: Instant,
    counters: ClusterCounters,
    is_ending: AtomicBool,
}

/// The coordinator and the sources of its jobs.
struct Desk {
    coordinator: Coordinator,
    sources: Vec<(JobId, mpsc::Sender<ChunkOutcome>, Waker)>,
}

type Waker = Box<dyn Fn() + Send + Sync>;

/// What has happened on a cluster, for metrics.
#[derive(Debug, Default)]
pub struct ClusterCounters {
    /// Chunks that were published, again ones included.
    pub published: AtomicU64,
    /// Reports of workers.
    pub reports: AtomicU64,
    /// Candidates that workers tested.
    pub tested: AtomicU64,
    /// Messages that were not valid.
    pub invalid: AtomicU64,
}

/// What a cluster does at the moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClusterStatus {
    /// The workers.
    pub workers: usize,
    /// Candidates a second of all workers together, for integers.
    pub integers_per_s: u64,
}

impl Cluster {
    /// Connects, opens the ledger, and removes what an earlier run of this server left in the queue: its clients are gone.
    ///
    /// # Errors
    /// Fails if the cluster cannot be reached, has no JetStream, or the ledger cannot be opened.
    pub fn start(options: ClusterOptions) -> Result<Self, ClusterError> {
        let fresh = CoordinatorId(rand::random());
        let ledger = match &options.ledger {
            Some(path) => Ledger::open(path, fresh)?,
            None => Ledger::in_memory(fresh)?,
        };
        let name = ledger.name();
        let (talks, to_talk) = channel::unbounded_channel();
        let (bookings, to_book) = mpsc::sync_channel(MOST_BOOKINGS);
        let desk = Desk { coordinator: Coordinator::default(), sources: Vec::new() };
        let counters = ClusterCounters::default();
        let state = Arc::new(State {
            desk: Mutex::new(desk),
            name,
            talks,
            bookings,
            begun: Instant::now(),
            counters,
            is_ending: AtomicBool::new(false),
        });
        let (ready, is_ready) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build().map_err(ClusterError::Thread)?;
        let talking = {
            let state = Arc::clone(&state);
            let talking = move || runtime.block_on(talk(options.access, state, to_talk, ready));
            thread::Builder::new().name("cluster".into()).spawn(talking).map_err(ClusterError::Thread)?
        };
        is_ready.blocking_recv().expect("the thread reports before it ends")?;
        let keeping = {
            let talks = state.talks.clone();
            let keeping = move || keep_books(ledger, &to_book, &talks);
            thread::Builder::new().name("ledger".into()).spawn(keeping).map_err(ClusterError::Thread)?
        };
        Ok(Self(Arc::new(Running { state, talking: Some(talking), keeping: Some(keeping) })))
    }

    /// What the cluster does at the moment.
    pub fn status(&self) -> ClusterStatus {
        let desk = self.0.state.desk();
        let fleet = desk.coordinator.fleet();
        let integers_per_s = fleet.speed(SearchKind::Integer).map_or(0, |speed| speed.total);
        ClusterStatus { workers: fleet.len(), integers_per_s }
    }

    /// The counters.
    pub fn counters(&self) -> &ClusterCounters {
        &self.0.state.counters
    }

    /// Whether a search of this many candidates is worth handing over chunks.
    pub fn is_worth(&self, kind: SearchKind, candidates: u64) -> bool {
        self.0.state.desk().coordinator.is_worth(kind, candidates)
    }

    /// Begins a job, or continues what the ledger knows of it. Jobs with larger urgencies are served first. `wake` is called when
    /// there are outcomes; it must not block. `None` if the job is open already, or the ledger cannot be read or written.
    pub fn open(
        &self,
        spec: SearchSpec,
        whole: Range<u64>,
        urgency: f64,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<ClusterJob> {
        let id = JobId::of(&spec, &whole);
        let state = &self.0.state;
        if state.desk().coordinator.spec(id).is_some() {
            return None;
        }
        let (answer, known) = mpsc::channel();
        state.bookings.try_send(Booking::Begin { job: id, answer }).ok()?;
        let LedgerEntry { tested, found } = known.recv_timeout(LEDGER).ok()?;
        let (outcomes, to_source) = mpsc::channel();
        let mut desk = state.desk();
        let opening =
            Opening { spec: Arc::new(spec), run: rand::random(), whole, urgency, tested: tested.clone() };
        if !desk.coordinator.open(id, opening) {
            return None;
        }
        desk.sources.push((id, outcomes, Box::new(wake)));
        Some(ClusterJob { id, tested, found, outcomes: Mutex::new(to_source), cluster: self.clone() })
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster").field("name", &self.0.state.name).finish_non_exhaustive()
    }
}

impl State {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("no thread panics while it holds the desk")
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Passes on what the coordinator wants done. The desk stays locked, so that the order is that of the decisions. With a
    /// `reply`, it is answered once everything is in the ledger.
    fn carry_out(&self, desk: &mut Desk, reply: Option<Reply>) {
        let mut records = Vec::new();
        for effect in desk.coordinator.take_effects() {
            let talk = match effect {
                Effect::Record { job, tested, found } => {
                    records.push(LedgerRecord { job, tested, found });
                    continue;
                }
                Effect::Outcome(job, outcome) => {
                    if let Some((_, source, wake)) = desk.sources.iter().find(|(id, ..)| *id == job) {
                        let _ = source.send(outcome);
                        wake();
                    }
                    continue;
                }
                Effect::Publish { job, run, range, attempt, unit, queue } => {
                    let Some(spec) = desk.coordinator.spec(job) else { continue };
                    self.counters.published.fetch_add(1, Ordering::Relaxed);
                    Talk::Publish { job, run, range, attempt, unit, queue, spec }
                }
                Effect::Purge(job) => Talk::Purge(job),
                Effect::Cancel(job, run) => Talk::Cancel(job, run),
                Effect::RenewConsumers => Talk::RenewConsumers,
            };
            let _ = self.talks.send(talk);
        }
        if (!records.is_empty() || reply.is_some())
            && self.bookings.try_send(Booking::Record { records, reply }).is_err()
        {
            tracing::debug!("the ledger is too slow; a change was dropped");
        }
    }
}

/// The answer that a worker waits for.
#[derive(Debug)]
struct Reply {
    subject: String,
    answer: crate::protocol::ReportAnswer,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.state.is_ending.store(true, Ordering::Release);
        // The ledger first: its answers are sent by the other thread.
        let _ = self.state.bookings.send(Booking::End);
        if let Some(keeping) = self.keeping.take() {
            let _ = keeping.join();
        }
        let _ = self.state.talks.send(Talk::End);
        if let Some(talking) = self.talking.take() {
            let _ = talking.join();
        }
    }
}

/// A job on a cluster. Dropping it ends the job: what is in the queue is cancelled, what is tested stays in the ledger.
pub struct ClusterJob {
    id: JobId,
    tested: RangeSet,
    found: Option<u64>,
    outcomes: Mutex<mpsc::Receiver<ChunkOutcome>>,
    cluster: Cluster,
}

impl ClusterJob {
    /// The candidates that the ledger had as tested when the job was opened. The source need not test them.
    pub fn tested_before(&self) -> &RangeSet {
        &self.tested
    }

    /// The candidate that the ledger had as found when the job was opened.
    pub fn found_before(&self) -> Option<u64> {
        self.found
    }

    /// The candidates of the next chunk to hand over, given how many the source has left; `None` while the cluster has enough.
    pub fn next_chunk(&self, left: u64) -> Option<u64> {
        self.state().desk().coordinator.next_chunk(self.id, left)
    }

    /// Hands over a chunk, of which no candidate may be in another one.
    pub fn hand(&self, range: Range<u64>) {
        self.change(|coordinator, now| coordinator.hand(self.id, range, now));
    }

    /// Notes that the source tested candidates, which are not behind the digest.
    pub fn cover(&self, ranges: impl IntoIterator<Item = Range<u64>>) {
        self.change(|coordinator, _| coordinator.cover(self.id, ranges));
    }

    /// Notes that the source found the candidate.
    pub fn find(&self, value: u64) {
        self.change(|coordinator, _| coordinator.find(self.id, value));
    }

    /// The outcomes since the last call.
    pub fn outcomes(&self) -> Vec<ChunkOutcome> {
        self.outcomes.lock().expect("no thread panics while it holds the outcomes").try_iter().collect()
    }

    fn state(&self) -> &State {
        &self.cluster.0.state
    }

    fn change(&self, change: impl FnOnce(&mut Coordinator, Duration)) {
        let state = self.state();
        let mut desk = state.desk();
        change(&mut desk.coordinator, state.now());
        state.carry_out(&mut desk, None);
    }
}

impl Drop for ClusterJob {
    fn drop(&mut self) {
        let state = self.state();
        let mut desk = state.desk();
        desk.coordinator.close(self.id);
        desk.sources.retain(|(id, ..)| *id != self.id);
        state.carry_out(&mut desk, None);
    }
}

impl fmt::Debug for ClusterJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterJob").field("id", &self.id).finish_non_exhaustive()
    }
}
