//! Shared chunks: all threads on one search at a time.
//!
//! Where work splits as freely as a range does, m processors serve best as one of m times the speed: two searches
//! in parallel end no sooner than one after the other, and one of them later. So the station has a single server,
//! this gang. The runtime's worker leads it: all members work on the search that the discipline assigns to the
//! leader. They take parts of a fraction of a millisecond from the search, and drop them at once when the leader
//! gets another search.
//!
//! While a part is tested, other searches that need the very same range ride along: the same pass compares their
//! digests, which costs next to nothing.

use std::hint;
use std::io;
use std::mem;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_cluster::Cluster;
use kendall_digest::gpu::{Gpu, GpuError};
use kendall_digest::sha256::{self, Outcome};
use kendall_digest::{Engine, Interrupt};
use kendall_service::{Counter, Interrupt as LeaderInterrupt};

mod remote;

use crate::board::{Board, LEAST_PART, News, Part};
use crate::options::Sharing;
use crate::search::Key;

/// How long a member tests one part: long compared with the few hundred nanoseconds of fetching it, and so short
/// that at the end of a range no member waits long for the last one.
const PART: Duration = Duration::from_micros(300);
/// The candidates of a member's first part.
const FIRST_PART: u64 = 16_384;
/// The fewest candidates for which the other members are woken.
const WORTH_SHARING: u64 = 4 * LEAST_PART;
/// The fewest candidates for a graphics card: starting and ending a launch takes as long as a million candidates,
/// and the processors test these within some milliseconds.
const WORTH_A_LAUNCH: u64 = 5_000_000;
/// The number of its batches that a graphics card takes at a time.
const CARD_BATCHES: u64 = 8;
/// How long a member without work polls for more before it sleeps: waking it would cost other members that long.
const LOOKOUT: Duration = Duration::from_micros(50);

/// How long the leader waits for a cluster before it returns to the runtime.
const CLUSTER_WAIT: Duration = Duration::from_millis(20);

/// The leader's index among the members.
const LEADER: usize = 0;

/// The threads and their work.
#[derive(Debug)]
pub(crate) struct Gang {
    shared: Arc<Shared>,
    followers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    engine: Engine,
    sharing: Sharing,
    has_cluster: bool,
    board: Mutex<Board>,
    /// Signals new work, or the end of the gang.
    news: Condvar,
    /// The token of the leader's turn, during a turn.
    leader: Mutex<Option<LeaderInterrupt>>,
    /// The leader first.
    members: Vec<Member>,
    /// Candidates hashed; a candidate for several searches counts once.
    hashed: Counter,
}

/// The state of one thread, on separate cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Member {
    /// The token of a follower: the leader's is the token of its turn.
    interrupt: Interrupt,
    appetite: Appetite,
}

/// The amount of work that a member takes at a time.
#[derive(Debug)]
enum Appetite {
    /// The candidates that a processor tests in the time of a part, learned from earlier parts.
    Processor(AtomicU64),
    /// A graphics card takes all candidates left, up to some batches, if that is worth a launch.
    Card { batch: u64 },
}

/// A search on the board; dropping it takes the search off.
#[derive(Debug)]
pub(crate) struct BoardEntry {
    id: u64,
    /// The number of tested candidates that was reported to the runtime.
    reported: u64,
    shared: Arc<Shared>,
}

/// The outcome of the leader's turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lead {
    /// The search is unfinished: this many more candidates were tested than at the last turn, by all members or
    /// while riding along.
    Unfinished(u64),
    Ended(Option<u64>),
}

impl Gang {
    /// A gang of this many threads, including the leader's, and of a graphics card if there is one.
    pub(crate) fn new(
        threads: NonZeroUsize,
        card: Option<Gpu>,
        cluster: Option<Cluster>,
        engine: Engine,
        sharing: Sharing,
        hashed: Counter,
    ) -> io::Result<Self> {
        let processor = || Member::new(Appetite::Processor(AtomicU64::new(FIRST_PART)));
        let mut members: Vec<Member> = (0..threads.get()).map(|_| processor()).collect();
        members.extend(card.as_ref().map(|card| Member::new(Appetite::Card { batch: card.batch().into() })));
        let shared = Arc::new(Shared {
            engine,
            sharing,
            has_cluster: cluster.is_some(),
            board: Mutex::default(),
            news: Condvar::new(),
            leader: Mutex::default(),
            members,
            hashed,
        });
        let mut gang = Self { shared, followers: Vec::new() };
        for member in LEADER + 1..threads.get() {
            gang.start(member, |shared, part, interrupt| Ok(shared.scan(part, interrupt)))?;
        }
        if let Some(mut card) = card {
            let scan = move |_: &Shared, part: &Part, interrupt: &Interrupt| {
                card.scan(&part.targets, part.range.clone(), interrupt)
            };
            gang.start(threads.get(), scan)?;
        }
        if let Some(cluster) = cluster {
            let shared = Arc::clone(&gang.shared);
            let follow = move || shared.follow_on(&cluster);
            gang.followers.push(thread::Builder::new().name("gang-cluster".into()).spawn(follow)?);
        }
        Ok(gang)
    }

