//! A worker: takes chunks from the queue, searches them, and reports.
//!
//! A chunk is acknowledged when its coordinator has the report in its ledger. A worker that dies leaves its chunks
//! unacknowledged, and the queue delivers them to another one. All that messages can make a worker do is to search.

mod held;
mod scanner;

use std::collections::{HashSet, VecDeque};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::consumer::pull::Batch;
use async_nats::jetstream::{self, AckKind, Message};
use futures_util::StreamExt as _;
use kendall_digest::gpu::Device;
use kendall_digest::{Engine, Interrupt};
use kendall_nats::NatsAccess;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{Interval, interval, sleep, timeout};

use crate::error::ClusterError;
use crate::fleet::batch;
use crate::protocol::{BEATS, BeatMessage, CANCELS, ChunkMessage, Queue, STREAM, WorkerId, decode_cancel};
use crate::queue::PROGRESS;
use crate::spec::JobId;

use held::{Held, deliver};
use scanner::{Scanned, Scanner};

/// How often a worker shows that it is there.
const BEAT: Duration = Duration::from_secs(1);
/// How long a worker waits for a chunk before it checks the urgent queue again.
const WAIT: Duration = Duration::from_millis(250);
/// A NATS server that answers a request for chunks by nothing for this long has lost it: version 2.9 does so if the queue is
/// purged meanwhile.
const LOST: Duration = Duration::from_secs(2);
/// How long a worker waits before it tries again what has failed.
const AGAIN: Duration = Duration::from_millis(500);
/// The most reports that wait for an answer; then the worker waits for one.
const MOST_REPORTS: usize = 8;
/// The most cancelled jobs that are remembered.
const MOST_CANCELLED: usize = 4_096;
/// How long an ending worker waits for the answers to its last reports.
const FAREWELL: Duration = Duration::from_secs(5);

/// The options of a worker.
#[derive(Clone, Debug)]
pub struct WorkerOptions {
    /// How to connect.
    pub access: NatsAccess,
    /// The engine that searches on the processors.
    pub engine: Engine,
    /// The number of threads that search.
    pub cores: NonZeroUsize,
    /// Whether a graphics card searches, too.
    pub device: Device,
}

/// A worker that has started.
#[derive(Clone, Copy, Debug)]
pub struct WorkerReport {
    /// The name.
    pub name: WorkerId,
    /// Candidates a second, for integers.
    pub integers_per_s: u64,
}

/// Works until SIGINT or SIGTERM; then it returns the chunks that it has. Calls `ready` once it takes chunks.
///
/// # Errors
/// Fails if the cluster cannot be reached, or a required card cannot be used.
pub fn work(options: WorkerOptions, ready: impl FnOnce(WorkerReport)) -> Result<(), ClusterError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(ClusterError::Thread)?;
    runtime.block_on(run(options, ready))
}

async fn run(options: WorkerOptions, ready: impl FnOnce(WorkerReport)) -> Result<(), ClusterError> {
    let WorkerOptions { access, engine, cores, device } = options;
    let (mut interrupted, mut terminated) = (
        signal(SignalKind::interrupt()).map_err(ClusterError::Thread)?,
        signal(SignalKind::terminate()).map_err(ClusterError::Thread)?,
    );
    let client = access.connect("kendall worker").await?;
    let scanner = spawn_blocking(move || Scanner::new(engine, cores, device));
    let scanner = Arc::new(scanner.await.expect("measuring does not panic")?);
    let name = WorkerId(rand::random());
    let failed = |error: &dyn std::fmt::Display| ClusterError::Queue(error.to_string());
    let cancels = client.subscribe(CANCELS).await.map_err(|error| failed(&error))?;
    let shared = Arc::new(Shared {
        name,
        scanner,
        client: client.clone(),
        current: Mutex::default(),
        interrupt: Interrupt::new(),
        is_ending: AtomicBool::new(false),
        tested: AtomicU64::new(0),
    });
    let mut tasks = JoinSet::new();
    tasks.spawn(beat(Arc::clone(&shared)));
    tasks.spawn(cancel(Arc::clone(&shared), cancels));
    ready(WorkerReport { name, integers_per_s: shared.scanner.speeds()[0] });
    let mut reports = JoinSet::new();
    let mut working = tokio::spawn(take_chunks(Arc::clone(&shared)));
    let stopped = async {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    };
    tokio::select! {
        () = stopped => {}
        ended = &mut working => reports = ended.expect("work does not panic"),
    }
    shared.end();
    if !working.is_finished() {
        match timeout(FAREWELL, &mut working).await {
            Ok(ended) => reports = ended.expect("work does not panic"),
            // The queue delivers what it has to another worker.
            Err(_) => working.abort(),
        }
    }
    tasks.shutdown().await;
    let _ = timeout(FAREWELL, async { while reports.join_next().await.is_some() {} }).await;
    shared.send_beat(true).await;
    let _ = timeout(FAREWELL, client.flush()).await;
    Ok(())
}

