//! The search on one machine: threads, and a graphics card if there is one, share the ranges of some chunks.

use std::collections::VecDeque;
use std::iter::once;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use kendall_digest::gpu::{Device, Gpu, Sums};
use kendall_digest::password::{self, Mask};
use kendall_digest::sha256::{self, Outcome, Targets};
use kendall_digest::{Engine, Interrupt};

use crate::error::ClusterError;
use crate::ranges::RangeSet;
use crate::spec::{SearchKind, SearchSpec};

/// How long a thread tests one part: long compared with fetching it, and short compared with a chunk.
const PART: Duration = Duration::from_millis(4);
/// The fewest candidates of a part.
const LEAST_PART: u64 = 1 << 14;
/// The number of its batches that a card takes at a time.
const CARD_BATCHES: u64 = 8;
/// How long a speed is measured at the start, at least.
const TRIAL: Duration = Duration::from_millis(40);
/// Shorter searches are slowed down by their beginning and their end: they show that a speed is too low, but not that it is
/// too high.
const STEADY: Duration = Duration::from_millis(100);
/// Shorter searches say nothing about speed.
const TOO_SHORT: Duration = Duration::from_millis(1);

/// The processors and the card of this machine.
pub(super) struct Scanner {
    engine: Engine,
    threads: NonZeroUsize,
    card: Mutex<Option<Gpu>>,
    speeds: [AtomicU64; SearchKind::ALL.len()],
}

/// What a search did.
#[derive(Debug, Default)]
pub(super) struct Scanned {
    /// Candidates that are not behind the digest.
    pub(super) tested: RangeSet,
    /// The candidate behind the digest.
    pub(super) found: Option<u64>,
}

/// The parts of a search that no thread has taken.
struct Rest {
    ranges: VecDeque<Range<u64>>,
    scanned: Scanned,
}

impl Scanner {
    /// Finds the card, if one is wanted, and measures the speed for every kind of search.
    pub(super) fn new(engine: Engine, threads: NonZeroUsize, device: Device) -> Result<Self, ClusterError> {
        let card = match device {
            Device::Cpu => None,
            Device::Auto | Device::Gpu => match Gpu::find(Sums::default()) {
                Ok(card) => Some(card),
                Err(absent) if device == Device::Gpu => return Err(ClusterError::Card(absent.to_string())),
                Err(absent) => {
                    tracing::info!(%absent, "the search uses no graphics card");
                    None
                }
            },
        };
        if let Some(card) = &card {
            tracing::info!(card = card.name(), "a graphics card takes part in the search");
        }
        let scanner = Self { engine, threads, card: Mutex::new(card), speeds: Default::default() };
        SearchKind::ALL.into_iter().for_each(|kind| scanner.measure(kind));
        Ok(scanner)
    }

    /// Candidates a second, by the index of the kind.
    pub(super) fn speeds(&self) -> [u64; SearchKind::ALL.len()] {
        [0, 1, 2, 3].map(|kind: usize| self.speeds[kind].load(Ordering::Relaxed))
    }

    /// Measures the speed by searches of more and more candidates, none of which is behind the digest, until more no longer make
    /// it higher: the first searches of a card wait for it to wake up.
    fn measure(&self, kind: SearchKind) {
        let mask = Mask::uniform(b"abcdefghijklmnopqrstuvwxyz", 10).expect("it is a valid mask");
        let spec = match kind {
            SearchKind::Integer => SearchSpec::Integer { digest: [0xa5; 32] },
            SearchKind::Sha1 => SearchSpec::Sha1 { digest: [0xa5; 20], mask },
            SearchKind::Sha256 => SearchSpec::Sha256 { digest: [0xa5; 32], mask },
            SearchKind::Md5 => SearchSpec::Md5 { digest: [0xa5; 16], mask },
        };
        let (mut candidates, mut before) = (1 << 16, 0);
        loop {
            let begun = Instant::now();
            self.search(&spec, once(0..candidates), &Interrupt::new());
            let took = begun.elapsed();
            let speed = per_s(candidates, took);
            if took >= TRIAL && speed < 2 * before || candidates > 1 << 40 {
                return self.speeds[kind.index()].store(speed.max(before), Ordering::Relaxed);
            }
            (candidates, before) = (4 * candidates, speed);
        }
    }

