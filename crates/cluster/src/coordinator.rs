//! The coordinator's logic: which ranges are handed over, which are tested, and what has to be sent.
//!
//! It opens no socket and reads no clock: instants are arguments, and what has to be done is returned as [`Effect`]s, so the same
//! logic runs in virtual time. The queue is a cache: a chunk is done when its candidates are reported, and not when its message
//! is gone; and what the queue lost is published again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crate::fleet::Fleet;
use crate::protocol::{BeatMessage, Queue, ReportAnswer, ReportMessage};
use crate::ranges::RangeSet;
use crate::spec::{JobId, SearchKind, SearchSpec};

/// How long a published chunk may take to be in the queue.
const SETTLED: Duration = Duration::from_secs(5);
/// Without a report for this long, although there are workers and chunks, the queue is built anew.
const STALLED: Duration = Duration::from_secs(30);

/// Something to do for the coordinator.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Publish a chunk.
    Publish {
        /// The job.
        job: JobId,
        /// The run of the job.
        run: u32,
        /// The candidates.
        range: Range<u64>,
        /// How often these candidates were published before.
        attempt: u32,
        /// Candidates of a chunk that is not shortened.
        unit: u64,
        /// The queue.
        queue: Queue,
    },
    /// Remove all chunks of a job from the queue.
    Purge(JobId),
    /// Make all workers drop a run of a job.
    Cancel(JobId, u32),
    /// Write what was tested, or found, to the ledger.
    Record {
        /// The job.
        job: JobId,
        /// Candidates that are not behind the digest.
        tested: Vec<Range<u64>>,
        /// The candidate behind the digest.
        found: Option<u64>,
    },
    /// Report a chunk to the source of the job.
    Outcome(JobId, ChunkOutcome),
    /// Create the consumers of the queue anew: they deliver nothing.
    RenewConsumers,
}

/// How a chunk ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChunkOutcome {
    /// Workers tested all candidates, and none is behind the digest.
    Absent(Range<u64>),
    /// A candidate is behind the digest.
    Found(u64),
    /// No worker is left: the source tests what is missing.
    Returned {
        /// The chunk.
        range: Range<u64>,
        /// Its candidates that are not tested.
        missing: RangeSet,
    },
}

/// A job at its beginning.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The search.
    pub spec: Arc<SearchSpec>,
    /// Distinguishes this run from earlier runs of the same job, which were cancelled.
    pub run: u32,
    /// All candidates.
    pub whole: Range<u64>,
    /// Jobs with larger urgencies are served first.
    pub urgency: f64,
    /// The candidates that are tested already.
    pub tested: RangeSet,
}

/// The state of all jobs and workers.
#[derive(Debug, Default)]
pub struct Coordinator {
    jobs: BTreeMap<JobId, Job>,
    fleet: Fleet,
    effects: Vec<Effect>,
    /// The last report, or the last instant without chunks.
    progress: Duration,
}

#[derive(Debug)]
struct Job {
    spec: Arc<SearchSpec>,
    run: u32,
    whole: Range<u64>,
    urgency: f64,
    /// The chunks that are handed over and not done, by their starts.
    chunks: BTreeMap<u64, Chunk>,
    /// The candidates that these miss.
    handed: u64,
    tested: RangeSet,
    found: Option<u64>,
}

#[derive(Debug)]
struct Chunk {
    range: Range<u64>,
    missing: RangeSet,
    attempt: u32,
    unit: u64,
    queue: Queue,
    published: Duration,
}

impl Job {
    /// The starts of the chunks that overlap a range.
    fn overlapping(&self, range: &Range<u64>) -> Vec<u64> {
        let before = self.chunks.range(..range.start).next_back().into_iter();
        let inside = self.chunks.range(range.start..range.end.max(range.start));
        let overlaps = |chunk: &Chunk| chunk.range.end > range.start;
        before.chain(inside).filter(|(_, chunk)| overlaps(chunk)).map(|(&start, _)| start).collect()
    }
}

impl Chunk {
    fn publish(&mut self, (job, run): (JobId, u32), now: Duration, effects: &mut Vec<Effect>) {
        self.published = now;
        effects.extend(self.missing.iter().map(|range| Effect::Publish {
            job,
            run,
            range,
            attempt: self.attempt,
            unit: self.unit,
            queue: self.queue,
        }));
    }
}