/// What the tasks of a worker share.
struct Shared {
    name: WorkerId,
    scanner: Arc<Scanner>,
    client: Client,
    current: Mutex<Current>,
    interrupt: Interrupt,
    is_ending: AtomicBool,
    tested: AtomicU64,
}

/// A run of a job.
type JobRun = (JobId, u32);

/// The search in progress, and those that were cancelled, the oldest first.
#[derive(Default)]
struct Current {
    job: Option<JobRun>,
    cancelled: HashSet<JobRun>,
    order: VecDeque<JobRun>,
}

impl Shared {
    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().expect("no thread panics while it holds the search")
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    fn end(&self) {
        let _current = self.current();
        self.is_ending.store(true, Ordering::Release);
        self.interrupt.raise();
    }

    /// Makes a job the one that is searched, unless it is cancelled or the worker ends.
    fn begin(&self, job: JobRun) -> Beginning {
        let mut current = self.current();
        if current.cancelled.contains(&job) {
            return Beginning::Cancelled;
        }
        if self.is_ending() {
            return Beginning::Ending;
        }
        current.job = Some(job);
        self.interrupt.lower();
        Beginning::Begun
    }

    async fn send_beat(&self, is_leaving: bool) {
        let tested = self.tested.load(Ordering::Relaxed);
        let beat = BeatMessage { worker: self.name, is_leaving, tested, speeds: self.scanner.speeds() };
        let _ = self.client.publish(BEATS, beat.encode().into()).await;
    }
}

#[derive(PartialEq, Eq)]
enum Beginning {
    Begun,
    Cancelled,
    Ending,
}

async fn beat(shared: Arc<Shared>) {
    let mut due = interval(BEAT);
    loop {
        due.tick().await;
        shared.send_beat(false).await;
    }
}

async fn cancel(shared: Arc<Shared>, mut cancels: async_nats::Subscriber) {
    while let Some(message) = cancels.next().await {
        let Some(job) = decode_cancel(&message.payload) else { continue };
        let mut current = shared.current();
        if current.cancelled.insert(job) {
            current.order.push_back(job);
            if current.order.len() > MOST_CANCELLED
                && let Some(oldest) = current.order.pop_front()
            {
                current.cancelled.remove(&oldest);
            }
        }
        if current.job == Some(job) {
            shared.interrupt.raise();
        }
    }
}