    fn start(
        &mut self,
        member: usize,
        scan: impl FnMut(&Shared, &Part, &Interrupt) -> Result<Outcome, GpuError> + Send + 'static,
    ) -> io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let follow = move || shared.follow(member, scan);
        self.followers.push(thread::Builder::new().name(format!("gang-{member}")).spawn(follow)?);
        Ok(())
    }

    /// Puts a search on the board.
    pub(crate) fn enter(&self, key: Key) -> BoardEntry {
        let id = self.shared.board().add(key);
        BoardEntry { id, reported: 0, shared: Arc::clone(&self.shared) }
    }

    /// Makes all members work on this search until about this many candidates were tested, it ended, or the leader
    /// was interrupted. The others continue until the next turn. Only one thread may call this at a time.
    pub(crate) fn lead(&self, entry: &mut BoardEntry, candidates: u64, interrupt: &LeaderInterrupt) -> Lead {
        let shared = &*self.shared;
        *shared.leader() = Some(interrupt.clone());
        let mut board = shared.board();
        shared.turn_to(&mut board, entry.id);
        let enough = board.search(entry.id).tested().saturating_add(candidates);
        let mut has_waited = false;
        let lead = loop {
            if let Some(end) = board.search(entry.id).ended() {
                shared.turn_from(board, entry.id);
                break Lead::Ended(end);
            }
            let tested = board.search(entry.id).tested();
            if interrupt.is_raised() || tested >= enough || has_waited {
                break Lead::Unfinished(tested - mem::replace(&mut entry.reported, tested));
            }
            board = match shared.take_part(&mut board, entry.id, LEADER) {
                Some(part) => {
                    drop(board);
                    let begun = Instant::now();
                    let outcome = shared.scan(&part, Interrupt::over(interrupt.word()));
                    shared.enter(part, outcome, LEADER, begun.elapsed())
                }
                // Other members are testing the last parts, and wake the leader when they enter the outcome.
                None => {
                    drop(board);
                    if shared.has_cluster {
                        // A cluster can need seconds, and the request has a deadline.
                        interrupt.wait_timeout(CLUSTER_WAIT);
                        has_waited = true;
                    } else {
                        interrupt.wait();
                    }
                    shared.board()
                }
            };
        };
        *shared.leader() = None;
        lead
    }

    /// The outcome of searches that ended as riders, each reported once.
    pub(crate) fn ended_besides(&self) -> Vec<(Key, Option<u64>)> {
        self.shared.board().take_ended()
    }
}

impl Drop for Gang {
    fn drop(&mut self) {
        self.shared.board().dismissed = true;
        self.shared.interrupt_followers();
        self.shared.news.notify_all();
        for follower in self.followers.drain(..) {
            let _ = follower.join();
        }
    }
}

impl Drop for BoardEntry {
    fn drop(&mut self) {
        let mut board = self.shared.board();
        board.remove(self.id);
        if board.current == Some(self.id) {
            board.current = None;
            self.shared.interrupt_followers();
        }
    }
}

