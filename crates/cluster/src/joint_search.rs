//! One search by this machine and a cluster together: what is handed over, what is left for this machine, what is done.

use std::ops::Range;
use std::time::{Duration, Instant};

use crate::cluster::{Cluster, ClusterJob};
use crate::coordinator::ChunkOutcome;
use crate::ranges::RangeSet;
use crate::spec::SearchSpec;

/// How often this machine's part is written to the ledger.
const COVER: Duration = Duration::from_millis(500);

/// A search by this machine and a cluster. One thread drives it: it calls [`exchange`](Self::exchange) every few milliseconds,
/// and tests in between what [`take`](Self::take) gives it.
#[derive(Debug)]
pub struct JointSearch {
    job: ClusterJob,
    /// Candidates that are neither tested nor handed over nor taken.
    rest: RangeSet,
    /// The chunks that are handed over, and the parts that are taken.
    out: usize,
    /// Candidates that this machine tested and that are not in the ledger.
    uncovered: RangeSet,
    covered_at: Instant,
    /// The candidates tested up to now, by this machine and by workers.
    tested: u64,
    found: Option<u64>,
}

/// The state of a joint search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JointState {
    /// The candidate behind the digest.
    Found(u64),
    /// All candidates are tested, and none is behind the digest.
    Absent,
    /// Candidates are left for this machine.
    Left,
    /// Workers test what is left.
    Waiting,
}

impl JointSearch {
    /// Begins a search, or continues one that the ledger knows. `wake` is called when [`exchange`](Self::exchange) has news.
    /// `None` if the job is open already.
    pub fn begin(
        cluster: &Cluster,
        spec: SearchSpec,
        whole: Range<u64>,
        urgency: f64,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Option<Self> {
        let job = cluster.open(spec, whole.clone(), urgency, wake)?;
        let rest = job.tested_before().missing_in(whole);
        let found = job.found_before();
        Some(Self {
            job,
            rest,
            out: 0,
            uncovered: RangeSet::default(),
            covered_at: Instant::now(),
            tested: 0,
            found,
        })
    }

    /// Takes in what workers did and hands over further chunks.
    pub fn exchange(&mut self) -> JointState {
        for outcome in self.job.outcomes() {
            self.out -= 1;
            match outcome {
                ChunkOutcome::Found(value) => self.found = Some(value),
                ChunkOutcome::Absent(range) => self.tested += range.end - range.start,
                ChunkOutcome::Returned { range, missing } => {
                    self.tested += range.end - range.start - missing.candidates();
                    for range in missing.iter() {
                        self.rest.insert(range);
                    }
                }
            }
        }
        if self.covered_at.elapsed() >= COVER {
            self.cover();
        }
        if let Some(value) = self.found {
            return JointState::Found(value);
        }
        let mut left = self.rest.candidates();
        while let Some(most) = self.job.next_chunk(left)
            && let Some(range) = self.cut(most)
        {
            left -= range.end - range.start;
            self.out += 1;
            self.job.hand(range);
        }
        match (left, self.out) {
            (0, 0) => {
                self.cover();
                JointState::Absent
            }
            (0, _) => JointState::Waiting,
            _ => JointState::Left,
        }
    }

    /// Takes at most this many candidates for this machine, the lowest that are left. Give them back when they are tested.
    pub fn take(&mut self, most: u64) -> Option<Range<u64>> {
        let part = self.cut(most)?;
        self.out += 1;
        Some(part)
    }

    /// Gives back what [`take`](Self::take) gave, tested up to `tested_to` and no further.
    pub fn give_back(&mut self, part: Range<u64>, tested_to: u64) {
        self.out -= 1;
        self.rest.insert(tested_to..part.end);
        self.uncovered.insert(part.start..tested_to);
        self.tested += tested_to - part.start;
    }

    /// Notes that this machine found the candidate.
    pub fn find(&mut self, value: u64) {
        self.found = Some(value);
        self.cover();
        self.job.find(value);
    }

    /// The number of candidates tested up to now, by this machine and by workers.
    pub fn tested(&self) -> u64 {
        self.tested
    }

    fn cut(&mut self, most: u64) -> Option<Range<u64>> {
        let first = self.rest.iter().next()?;
        let part = first.start..first.end.min(first.start.saturating_add(most.max(1)));
        self.rest.remove(&part);
        Some(part)
    }

    fn cover(&mut self) {
        self.covered_at = Instant::now();
        let uncovered = std::mem::take(&mut self.uncovered);
        if !uncovered.is_empty() {
            self.job.cover(uncovered.iter());
        }
    }
}

impl Drop for JointSearch {
    fn drop(&mut self) {
        self.cover();
    }
}