impl Coordinator {
    /// What has to be done since the last call.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        mem::take(&mut self.effects)
    }

    /// The workers.
    pub fn fleet(&self) -> &Fleet {
        &self.fleet
    }

    /// The search of a job.
    pub fn spec(&self, job: JobId) -> Option<Arc<SearchSpec>> {
        self.jobs.get(&job).map(|job| Arc::clone(&job.spec))
    }

    /// Whether a search of this many candidates is worth the cluster: there are workers, and more than a few chunks.
    pub fn is_worth(&self, kind: SearchKind, candidates: u64) -> bool {
        self.fleet.speed(kind).is_some_and(|speed| candidates / 4 >= speed.chunk.min(speed.total / 8))
    }

    /// Begins a job. Returns whether it is new: another source may have the same job already.
    pub fn open(&mut self, id: JobId, opening: Opening) -> bool {
        if self.jobs.contains_key(&id) {
            return false;
        }
        let Opening { spec, run, whole, urgency, tested } = opening;
        let job = Job { spec, run, whole, urgency, chunks: BTreeMap::new(), handed: 0, tested, found: None };
        self.jobs.insert(id, job);
        true
    }

    /// The candidates of the next chunk of a job that has this many left to hand over; `None` while the queue has enough.
    pub fn next_chunk(&self, id: JobId, left: u64) -> Option<u64> {
        let job = self.jobs.get(&id).filter(|job| job.found.is_none())?;
        let kind = job.spec.kind();
        let speed = self.fleet.speed(kind)?;
        let of_kind = || self.jobs.values().filter(|job| job.spec.kind() == kind);
        // Chunks of less urgent jobs do not keep a more urgent one from the queue.
        let before = || of_kind().filter(|other| other.urgency >= job.urgency);
        let handed = before().map(|job| job.handed).fold(0, u64::saturating_add);
        speed.next_chunk(left, handed, before().map(|job| job.chunks.len()).sum())
    }

    /// Takes over a chunk, of which no candidate may be in another one of the job.
    pub fn hand(&mut self, id: JobId, range: Range<u64>, now: Duration) {
        let queue = self.queue_of(id);
        if self.jobs.values().all(|job| job.chunks.is_empty()) {
            self.progress = now;
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let missing = RangeSet::of(range.clone());
        let unit = self.fleet.speed(job.spec.kind()).map_or(range.end - range.start, |speed| speed.chunk);
        let mut chunk = Chunk { range: range.clone(), missing, attempt: 0, unit, queue, published: now };
        chunk.publish((id, job.run), now, &mut self.effects);
        job.handed = job.handed.saturating_add(range.end - range.start);
        job.chunks.insert(range.start, chunk);
    }

    /// The urgent queue while chunks of a less urgent job are handed over.
    fn queue_of(&self, id: JobId) -> Queue {
        let urgency = self.jobs.get(&id).map_or(0.0, |job| job.urgency);
        let yields = |job: &Job| job.urgency < urgency && !job.chunks.is_empty();
        if self.jobs.values().any(yields) { Queue::Urgent } else { Queue::Usual }
    }

    /// Notes that the source tested candidates.
    pub fn cover(&mut self, id: JobId, ranges: impl IntoIterator<Item = Range<u64>>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let tested: Vec<_> =
            ranges.into_iter().filter(|range| job.tested.insert(range.clone()) > 0).collect();
        if !tested.is_empty() {
            self.effects.push(Effect::Record { job: id, tested, found: None });
        }
    }

    /// Notes that the source found the candidate.
    pub fn find(&mut self, id: JobId, value: u64) {
        if let Some(job) = self.jobs.get_mut(&id) {
            job.found = Some(value);
            self.effects.push(Effect::Record { job: id, tested: Vec::new(), found: Some(value) });
        }
    }

    /// Ends a job: what is still in the queue is dropped everywhere.
    pub fn close(&mut self, id: JobId) {
        if let Some(job) = self.jobs.remove(&id)
            && !job.chunks.is_empty()
        {
            self.effects.extend([Effect::Cancel(id, job.run), Effect::Purge(id)]);
        }
    }

    /// Notes a beat.
    pub fn beat(&mut self, beat: &BeatMessage, now: Duration) {
        self.fleet.beat(beat, now);
    }

    /// Takes a worker's report. The answer to the worker must wait until the effects are in the ledger.
    pub fn report(&mut self, report: &ReportMessage, now: Duration) -> ReportAnswer {
        let Some(job) = self.jobs.get_mut(&report.job) else { return ReportAnswer::Closed };
        let id = report.job;
        if let Some(value) = report.found {
            // A worker can be wrong, or worse.
            if !job.whole.contains(&value) || !job.spec.is_answer(value) {
                tracing::warn!(worker = %report.worker, job = %id, value, "a worker reports a wrong answer");
                return ReportAnswer::Recorded;
            }
        }
        self.progress = now;
        let inside = |range: &Range<u64>| range.start.max(job.whole.start)..range.end.min(job.whole.end);
        let tested: Vec<_> = report.tested.iter().map(inside).filter(|range| !range.is_empty()).collect();
        if !tested.is_empty() || report.found.is_some() {
            self.effects.push(Effect::Record { job: id, tested: tested.clone(), found: report.found });
        }
        for range in &tested {
            job.tested.insert(range.clone());
            for start in job.overlapping(range) {
                let chunk = job.chunks.get_mut(&start).expect("it overlaps");
                let before = chunk.missing.candidates();
                chunk.missing.remove(range);
                job.handed = job.handed.saturating_sub(before - chunk.missing.candidates());
                if chunk.missing.is_empty() {
                    let chunk = job.chunks.remove(&start).expect("it overlaps");
                    self.effects.push(Effect::Outcome(id, ChunkOutcome::Absent(chunk.range)));
                }
            }
        }
        if let Some(value) = report.found
            && job.found.replace(value).is_none()
        {
            job.chunks.clear();
            job.handed = 0;
            let outcome = Effect::Outcome(id, ChunkOutcome::Found(value));
            self.effects.extend([Effect::Cancel(id, job.run), outcome, Effect::Purge(id)]);
        }
        if job.found.is_some() {
            return ReportAnswer::Closed;
        }
        // Many ranges of a report may lie in one chunk, which is published once.
        let returned: BTreeSet<u64> =
            report.returned.iter().flat_map(|range| job.overlapping(range)).collect();
        for start in returned {
            let chunk = job.chunks.get_mut(&start).expect("it overlaps");
            chunk.attempt += 1;
            chunk.publish((id, job.run), now, &mut self.effects);
        }
        ReportAnswer::Recorded
    }

    /// Whether chunks are handed over.
    pub fn has_chunks(&self) -> bool {
        self.jobs.values().any(|job| !job.chunks.is_empty())
    }

    /// Does what is due: chunks go back to their sources if no worker is left.
    pub fn tick(&mut self, now: Duration) {
        self.fleet.forget_silent(now);
        if !self.fleet.is_empty() {
            return;
        }
        for (&id, job) in &mut self.jobs {
            if job.chunks.is_empty() {
                continue;
            }
            self.effects.push(Effect::Purge(id));
            job.handed = 0;
            for (_, Chunk { range, missing, .. }) in mem::take(&mut job.chunks) {
                self.effects.push(Effect::Outcome(id, ChunkOutcome::Returned { range, missing }));
            }
        }
    }

    /// Compares the queue with what must be in it: the number of messages of each job. Jobs of which messages are lost are
    /// published again.
    pub fn audit(&mut self, messages: &HashMap<JobId, usize>, now: Duration) {
        let is_stalled =
            !self.fleet.is_empty() && self.has_chunks() && now.saturating_sub(self.progress) > STALLED;
        if is_stalled {
            self.progress = now;
            self.effects.push(Effect::RenewConsumers);
        }
        for (&id, job) in &mut self.jobs {
            let settled =
                job.chunks.values().filter(|chunk| now.saturating_sub(chunk.published) > SETTLED).count();
            if settled <= messages.get(&id).copied().unwrap_or(0) && !is_stalled {
                continue;
            }
            self.effects.push(Effect::Purge(id));
            for chunk in job.chunks.values_mut() {
                chunk.attempt += 1;
                chunk.publish((id, job.run), now, &mut self.effects);
            }
        }
    }
}