impl Shared {
    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().expect("no thread panics while it holds the board")
    }

    fn leader(&self) -> MutexGuard<'_, Option<LeaderInterrupt>> {
        self.leader.lock().expect("no thread panics while it holds the leader's token")
    }

    /// Makes a search the one that all members work on.
    fn turn_to(&self, board: &mut Board, id: u64) {
        let before = board.current.replace(id);
        if before == Some(id) {
            return;
        }
        if before.is_some() {
            self.interrupt_followers();
        }
        // Waking a follower costs more than the few candidates that one thread tests meanwhile.
        if board.search(id).left() >= WORTH_SHARING {
            self.interrupt_followers();
            self.news.notify_all();
        }
    }

    /// Ends the work on a search.
    fn turn_from(&self, mut board: MutexGuard<'_, Board>, id: u64) {
        board.current = None;
        if board.search(id).is_out() {
            self.interrupt_followers();
        }
    }

    fn interrupt_followers(&self) {
        self.members[LEADER + 1..].iter().for_each(|member| member.interrupt.raise());
    }

    fn take_part(&self, board: &mut Board, id: u64, member: usize) -> Option<Part> {
        board.take_part(
            id,
            |left| self.members[member].appetite.candidates(left, self.members.len()),
            self.sharing,
        )
    }

    /// Works on the current search until the gang is dismissed, or its scanner fails.
    fn follow(
        &self,
        member: usize,
        mut scan: impl FnMut(&Self, &Part, &Interrupt) -> Result<Outcome, GpuError>,
    ) {
        let interrupt = &self.members[member].interrupt;
        let mut board = self.board();
        while !board.dismissed {
            // Lowered before the board is read: a thread that changes the board raises it while it holds the board.
            interrupt.lower();
            let current = board.current;
            board = match current.and_then(|current| self.take_part(&mut board, current, member)) {
                Some(part) => {
                    drop(board);
                    let begun = Instant::now();
                    let start = part.range.start;
                    let outcome = scan(self, &part, interrupt);
                    let took = begun.elapsed();
                    if let Err(error) = &outcome {
                        tracing::error!(%error, "the search continues without it");
                    }
                    let failed = outcome.is_err();
                    let board =
                        self.enter(part, outcome.unwrap_or(Outcome::Stopped { at: start }), member, took);
                    if failed {
                        return;
                    }
                    board
                }
                None => self.await_news(board, member),
            };
        }
    }

    /// Waits for work: polls for a while, then sleeps.
    fn await_news<'a>(&'a self, board: MutexGuard<'a, Board>, member: usize) -> MutexGuard<'a, Board> {
        drop(board);
        let interrupt = &self.members[member].interrupt;
        let until = Instant::now() + LOOKOUT;
        while Instant::now() < until {
            if interrupt.is_raised() {
                return self.board();
            }
            hint::spin_loop();
        }
        let board = self.board();
        if interrupt.is_raised() || board.dismissed {
            return board;
        }
        self.news.wait(board).expect("no thread panics while it holds the board")
    }

    /// Tests a part on a processor.
    fn scan(&self, part: &Part, interrupt: &Interrupt) -> Outcome {
        sha256::scan(self.engine, &part.targets, part.range.clone(), interrupt)
    }

    /// Enters the outcome of a part on the board.
    fn enter(&self, part: Part, outcome: Outcome, member: usize, took: Duration) -> MutexGuard<'_, Board> {
        let Range { start, end } = part.range;
        self.hashed.inc_by(outcome.reached(&part.range) - start);
        if outcome == Outcome::Absent {
            self.members[member].appetite.learn(end - start, took);
        }
        let mut board = self.board();
        let news = board.enter(part, outcome);
        if member != LEADER {
            self.report(&news);
        }
        board
    }

    /// Reports news to the leader.
    fn report(&self, news: &News) {
        if let Some(leader) = &*self.leader() {
            match news {
                News::SomebodyEnded => leader.raise(),
                News::None => leader.wake(),
            }
        }
    }
}

impl Member {
    fn new(appetite: Appetite) -> Self {
        Self { interrupt: Interrupt::new(), appetite }
    }
}

impl Appetite {
    /// The number of candidates to take, given how many are left; a processor takes fewer towards the end, so that
    /// all members finish together.
    fn candidates(&self, left: u64, members: usize) -> Option<u64> {
        match self {
            Self::Processor(pace) => {
                let fair = left / (2 * members as u64);
                Some(pace.load(Ordering::Relaxed).min(fair.max(LEAST_PART)))
            }
            Self::Card { .. } if left < WORTH_A_LAUNCH => None,
            Self::Card { batch } => Some(left.min(CARD_BATCHES * batch)),
        }
    }

