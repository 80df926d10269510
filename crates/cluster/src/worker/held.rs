//! Chunks that a worker has, and their report.

use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::{AckKind, Message};
use tokio::time::{Instant, sleep, timeout};

use super::scanner::Scanned;
use crate::protocol::{ChunkMessage, MOST_RANGES, ReportAnswer, ReportMessage, WorkerId};
use crate::queue::PROGRESS;
use crate::ranges::RangeSet;
use crate::spec::SearchKind;

/// How long a report is tried to be delivered. A coordinator that is away for longer gets the chunks tested again.
const PERSISTENCE: Duration = Duration::from_secs(30);
/// How long the queue keeps chunks back whose report could not be delivered.
const PAUSE: Duration = Duration::from_secs(10);

/// A chunk that would take longer is no honest one: they last about a second.
const LONGEST_S: u64 = 300;
/// The slowest processor tests this many candidates in seconds.
const LEAST_BOUND: u64 = 1 << 24;

/// Chunks of one job.
pub(super) struct Held {
    /// The first of them.
    pub(super) chunk: ChunkMessage,
    /// The candidates of all.
    pub(super) ranges: RangeSet,
    messages: Vec<Message>,
}

impl Held {
    /// Groups chunks by job. Messages that are not valid chunks, or that would keep a worker of these speeds for minutes, are
    /// removed from the queue.
    pub(super) async fn group(messages: Vec<Message>, speeds: [u64; SearchKind::ALL.len()]) -> Vec<Self> {
        let mut groups: Vec<Self> = Vec::new();
        let is_short = |chunk: &ChunkMessage| {
            let most = speeds[chunk.spec.kind().index()].saturating_mul(LONGEST_S).max(LEAST_BOUND);
            chunk.range.end - chunk.range.start <= most
        };
        for message in messages {
            let Some(chunk) = ChunkMessage::decode(&message.payload).filter(is_short) else {
                tracing::warn!(subject = %message.subject, "a message that is not a chunk");
                let _ = message.ack_with(AckKind::Term).await;
                continue;
            };
            let is_of = |group: &&mut Self| {
                let ChunkMessage { coordinator, job, run, spec, .. } = &group.chunk;
                (coordinator, job, run, spec) == (&chunk.coordinator, &chunk.job, &chunk.run, &chunk.spec)
            };
            match groups.iter_mut().find(is_of) {
                Some(group) => {
                    group.ranges.insert(chunk.range);
                    group.messages.push(message);
                }
                None => {
                    let ranges = RangeSet::of(chunk.range.clone());
                    groups.push(Self { chunk, ranges, messages: vec![message] });
                }
            }
        }
        groups
    }

    /// Sends an acknowledgement for each message.
    pub(super) async fn acknowledge(&self, kind: AckKind) {
        for message in &self.messages {
            let _ = message.ack_with(kind).await;
        }
    }

    /// The report of a search.
    pub(super) fn report(&self, worker: WorkerId, scanned: Scanned) -> ReportMessage {
        let Scanned { tested, found } = scanned;
        let mut returned = self.ranges.clone();
        tested.iter().for_each(|range| returned.remove(&range));
        let first = |ranges: &RangeSet| ranges.iter().take(MOST_RANGES).collect();
        ReportMessage {
            worker,
            job: self.chunk.job,
            found,
            tested: first(&tested),
            returned: first(&returned),
        }
    }
}

/// Delivers a report and acknowledges its chunks. If that fails, the queue delivers them again later.
pub(super) async fn deliver(client: &Client, held: Held, report: ReportMessage) {
    let (subject, bytes) = (held.chunk.coordinator.reports(), report.encode());
    let until = Instant::now() + PERSISTENCE;
    while Instant::now() < until {
        // Without a coordinator, the server answers at once that the subject has no subscriber.
        let asked = timeout(PROGRESS, client.request(subject.clone(), bytes.clone().into())).await;
        if let Ok(Ok(answer)) = &asked
            && ReportAnswer::decode(&answer.payload).is_some()
        {
            held.acknowledge(AckKind::Ack).await;
            return;
        }
        held.acknowledge(AckKind::Progress).await;
        if matches!(asked, Ok(Err(_))) {
            sleep(PROGRESS / 3).await;
        }
    }
    held.acknowledge(AckKind::Nak(Some(PAUSE))).await;
}