    /// Searches ranges until all is tested, the candidate is found, or the interrupt is raised. Learns the speed.
    pub(super) fn scan(
        &self,
        spec: &SearchSpec,
        ranges: impl IntoIterator<Item = Range<u64>>,
        interrupt: &Interrupt,
    ) -> Scanned {
        let begun = Instant::now();
        let scanned = self.search(spec, ranges, interrupt);
        self.learn(spec.kind(), scanned.tested.candidates(), begun.elapsed());
        scanned
    }

    /// Learns the speed from a search.
    fn learn(&self, kind: SearchKind, candidates: u64, took: Duration) {
        let speed = &self.speeds[kind.index()];
        let (known, now) = (speed.load(Ordering::Relaxed), per_s(candidates, took));
        if took >= STEADY || took >= TOO_SHORT && now > known {
            speed.store(u64::midpoint(known, now), Ordering::Relaxed);
        }
    }

    fn search(
        &self,
        spec: &SearchSpec,
        ranges: impl IntoIterator<Item = Range<u64>>,
        interrupt: &Interrupt,
    ) -> Scanned {
        let rest = Mutex::new(Rest { ranges: ranges.into_iter().collect(), scanned: Scanned::default() });
        let mut card = match spec {
            SearchSpec::Integer { .. } => self.card.lock().expect("no thread panics while it holds the card"),
            _ => return self.search_on_processors(spec, rest, interrupt),
        };
        let (SearchSpec::Integer { digest }, Some(gpu)) = (spec, card.as_mut()) else {
            return self.search_on_processors(spec, rest, interrupt);
        };
        let targets = Targets::one(*digest);
        let most = u64::from(gpu.batch()) * CARD_BATCHES;
        let has_failed = thread::scope(|scope| {
            let rest = &rest;
            // One processor less: a card waits whenever the thread that serves it does.
            for _ in 1..self.threads.get() {
                scope.spawn(move || self.work(spec, rest, interrupt));
            }
            while let Some(part) = take(rest, most, 1) {
                match gpu.scan(&targets, part.clone(), interrupt) {
                    Ok(outcome) => enter(rest, &part, outcome, interrupt),
                    Err(error) => {
                        tracing::error!(%error, "the search continues without the graphics card");
                        lock(rest).ranges.push_front(part);
                        return true;
                    }
                }
                if interrupt.is_raised() {
                    break;
                }
            }
            false
        });
        if has_failed {
            *card = None;
            drop(card);
            return self.search_on_processors(spec, rest, interrupt);
        }
        rest.into_inner().expect("no thread panics while it holds the rest").scanned
    }

    fn search_on_processors(&self, spec: &SearchSpec, rest: Mutex<Rest>, interrupt: &Interrupt) -> Scanned {
        thread::scope(|scope| {
            let rest = &rest;
            for _ in 1..self.threads.get() {
                scope.spawn(move || self.work(spec, rest, interrupt));
            }
            self.work(spec, rest, interrupt);
        });
        rest.into_inner().expect("no thread panics while it holds the rest").scanned
    }

    /// The work of one thread. The size of its parts follows its own speed, which a card beside it does not change.
    fn work(&self, spec: &SearchSpec, rest: &Mutex<Rest>, interrupt: &Interrupt) {
        let mut search = Prepared::new(self.engine, spec);
        let mut most = LEAST_PART;
        while !interrupt.is_raised()
            && let Some(part) = take(rest, most, search.grain())
        {
            let begun = Instant::now();
            let outcome = search.scan(part.clone(), interrupt);
            let in_time = PART.as_secs_f64() * per_s(part.end - part.start, begun.elapsed()) as f64;
            most = (in_time as u64).clamp(LEAST_PART, 4 * most);
            enter(rest, &part, outcome, interrupt);
        }
    }
}

/// A search on a processor.
enum Prepared {
    Integer(Engine, Targets),
    Password(password::Search),
}

impl Prepared {
    fn new(engine: Engine, spec: &SearchSpec) -> Self {
        let one = "it is one digest";
        let (targets, mask) = match spec {
            SearchSpec::Integer { digest } => return Self::Integer(engine, Targets::one(*digest)),
            SearchSpec::Sha1 { digest, mask } => (password::Targets::sha1([*digest]).expect(one), mask),
            SearchSpec::Sha256 { digest, mask } => (password::Targets::sha256([*digest]).expect(one), mask),
            SearchSpec::Md5 { digest, mask } => (password::Targets::md5([*digest]).expect(one), mask),
        };
        Self::Password(password::Search::new(engine, &targets, mask))
    }

    fn grain(&self) -> u64 {
        match self {
            Self::Integer(..) => 1,
            Self::Password(search) => search.grain(),
        }
    }