/// Takes chunks until the worker ends. Returns the reports that wait for an answer.
async fn take_chunks(shared: Arc<Shared>) -> JoinSet<()> {
    let context = jetstream::new(shared.client.clone());
    let mut reports = JoinSet::new();
    let permits = Arc::new(Semaphore::new(MOST_REPORTS));
    let mut consumers = None;
    while !shared.is_ending() {
        while reports.try_join_next().is_some() {}
        let known = match &consumers {
            Some(known) => known,
            None => match open(&context).await {
                Ok(opened) => consumers.insert(opened),
                Err(error) => {
                    tracing::debug!(%error, "there is no queue yet");
                    sleep(AGAIN).await;
                    continue;
                }
            },
        };
        match next(&shared, known).await {
            Ok(messages) if messages.is_empty() => {}
            Ok(messages) => search(&shared, messages, &permits, &mut reports).await,
            Err(error) => {
                tracing::debug!(%error, "cannot take chunks; trying again");
                consumers = None;
                sleep(AGAIN).await;
            }
        }
    }
    reports
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The consumers of both queues. A coordinator creates them.
async fn open(context: &jetstream::Context) -> Result<[PullConsumer; 2], Failure> {
    let [urgent, usual] = Queue::ALL.map(Queue::name);
    Ok([
        context.get_consumer_from_stream(urgent, STREAM).await?,
        context.get_consumer_from_stream(usual, STREAM).await?,
    ])
}

/// The next chunks, all of one queue: about as many as the worker tests in a second. An empty list if the queue stays empty for a while.
async fn next(shared: &Shared, consumers: &[PullConsumer; 2]) -> Result<Vec<Message>, Failure> {
    let [urgent, usual] = consumers;
    let (consumer, first) = match message(&mut urgent.fetch().max_messages(1).messages().await?).await? {
        Some(first) => (urgent, first),
        None => match message(&mut usual.batch().max_messages(1).expires(WAIT).messages().await?).await? {
            Some(first) => (usual, first),
            None => return Ok(Vec::new()),
        },
    };
    let mut messages = vec![first];
    let Some(chunk) = ChunkMessage::decode(&messages[0].payload) else { return Ok(messages) };
    let speed = shared.scanner.speeds()[chunk.spec.kind().index()];
    let more = batch(speed, chunk.unit) - 1;
    if more > 0 {
        let mut further = consumer.fetch().max_messages(more).messages().await?;
        while let Ok(Some(message)) = message(&mut further).await {
            messages.push(message);
        }
    }
    Ok(messages)
}

/// The next of the messages that were asked for; `None` after the last.
async fn message(batch: &mut Batch) -> Result<Option<Message>, Failure> {
    timeout(LOST, batch.next()).await?.transpose()
}

/// Searches chunks job by job, and starts the delivery of a report for each job.
async fn search(
    shared: &Arc<Shared>,
    messages: Vec<Message>,
    permits: &Arc<Semaphore>,
    reports: &mut JoinSet<()>,
) {
    let mut waiting: VecDeque<Held> = Held::group(messages, shared.scanner.speeds()).await.into();
    let mut due = interval(PROGRESS);
    due.tick().await;
    while let Some(held) = waiting.pop_front() {
        let job = (held.chunk.job, held.chunk.run);
        let scanned = match shared.begin(job) {
            Beginning::Begun => {
                let scanned = scan(shared, &held, &waiting, &mut due).await;
                shared.tested.fetch_add(scanned.tested.candidates(), Ordering::Relaxed);
                shared.current().job = None;
                scanned
            }
            Beginning::Ending => Scanned::default(),
            Beginning::Cancelled => {
                held.acknowledge(AckKind::Ack).await;
                continue;
            }
        };
        if scanned.found.is_none() && shared.current().cancelled.contains(&job) {
            held.acknowledge(AckKind::Ack).await;
            continue;
        }
        let report = held.report(shared.name, scanned);
        let permit = Arc::clone(permits).acquire_owned().await.expect("the semaphore is never closed");
        let client = shared.client.clone();
        reports.spawn(async move {
            deliver(&client, held, report).await;
            drop(permit);
        });
    }
}

/// Searches the chunks of a job, and shows meanwhile that the worker still has them and those that wait.
async fn scan(shared: &Arc<Shared>, held: &Held, waiting: &VecDeque<Held>, due: &mut Interval) -> Scanned {
    let searching = Arc::clone(shared);
    let (spec, ranges) = (held.chunk.spec.clone(), held.ranges.clone());
    let mut scan = spawn_blocking(move || searching.scanner.scan(&spec, ranges.iter(), &searching.interrupt));
    loop {
        tokio::select! {
            scanned = &mut scan => return scanned.expect("a search does not panic"),
            _ = due.tick() => {
                for held in [held].into_iter().chain(waiting) {
                    held.acknowledge(AckKind::Progress).await;
                }
            }
        }
    }
}
