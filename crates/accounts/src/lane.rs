//! A queue and the tasks that empty it, each with its own connection.
//!
//! A task takes all queued calls, executes them as one batch, and repeats: the load determines the size of batches,
//! without a timer. A task that loses its connection opens another one, waiting longer after each failure. It never
//! executes a call twice.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use async_channel::{Receiver, Sender, TrySendError};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::backend::{Access, Connection, Failure, Runs, Store, failure_text};
use crate::error::StoreError;
use crate::job::{Job, Surroundings};

/// A connection that was idle for this long is checked before a call is sent over it, so that a database that was
/// restarted meanwhile causes no unknown outcome.
const CHECKED_AFTER: Duration = Duration::from_secs(1);

/// The pauses between attempts to connect: the first, doubled up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// The shared state of a lane's tasks.
pub(crate) struct Shared {
    /// The store, for errors.
    pub(crate) store: String,
    /// The most calls of a batch.
    pub(crate) most_in_batch: usize,
    /// The longest time of a call.
    pub(crate) answer_within: Duration,
    /// The number of tasks with a connection.
    pub(crate) connected: AtomicUsize,
    /// Accounts that were written.
    pub(crate) written: AtomicU64,
    /// Transactions that wrote them.
    pub(crate) batches: AtomicU64,
}

/// The callers' end of a queue, and the ends of its tasks.
pub(crate) struct Lane<J> {
    pub(crate) queue: Sender<J>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) tasks: Vec<TaskEnd>,
}

/// The future of a task. Without its type, tokio's code for tasks is compiled once for all stores.
type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Resolves when a task has ended.
pub(crate) type TaskEnd = oneshot::Receiver<Result<(), Failure>>;

impl<J: Job> Lane<J> {
    /// Opens the connections, then starts the tasks.
    ///
    /// # Errors
    /// [`StoreError::Open`] if a connection cannot be opened.
    pub(crate) async fn open<S: Store>(
        store: &S,
        access: Access,
        tasks: usize,
        capacity: usize,
        shared: Shared,
    ) -> Result<Self, StoreError> {
        let shared = Arc::new(shared);
        let (queue, jobs) = async_channel::bounded(capacity);
        let mut ends = Vec::with_capacity(tasks);
        for _ in 0..tasks {
            let connection = connect(store, access, shared.answer_within).await.map_err(|failure| {
                StoreError::Open { store: shared.store.clone(), reason: failure_text(failure) }
            })?;
            let (ended, end) = oneshot::channel();
            let task = Task { store: store.clone(), access, jobs: jobs.clone(), shared: Arc::clone(&shared) };
            let work: Work = Box::pin(async move { drop(ended.send(task.run(connection).await)) });
            match S::RUNS {
                Runs::InRuntime => drop(tokio::spawn(work)),
                Runs::OnThreads => start_thread(&shared.store, work)?,
            }
            ends.push(end);
        }
        Ok(Self { queue, shared, tasks: ends })
    }
}