    /// Learns from a part that was tested in full. A factor of two at most, because the member may have been
    /// delayed.
    fn learn(&self, candidates: u64, took: Duration) {
        if let Self::Processor(pace) = self {
            let before = pace.load(Ordering::Relaxed);
            let fitting = candidates as f64 * (PART.as_secs_f64() / took.as_secs_f64().max(1e-9));
            pace.store((fitting as u64).clamp(before / 2, before * 2).max(LEAST_PART), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_digest::sha256::digest;
    use proptest::prelude::*;

    fn gang(members: usize, sharing: Sharing) -> Gang {
        let members = NonZeroUsize::new(members).unwrap();
        Gang::new(members, None, None, Engine::Portable, sharing, Counter::default()).unwrap()
    }

    fn key(number: u64, start: u64, end: u64) -> Key {
        Key { digest: digest(number), start, end }
    }

    proptest! {
        /// Searches with any overlap, led a turn at a time in any order, with followers and interrupts: each ends
        /// with its own answer, in its own turn or as a rider.
        #[test]
        fn whoever_leads_and_rides_gets_the_right_answer(
            searches in prop::collection::vec((0u64..30_000, 0u64..20_000, 1u64..20_000), 1..12),
            turns in prop::collection::vec((0usize..12, 1u64..20_000, any::<bool>()), 0..60),
            members in 1usize..4,
        ) {
            let gang = gang(members, Sharing::On);
            let keys: Vec<Key> =
                searches.iter().map(|&(number, start, width)| key(number, start, start + width)).collect();
            let right = |i: usize| Some(searches[i].0).filter(|number| (keys[i].start..keys[i].end).contains(number));
            let mut places: Vec<Option<BoardEntry>> = keys.iter().map(|&key| Some(gang.enter(key))).collect();
            // In the end each is led until it ends: an interrupt for a rider can cut a turn short.
            let to_the_end = (0..searches.len()).map(|i| (i, u64::MAX, false)).cycle().take(100 * searches.len());
            for (i, candidates, interrupted) in turns.into_iter().chain(to_the_end) {
                let Some(entry) = places.get_mut(i % searches.len()).unwrap() else { continue };
                let interrupt = LeaderInterrupt::new();
                if interrupted {
                    interrupt.raise();
                }
                if let Lead::Ended(found) = gang.lead(entry, candidates, &interrupt) {
                    prop_assert_eq!(found, right(i % searches.len()));
                    places[i % searches.len()] = None;
                }
                for (key, found) in gang.ended_besides() {
                    for i in (0..keys.len()).filter(|&i| keys[i] == key && places[i].is_some()) {
                        prop_assert_eq!(found, right(i));
                    }
                }
            }
            prop_assert!(places.iter().all(Option::is_none));
            prop_assert!(gang.shared.board().is_empty());
        }
    }

    #[test]
    fn an_interrupt_ends_a_turn_that_has_no_end() {
        let gang = gang(3, Sharing::Off);
        let mut entry = gang.enter(Key { digest: [0; 32], start: 0, end: u64::MAX });
        thread::scope(|scope| {
            let turn = scope.spawn(|| gang.lead(&mut entry, u64::MAX, &LeaderInterrupt::new()));
            while gang.shared.hashed.get() == 0 {
                thread::yield_now();
            }
            gang.shared.leader().as_ref().unwrap().raise();
            assert!(matches!(turn.join().unwrap(), Lead::Unfinished(1..)));
        });
        // The others continued meanwhile, and stop when no request wants the answer any more.
        drop(entry);
        let mut other = gang.enter(key(100, 0, 1_000));
        assert_eq!(gang.lead(&mut other, u64::MAX, &LeaderInterrupt::new()), Lead::Ended(Some(100)));
    }

    #[test]
    fn a_rider_is_reported_as_soon_as_it_ends() {
        let gang = gang(1, Sharing::On);
        let (found, absent) = (key(50, 0, 5_000), key(u64::MAX, 0, 3_000));
        let _riders = [gang.enter(found), gang.enter(absent)];
        let mut led = gang.enter(key(90_000, 0, 100_000));
        assert!(matches!(gang.lead(&mut led, 8_000, &LeaderInterrupt::new()), Lead::Unfinished(8_000..)));
        assert_eq!(gang.ended_besides(), [(found, Some(50)), (absent, None)]);
        assert_eq!(gang.ended_besides(), []);
        assert_eq!(gang.lead(&mut led, u64::MAX, &LeaderInterrupt::new()), Lead::Ended(Some(90_000)));
        assert_eq!(gang.shared.hashed.get(), 90_000);
    }
}