    fn scan(&mut self, range: Range<u64>, interrupt: &Interrupt) -> Outcome {
        match self {
            Self::Integer(engine, targets) => sha256::scan(*engine, targets, range, interrupt),
            Self::Password(search) => search.scan(range, interrupt),
        }
    }
}

/// Takes about this many candidates, up to a multiple of the grain.
fn take(rest: &Mutex<Rest>, most: u64, grain: u64) -> Option<Range<u64>> {
    let mut rest = lock(rest);
    let first = rest.ranges.front_mut()?;
    let end = first.start.saturating_add(most).checked_next_multiple_of(grain).unwrap_or(u64::MAX);
    let part = first.start..end.min(first.end);
    first.start = part.end;
    if first.is_empty() {
        rest.ranges.pop_front();
    }
    Some(part)
}

/// Notes the outcome of a part. A find stops all threads.
fn enter(rest: &Mutex<Rest>, part: &Range<u64>, outcome: Outcome, interrupt: &Interrupt) {
    let scanned = &mut lock(rest).scanned;
    scanned.tested.insert(part.start..outcome.reached(part));
    if let Outcome::Found { value, .. } = outcome {
        scanned.found = Some(value);
        interrupt.raise();
    }
}

fn lock(rest: &Mutex<Rest>) -> MutexGuard<'_, Rest> {
    rest.lock().expect("no thread panics while it holds the rest")
}

fn per_s(candidates: u64, took: Duration) -> u64 {
    (candidates as f64 / took.as_secs_f64().max(1e-9)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanner(threads: usize) -> Scanner {
        Scanner::new(Engine::Portable, NonZeroUsize::new(threads).unwrap(), Device::Cpu).unwrap()
    }

    #[test]
    fn every_candidate_of_every_range_is_tested() {
        let scanner = scanner(3);
        assert!(scanner.speeds().iter().all(|&speed| speed > 0));
        let ranges = [5..200_000, 300_000..300_001, 400_000..700_000];
        let spec = SearchSpec::Integer { digest: sha256::digest(1) };
        let scanned = scanner.scan(&spec, ranges.clone(), &Interrupt::new());
        assert!(scanned.found.is_none() && scanned.tested.iter().eq(ranges.clone()));
        let spec = SearchSpec::Integer { digest: sha256::digest(300_000) };
        assert_eq!(scanner.scan(&spec, ranges, &Interrupt::new()).found, Some(300_000));
    }

    #[test]
    fn short_searches_raise_a_speed_and_only_long_ones_lower_it() {
        let (scanner, kind) = (scanner(1), SearchKind::Md5);
        let learned = |known: u64, candidates, took_ms| {
            scanner.speeds[kind.index()].store(known, Ordering::Relaxed);
            scanner.learn(kind, candidates, Duration::from_millis(took_ms));
            scanner.speeds()[kind.index()]
        };
        assert_eq!(learned(1_000, 40_000, 4), 5_000_500);
        assert_eq!(learned(1_000, 1, 4), 1_000);
        assert_eq!(learned(1_000, 100, 200), 750);
        assert_eq!(learned(1_000, 1_000, 0), 1_000);
    }

    #[test]
    fn passwords_are_found_by_every_algorithm() {
        let scanner = scanner(2);
        let mask = Mask::uniform(b"abcdefgh", 6).unwrap();
        let (word, number) = (b"hgfedc", mask.number(b"hgfedc").unwrap());
        let specs = [
            SearchSpec::Sha1 { digest: password::sha1(word), mask: mask.clone() },
            SearchSpec::Sha256 { digest: password::sha256(word), mask: mask.clone() },
            SearchSpec::Md5 { digest: password::md5(word), mask: mask.clone() },
        ];
        for spec in specs {
            assert!(spec.is_answer(number) && !spec.is_answer(0) && !spec.is_answer(u64::MAX));
            let scan = |range| scanner.scan(&spec, once(range), &Interrupt::new());
            assert_eq!(scan(0..mask.size()).found, Some(number), "{:?}", spec.kind());
            let before = scan(3..number);
            assert!(before.found.is_none() && before.tested == RangeSet::of(3..number));
        }
    }

    #[test]
    fn a_raised_interrupt_leaves_the_rest_untested() {
        let interrupt = Interrupt::new();
        interrupt.raise();
        let spec = SearchSpec::Integer { digest: [0; 32] };
        let scanned = scanner(2).scan(&spec, once(0..1 << 40), &interrupt);
        assert!(scanned.found.is_none() && scanned.tested.candidates() < 1 << 30);
    }
}
