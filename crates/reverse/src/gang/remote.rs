//! The cluster as a member of the gang: its parts are chunks, which workers on other machines test.

use std::collections::BTreeMap;
use std::iter::once;
use std::ops::Range;
use std::thread;
use std::time::{Duration, Instant};

use kendall_cluster::{ChunkOutcome, Cluster, ClusterJob, RangeSet, SearchKind, SearchSpec};
use kendall_digest::sha256::{Outcome, digest};

use super::Shared;
use crate::board::{News, Part};
use crate::options::Sharing;
use crate::search::Key;

/// How often the board is read. A shorter search is not worth a cluster.
const PERIOD: Duration = Duration::from_millis(10);
/// How often the ledger gets what this machine tested.
const COVER: Duration = Duration::from_secs(1);

/// A search of which the cluster has parts.
struct RemoteSearch {
    key: Key,
    job: ClusterJob,
    /// By their starts.
    parts: BTreeMap<u64, Part>,
    covered: Instant,
}

impl Shared {
    /// Hands parts of the current search to a cluster until the gang is dismissed.
    pub(super) fn follow_on(&self, cluster: &Cluster) {
        let mut searches: BTreeMap<u64, RemoteSearch> = BTreeMap::new();
        // The search that becomes current last is the most urgent.
        let mut urgency = 0.0;
        loop {
            let mut board = self.board();
            if board.dismissed {
                return;
            }
            let left = board.take_left();
            let current = board.current.and_then(|id| Some((id, board.get(id)?)));
            let current = current.map(|(id, search)| (id, search.key, search.left()));
            drop(board);
            for (id, end) in left {
                // Dropping it cancels what workers still test.
                let Some(search) = searches.remove(&id) else { continue };
                match end {
                    Some(Some(value)) => search.job.find(value),
                    Some(None) => search.job.cover(once(search.key.start..search.key.end)),
                    None => {}
                }
            }
            if let Some((id, key, left)) = current
                && !searches.contains_key(&id)
                && cluster.is_worth(SearchKind::Integer, left)
            {
                urgency += 1.0;
                searches.extend(self.open(cluster, id, key, urgency).map(|search| (id, search)));
            }
            for (&id, search) in &mut searches {
                self.enter_outcomes(id, search);
                if search.covered.elapsed() >= COVER {
                    search.covered = Instant::now();
                    self.cover(id, search);
                }
            }
            if let Some((id, ..)) = current
                && let Some(search) = searches.get_mut(&id)
            {
                self.hand_over(id, search);
            }
            thread::park_timeout(PERIOD);
        }
    }

    /// Begins a job, or continues what the ledger has of it.
    fn open(&self, cluster: &Cluster, id: u64, key: Key, urgency: f64) -> Option<RemoteSearch> {
        let spec = SearchSpec::Integer { digest: key.digest };
        let member = thread::current();
        let job = cluster.open(spec, key.start..key.end, urgency, move || member.unpark())?;
        let mut board = self.board();
        if !board.put_on_cluster(id) {
            return None;
        }
        // A file can be damaged.
        let found = job.found_before().filter(|&value| digest(value) == key.digest);
        let mut known = job.tested_before().clone();
        // Parts that are being tested stay with their members.
        let untested: RangeSet = board.search(id).rest().fold(RangeSet::default(), |mut set, range| {
            set.insert(range.clone());
            set
        });
        known = intersection(&known, &untested, key.start..key.end);
        let news = board.learn(id, known.iter(), found);
        drop(board);
        self.report(&news);
        Some(RemoteSearch { key, job, parts: BTreeMap::new(), covered: Instant::now() })
    }

    /// Hands over chunks while the cluster wants some.
    fn hand_over(&self, id: u64, search: &mut RemoteSearch) {
        loop {
            let mut board = self.board();
            let Some(left) = board.get(id).map(|search| search.left()) else { return };
            let Some(most) = search.job.next_chunk(left) else { return };
            let Some(part) = board.take_part(id, |_| Some(most), Sharing::Off) else { return };
            drop(board);
            search.job.hand(part.range.clone());
            search.parts.insert(part.range.start, part);
        }
    }

    /// Enters the outcomes of chunks on the board.
    fn enter_outcomes(&self, id: u64, search: &mut RemoteSearch) {
        for outcome in search.job.outcomes() {
            let mut board = self.board();
            let news = match outcome {
                ChunkOutcome::Absent(range) => match search.parts.remove(&range.start) {
                    Some(part) => board.enter(part, Outcome::Absent),
                    None => News::None,
                },
                // Its chunk, and the others, are no longer needed.
                ChunkOutcome::Found(value) => board.learn(id, [], Some(value)),
                ChunkOutcome::Returned { range, missing } => match search.parts.remove(&range.start) {
                    Some(part) => {
                        board.enter(part, Outcome::Stopped { at: range.start });
                        board.learn(id, missing.missing_in(range).iter(), None)
                    }
                    None => News::None,
                },
            };
            drop(board);
            self.report(&news);
        }
    }

    /// Writes to the ledger what is tested.
    fn cover(&self, id: u64, search: &RemoteSearch) {
        let board = self.board();
        let Some(on_board) = board.get(id) else { return };
        let mut tested = RangeSet::of(search.key.start..search.key.end);
        on_board.untested().for_each(|range| tested.remove(range));
        drop(board);
        search.job.cover(tested.iter());
    }
}

/// The candidates of a range that are in both sets.
fn intersection(one: &RangeSet, other: &RangeSet, whole: Range<u64>) -> RangeSet {
    let mut both = one.clone();
    other.missing_in(whole).iter().for_each(|range| both.remove(&range));
    both
}
