//! The passwords of a mask, tried by this machine, or by it and a cluster.

use std::thread;
use std::time::Duration;

use kendall_cluster::{Cluster, JointSearch, JointState, SearchSpec};
use kendall_digest::password::{Mask, Outcome, Search};
use kendall_digest::{Engine, Interrupt};

use super::query::Hash;

/// How long a thread waits for workers before it returns to the runtime.
const WAIT: Duration = Duration::from_millis(2);

/// The outcome of trying candidates.
pub(super) struct TrialOutcome {
    pub(super) count: u64,
    pub(super) end: TrialEnd,
}

/// The reason why no more were tried.
pub(super) enum TrialEnd {
    Found(Vec<u8>),
    /// The part has no more.
    Done,
    /// The requested number of candidates was tried, or an interrupt was raised.
    Enough,
}

/// The passwords of a mask that this machine tries alone, from the one at `next` on.
pub(super) struct InMask {
    mask: Mask,
    search: Search,
    next: u64,
}

impl InMask {
    pub(super) fn new(engine: Engine, hash: &Hash, mask: Mask) -> Self {
        let search = Search::new(engine, &hash.target(), &mask);
        Self { mask, search, next: 0 }
    }

    pub(super) fn advance(&mut self, interrupt: &Interrupt, most: u64) -> TrialOutcome {
        // Rows that were begun are finished, because that takes no longer.
        let end = self.next.saturating_add(most).checked_next_multiple_of(self.search.grain());
        let end = end.unwrap_or(u64::MAX).min(self.mask.size());
        let (next, end) = match self.search.scan(self.next..end, interrupt) {
            Outcome::Found { value, .. } => (value + 1, TrialEnd::Found(self.mask.password(value))),
            Outcome::Stopped { at } => (at, TrialEnd::Enough),
            Outcome::Absent if end == self.mask.size() => (end, TrialEnd::Done),
            Outcome::Absent => (end, TrialEnd::Enough),
        };
        TrialOutcome { count: next - std::mem::replace(&mut self.next, next), end }
    }
}

/// The passwords of a mask that workers try, too.
pub(super) struct OnCluster {
    mask: Mask,
    search: Search,
    joint: JointSearch,
    counted: u64,
}

impl OnCluster {
    /// `None` if the mask has too few passwords for a cluster, there are no workers, or another request has the same search.
    pub(super) fn begin(cluster: &Cluster, engine: Engine, hash: &Hash, mask: &Mask) -> Option<Self> {
        let spec = match *hash {
            Hash::Sha1(digest) => SearchSpec::Sha1 { digest, mask: mask.clone() },
            Hash::Sha256(digest) => SearchSpec::Sha256 { digest, mask: mask.clone() },
            Hash::Md5(digest) => SearchSpec::Md5 { digest, mask: mask.clone() },
        };
        if !cluster.is_worth(spec.kind(), mask.size()) {
            return None;
        }
        // Requests all have the same priority.
        let joint = JointSearch::begin(cluster, spec, 0..mask.size(), 1.0, || {})?;
        let search = Search::new(engine, &hash.target(), mask);
        Some(Self { mask: mask.clone(), search, joint, counted: 0 })
    }

    /// Takes in what workers did, and tries some passwords of those that are left. The end is missing while
    /// workers have all that is left.
    pub(super) fn advance(&mut self, interrupt: &Interrupt, most: u64) -> (u64, Option<TrialEnd>) {
        let state = self.joint.exchange();
        if state == JointState::Left
            && let Some(part) = self.joint.take(most.next_multiple_of(self.search.grain()))
        {
            let outcome = self.search.scan(part.clone(), interrupt);
            let reached = outcome.reached(&part);
            self.joint.give_back(part, reached);
            if let Outcome::Found { value, .. } = outcome {
                self.joint.find(value);
                return (self.count() + 1, Some(TrialEnd::Found(self.mask.password(value))));
            }
        }
        let end = match state {
            JointState::Found(value) if value < self.mask.size() => {
                Some(TrialEnd::Found(self.mask.password(value)))
            }
            JointState::Absent => Some(TrialEnd::Done),
            JointState::Waiting => None,
            _ => Some(TrialEnd::Enough),
        };
        (self.count(), end)
    }

    /// The passwords that were tried since the last call.
    fn count(&mut self) -> u64 {
        let tested = self.joint.tested();
        tested - std::mem::replace(&mut self.counted, tested)
    }
}

/// Waits a moment for workers.
pub(super) fn wait_for_workers() {
    thread::sleep(WAIT);
}