/// Runs a task on its own thread, where it may block.
fn start_thread(store: &str, work: Work) -> Result<(), StoreError> {
    let failed =
        |error: std::io::Error| StoreError::Open { store: store.to_owned(), reason: error.to_string() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(failed)?;
    let thread = thread::Builder::new().name("accounts".to_owned());
    thread.spawn(move || runtime.block_on(work)).map_err(failed)?;
    Ok(())
}

/// Puts a call into a queue.
///
/// # Errors
/// [`StoreError::Busy`] if the queue is full, [`StoreError::Closed`] if it was closed.
pub(crate) fn submit<J>(queue: &Sender<J>, job: J) -> Result<(), StoreError> {
    queue.try_send(job).map_err(|error| match error {
        TrySendError::Full(_) => StoreError::Busy { queued: queue.capacity().unwrap_or_default() },
        TrySendError::Closed(_) => StoreError::Closed,
    })
}

/// Opens a connection within a time limit.
async fn connect<S: Store>(store: &S, access: Access, within: Duration) -> Result<S::Connection, Failure> {
    match timeout(within, store.connect(access)).await {
        Ok(connection) => connection,
        Err(_) => Err(Failure::Lost(format!("no connection within {within:?}"))),
    }
}

/// One of the tasks that empty a queue.
struct Task<S, J> {
    store: S,
    access: Access,
    jobs: Receiver<J>,
    shared: Arc<Shared>,
}

impl<S: Store, J: Job> Task<S, J> {
    /// Works until the queue is closed and empty.
    async fn run(self, connection: S::Connection) -> Result<(), Failure> {
        let shared = Arc::clone(&self.shared);
        let within = (S::RUNS == Runs::InRuntime).then_some(shared.answer_within);
        let (written, batches) = (&shared.written, &shared.batches);
        let surroundings = Surroundings { store: &shared.store, within, written, batches };
        let mut connection = CountedConnection::new(connection, &shared.connected);
        let mut used = Instant::now();
        while let Some(batch) = self.batch().await {
            if used.elapsed() >= CHECKED_AFTER && self.is_dead(&mut connection.connection).await {
                drop(connection);
                match connect(&self.store, self.access, shared.answer_within).await {
                    Ok(again) => connection = CountedConnection::new(again, &shared.connected),
                    Err(failure) => {
                        let reason = failure_text(failure);
                        self.fail_all(batch, &reason);
                        let Some(again) = self.reconnect().await else { return Ok(()) };
                        connection = CountedConnection::new(again, &shared.connected);
                        continue;
                    }
                }
            }
            let served = J::serve(batch, &mut connection.connection, &surroundings).await;
            used = Instant::now();
            if served.lost.is_some() {
                drop(connection);
                let Some(again) = self.reconnect().await else { return Ok(()) };
                connection = CountedConnection::new(again, &shared.connected);
            }
        }
        connection.connection.close().await
    }

    /// All queued calls, at least one. `None` when the queue is closed and empty.
    async fn batch(&self) -> Option<Vec<J>> {
        let mut batch = vec![self.jobs.recv().await.ok()?];
        while batch.len() < self.shared.most_in_batch {
            let Ok(job) = self.jobs.try_recv() else { break };
            batch.push(job);
        }
        Some(batch)
    }

    /// Whether a connection that was idle no longer works.
    async fn is_dead(&self, connection: &mut S::Connection) -> bool {
        !matches!(timeout(self.shared.answer_within, connection.ping()).await, Ok(Ok(())))
    }

    /// Opens another connection. Meanwhile no call waits longer than a pause, if no other task can answer it. Returns
    /// `None` when the queue is closed.
    async fn reconnect(&self) -> Option<S::Connection> {
        let mut pause = FIRST_PAUSE;
        loop {
            let reason = match connect(&self.store, self.access, self.shared.answer_within).await {
                Ok(connection) => return Some(connection),
                Err(failure) => failure_text(failure),
            };
            if self.shared.connected.load(Ordering::Acquire) == 0 {
                let waiting = std::iter::from_fn(|| self.jobs.try_recv().ok()).collect();
                self.fail_all(waiting, &reason);
            }
            if self.jobs.is_closed() && self.jobs.is_empty() {
                return None;
            }
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Answers calls that were not sent.
    fn fail_all(&self, jobs: Vec<J>, reason: &str) {
        let error = StoreError::Unavailable { store: self.shared.store.clone(), reason: reason.to_owned() };
        jobs.into_iter().for_each(|job| job.fail(&error));
    }
}

/// A connection that is counted while it exists.
struct CountedConnection<'a, C> {
    connection: C,
    _seat: Seat<'a>,
}

impl<'a, C> CountedConnection<'a, C> {
    fn new(connection: C, connected: &'a AtomicUsize) -> Self {
        connected.fetch_add(1, Ordering::AcqRel);
        Self { connection, _seat: Seat(connected) }
    }
}

/// The count of one connection.
struct Seat<'a>(&'a AtomicUsize);

impl Drop for Seat<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}
