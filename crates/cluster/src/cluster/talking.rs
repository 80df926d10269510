//! The thread that talks with NATS.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_nats::connection::State as ConnectionState;
use async_nats::jetstream::{self, message::PublishMessage, stream::Stream};
use async_nats::{Client, Message};
use futures_util::StreamExt as _;
use kendall_nats::NatsAccess;
use tokio::sync::{mpsc as channel, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::{Queue, Reply, State};
use crate::error::ClusterError;
use crate::protocol::{
    BEATS, BeatMessage, CANCELS, ChunkMessage, CoordinatorId, ReportMessage, encode_cancel,
};
use crate::queue::{create_consumer, create_queue};
use crate::spec::{JobId, SearchSpec};

/// How often silent workers are noticed.
const TICK: Duration = Duration::from_secs(1);
/// How long a message may wait for the connection.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the queue is compared with what must be in it.
const AUDIT: Duration = Duration::from_secs(5);

/// Something to say.
#[derive(Debug)]
pub(super) enum Talk {
    Publish {
        job: JobId,
        run: u32,
        range: Range<u64>,
        attempt: u32,
        unit: u64,
        queue: Queue,
        spec: Arc<SearchSpec>,
    },
    Purge(JobId),
    Cancel(JobId, u32),
    Answer(Reply),
    RenewConsumers,
    End,
}

/// The connection and the queue.
struct Line {
    client: Client,
    context: jetstream::Context,
    stream: Stream,
    name: CoordinatorId,
}

/// Connects, reports whether that worked, and talks until [`Talk::End`].
pub(super) async fn talk(
    access: NatsAccess,
    state: Arc<State>,
    mut talks: channel::UnboundedReceiver<Talk>,
    ready: oneshot::Sender<Result<(), ClusterError>>,
) {
    let opened = async {
        let client = access.connect("kendall serve").await?;
        let context = jetstream::new(client.clone());
        let stream = create_queue(&context).await?;
        let broken = |error: &dyn std::fmt::Display| ClusterError::Queue(error.to_string());
        let reports = client.subscribe(state.name.reports()).await.map_err(|error| broken(&error))?;
        let beats = client.subscribe(BEATS).await.map_err(|error| broken(&error))?;
        stream.purge().filter(state.name.all_work()).await.map_err(|error| broken(&error))?;
        Ok((Line { client, context, stream, name: state.name }, reports, beats))
    };
    let (line, mut reports, mut beats) = match opened.await {
        Ok(opened) => {
            let _ = ready.send(Ok(()));
            opened
        }
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let line = Arc::new(line);
    let mut tasks = JoinSet::new();
    let listening = Arc::clone(&state);
    tasks.spawn(async move {
        loop {
            tokio::select! {
                Some(report) = reports.next() => note_report(&listening, &report),
                Some(beat) = beats.next() => note_beat(&listening, &beat),
                else => return,
            }
        }
    });
    let ending = Arc::clone(&state);
    tasks.spawn(watch(Arc::clone(&line), state));
    let attempt_base: u32 = rand::random();
    while let Some(talk) = talks.recv().await {
        if matches!(talk, Talk::End) {
            break;
        }
        // While there is no connection, the client's own queue can be full.
        if timeout(PATIENCE, line.send(talk, attempt_base)).await.is_err() {
            tracing::debug!("a message to the cluster was dropped");
        }
        if ending.is_ending.load(Ordering::Acquire) && !line.is_connected() {
            break;
        }
    }
    tasks.shutdown().await;
    let _ = timeout(TICK, line.client.flush()).await;
}

fn note_report(state: &State, message: &Message) {
    let Some(report) = ReportMessage::decode(&message.payload) else {
        state.counters.invalid.fetch_add(1, Ordering::Relaxed);
        return;
    };
    state.counters.reports.fetch_add(1, Ordering::Relaxed);
    let tested = report.tested.iter().fold(0u64, |sum, range| sum.saturating_add(range.end - range.start));
    state.counters.tested.fetch_add(tested, Ordering::Relaxed);
    let mut desk = state.desk();
    let answer = desk.coordinator.report(&report, state.now());
    // Any other subject could be one of the server's, with the rights of this program.
    let inbox = message.reply.as_ref().filter(|subject| subject.starts_with("_INBOX."));
    let reply = inbox.map(|subject| Reply { subject: subject.to_string(), answer });
    state.carry_out(&mut desk, reply);
}

fn note_beat(state: &State, message: &Message) {
    match BeatMessage::decode(&message.payload) {
        Some(beat) => state.desk().coordinator.beat(&beat, state.now()),
        None => drop(state.counters.invalid.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Notices silent workers and lost messages.
async fn watch(line: Arc<Line>, state: Arc<State>) {
    let (mut tick, mut audit) = (interval(TICK), interval(AUDIT));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    audit.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                let mut desk = state.desk();
                desk.coordinator.tick(state.now());
                state.carry_out(&mut desk, None);
            }
            _ = audit.tick() => {
                if !state.desk().coordinator.has_chunks() {
                    continue;
                }
                match line.messages().await {
                    Ok(messages) => {
                        let mut desk = state.desk();
                        desk.coordinator.audit(&messages, state.now());
                        state.carry_out(&mut desk, None);
                    }
                    Err(error) => {
                        tracing::debug!(%error, "cannot read the queue");
                        // A server that came back without its files has no queue.
                        let _ = create_queue(&line.context).await;
                    }
                }
            }
        }
    }
}

impl Line {
    fn is_connected(&self) -> bool {
        self.client.connection_state() == ConnectionState::Connected
    }

    async fn send(&self, talk: Talk, attempt_base: u32) {
        match talk {
            Talk::Publish { job, run, range, attempt, unit, queue, spec } => {
                let id =
                    format!("{job}-{run:x}-{:x}-{:x}-{attempt_base:x}-{attempt}", range.start, range.end);
                let chunk =
                    ChunkMessage { coordinator: self.name, job, run, range, unit, spec: (*spec).clone() };
                let message = PublishMessage::build().payload(chunk.encode().into()).message_id(id);
                // What does not arrive is noticed when the queue is compared with what must be in it.
                match self.context.send_publish(self.name.work(queue, job), message).await {
                    Ok(stored) => drop(stored),
                    Err(error) => tracing::debug!(%error, "a chunk was not published"),
                }
            }
            Talk::Purge(job) => {
                if let Err(error) = self.stream.purge().filter(self.name.work_of(job)).await {
                    tracing::debug!(%error, %job, "the queue was not purged");
                }
            }
            Talk::Cancel(job, run) => {
                let _ = self.client.publish(CANCELS, encode_cancel(job, run).into()).await;
            }
            Talk::Answer(Reply { subject, answer }) => {
                let _ = self.client.publish(subject, answer.encode().into()).await;
            }
            Talk::RenewConsumers => {
                tracing::warn!("no worker reports although chunks are in the queue; renewing its consumers");
                for queue in Queue::ALL {
                    let _ = self.stream.delete_consumer(queue.name()).await;
                    if let Err(error) = create_consumer(&self.stream, queue).await {
                        tracing::warn!(%error, "cannot create a consumer");
                    }
                }
            }
            Talk::End => {}
        }
    }

    /// The number of messages of each job in the queue.
    async fn messages(&self) -> Result<HashMap<JobId, usize>, jetstream::stream::InfoError> {
        let mut counts = HashMap::new();
        let mut subjects = self.stream.info_with_subjects(self.name.all_work()).await?;
        while let Some(subject) = subjects.next().await {
            let (subject, count) = subject?;
            if let Some(job) = subject.rsplit('.').next().and_then(JobId::parse) {
                *counts.entry(job).or_default() += count;
            }
        }
        Ok(counts)
    }
}
