//! A table of all short passwords by their SHA-1 digests, built while requests are already served.
//!
//! Building computes every digest twice, once to count and once to place, on threads of the lowest priority. Whether
//! that has paid is told: what it cost, and what requests would have taken without it.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use kendall_digest::Engine;
use kendall_digest::password::{Marks, Mask, sha1_mark};
use rustix::process::nice;
use rustix::time::{ClockId, clock_gettime};

use super::index::{self, Filling, Index};
use super::space::Space;
use super::wanted::{FinderError, Hash, Wanted};

/// How many candidates a thread takes at a time.
const CHUNK: u64 = 1 << 17;

/// See the module.
#[derive(Debug)]
pub(super) struct Table {
    engine: Engine,
    /// The masks, each with the number of its first candidate.
    masks: Vec<(u64, Mask)>,
    candidates: u64,
    longest: usize,
    next_bytes: Option<u64>,
    built: OnceLock<Built>,
    /// Digests computed, of twice as many as there are candidates.
    computed: AtomicU64,
    stopped: AtomicBool,
    hits: AtomicU64,
    saved_ns: AtomicU64,
}

#[derive(Debug)]
struct Built {
    index: Index,
    cost_ns: u64,
}

/// What can be told of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableReport {
    /// Passwords of up to this many characters are in it.
    pub longest: usize,
    /// How many passwords it has, or will have.
    pub passwords: u64,
    /// How many bytes it takes.
    pub bytes: u64,
    /// How many bytes a table of passwords of one character more would take; `None` where there can be none.
    pub next_bytes: Option<u64>,
    /// How much of it is built; 1 when it answers.
    pub done: f64,
    /// The processor time that building took, in ns, once it is done.
    pub cost_ns: Option<u64>,
    /// How many requests it has answered.
    pub hits: u64,
    /// The processor time that these would have taken without it, on average, in ns.
    pub saved_ns: u64,
    /// How many requests it has to answer before building has paid: by those that it has answered, or before there
    /// are any, by passwords of its longest length.
    pub break_even: Option<f64>,
}

impl Table {
    /// Begins to build a table of the passwords up to this length, or else up to the one that fits into this many bytes;
    /// `None` if not even one letter does.
    pub(super) fn start(
        engine: Engine,
        space: &Space,
        memory_bytes: u64,
        length: Option<NonZeroUsize>,
        threads: usize,
    ) -> Result<Option<Arc<Self>>, FinderError> {
        let table = Self::plan(engine, space, memory_bytes);
        if let Some(length) = length.map(NonZeroUsize::get)
            && table.as_ref().is_none_or(|table| table.longest < length)
        {
            let needs_bytes = bytes(space, length);
            return Err(FinderError::NoTable { length, needs_bytes, granted_bytes: memory_bytes });
        }
        let Some(table) = table else { return Ok(None) };
        let table = Arc::new(table);
        let builder = Arc::clone(&table);
        let build = move || builder.build(threads);
        let started = thread::Builder::new().name("recover-table".into()).spawn(build);
        started.map_err(|error| FinderError::NoThread(error.to_string()))?;
        Ok(Some(table))
    }

    /// The table of the longest passwords that fits.
    fn plan(engine: Engine, space: &Space, memory_bytes: u64) -> Option<Self> {
        let fits = |length: &usize| bytes(space, *length).is_some_and(|bytes| bytes <= memory_bytes);
        let longest = (1..=Mask::LONGEST).take_while(fits).last()?;
        let (mut masks, mut candidates) = (Vec::new(), 0);
        for mask in (1..=longest).flat_map(|length| space.of_length(length)) {
            let size = mask.size();
            masks.push((candidates, mask));
            candidates += size;
        }
        Some(Self {
            engine,
            masks,
            candidates,
            longest,
            next_bytes: bytes(space, longest + 1),
            built: OnceLock::new(),
            computed: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            hits: AtomicU64::new(0),
            saved_ns: AtomicU64::new(0),
        })
    }

    /// Ends building, if that goes on.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    fn build(&self, threads: usize) {
        let mut filling = Filling::new(self.candidates);
        let count = self.on_threads(threads, |mark, _| filling.count(mark));
        filling.lay_out();
        let place = self.on_threads(threads, |mark, number| filling.place(mark, number));
        if !self.stopped.load(Relaxed) {
            let built = Built { index: filling.finish(), cost_ns: (count + place).as_nanos() as u64 };
            self.built.set(built).expect("it is built once");
        }
    }

    /// Computes all digests and hands over their marks, with the numbers of the candidates. Returns the processor
    /// time that it took.
    fn on_threads(&self, threads: usize, each: impl Fn(u32, u32) + Sync) -> Duration {
        let next: Vec<AtomicU64> = self.masks.iter().map(|_| AtomicU64::new(0)).collect();
        let work = || {
            // Whoever is served goes first. If that is not to be had, building still ends.
            let _ = nice(19);
            let mut marks = Vec::new();
            for ((offset, mask), next) in self.masks.iter().zip(&next) {
                let of_mask = Marks::sha1(self.engine, mask);
                let chunk = CHUNK.next_multiple_of(of_mask.grain());
                loop {
                    let start = next.fetch_add(chunk, Relaxed);
                    if start >= mask.size() || self.stopped.load(Relaxed) {
                        break;
                    }
                    let end = (start + chunk).min(mask.size());
                    of_mask.fill(start..end, &mut marks);
                    let first = (offset + start) as u32;
                    marks.iter().zip(first..).for_each(|(mark, number)| each(*mark, number));
                    self.computed.fetch_add(end - start, Relaxed);
                }
            }
            clock_gettime(ClockId::ThreadCPUTime)
        };
        thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let spent = threads.into_iter().map(|thread| thread.join().expect("building does not panic"));
            spent.map(|spent| Duration::try_from(spent).expect("it is not negative")).sum()
        })
    }

    /// The password, if it is in the table and of a wanted length.
    pub(super) fn look_up(&self, wanted: &Wanted) -> Option<Vec<u8>> {
        let Hash::Sha1(digest) = &wanted.hash else { return None };
        let built = self.built.get()?;
        let candidates = built.index.look_up(sha1_mark(digest)).iter();
        candidates
            .map(|number| self.password(u64::from(*number)))
            .find(|password| wanted.lengths.contains(&password.len()) && wanted.hash.is_of(password))
    }

    fn password(&self, number: u64) -> Vec<u8> {
        let place = self.masks.partition_point(|(offset, _)| *offset <= number) - 1;
        let (offset, mask) = &self.masks[place];
        mask.password(number - offset)
    }

    /// Takes note of a hit that spared so much processor time.
    pub(super) fn note_hit(&self, saved_ns: f64) {
        self.hits.fetch_add(1, Relaxed);
        self.saved_ns.fetch_add(saved_ns as u64, Relaxed);
    }

    /// What can be told; `candidate_ns` is how long a candidate takes in a search.
    pub(super) fn report(&self, candidate_ns: f64) -> TableReport {
        let (hits, saved_ns) = (self.hits.load(Relaxed), self.saved_ns.load(Relaxed));
        let cost_ns = self.built.get().map(|built| built.cost_ns);
        let of_longest = self.masks.iter().filter(|(_, mask)| mask.charsets().len() == self.longest);
        let half = of_longest.map(|(_, mask)| mask.size()).sum::<u64>() as f64 / 2.0;
        let saved_each = if saved_ns > 0 { saved_ns as f64 / hits as f64 } else { half * candidate_ns };
        TableReport {
            longest: self.longest,
            passwords: self.candidates,
            bytes: index::bytes(self.candidates),
            next_bytes: self.next_bytes,
            done: self.computed.load(Relaxed) as f64 / (2 * self.candidates) as f64,
            cost_ns,
            hits,
            saved_ns,
            break_even: cost_ns.map(|cost_ns| cost_ns as f64 / saved_each),
        }
    }
}

/// How many bytes a table of all passwords up to a length takes; `None` where it has more than numbers of 32 bits count.
fn bytes(space: &Space, longest: usize) -> Option<u64> {
    let candidates = if longest <= Mask::LONGEST { space.size(&(1..=longest)) } else { u64::MAX };
    (candidates <= u64::from(u32::MAX)).then(|| index::bytes(candidates))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_digest::password::sha1;

    fn table(space: &Space, bytes: u64) -> Table {
        let table = Table::plan(Engine::Portable, space, bytes).unwrap();
        table.build(2);
        table
    }

    fn look_up(table: &Table, password: &[u8], lengths: std::ops::RangeInclusive<usize>) -> Option<Vec<u8>> {
        table.look_up(&Wanted { hash: Hash::Sha1(sha1(password)), lengths })
    }

    #[test]
    fn every_password_is_found_and_nothing_else() {
        let space = Space::new("?d", ["abc?d", "?dx?l?d"]).unwrap();
        let table = table(&space, 100_000);
        assert_eq!(table.longest, 4);
        assert_eq!(table.candidates, 10 + 100 + 1000 + 10 + 2600);
        let mut found = 0;
        for length in 1..=4 {
            for mask in space.of_length(length) {
                for number in 0..mask.size() {
                    let password = mask.password(number);
                    assert_eq!(look_up(&table, &password, length..=length), Some(password));
                    found += 1;
                }
            }
        }
        assert_eq!(found, table.candidates);
        for other in ["12345", "abd1", "", "x"] {
            assert_eq!(look_up(&table, other.as_bytes(), 1..=9), None, "{other}");
        }
        assert_eq!(look_up(&table, b"123", 4..=5), None, "of another length");
    }

    #[test]
    fn memory_bounds_the_length() {
        let longest =
            |bytes| Table::plan(Engine::Portable, &Space::default(), bytes).map(|table| table.longest);
        assert_eq!(
            [0, 100, 1 << 10, 1 << 20, 64 << 20, 2 << 30].map(longest),
            [None, None, Some(1), Some(3), Some(5), Some(6)]
        );
    }

    #[test]
    fn a_length_that_does_not_fit_is_refused_with_what_it_needs() {
        let start = |bytes, length| {
            let length = NonZeroUsize::new(length);
            Table::start(Engine::Portable, &Space::default(), bytes, length, 1)
                .map(|table| table.map(|table| table.longest))
        };
        assert_eq!(start(0, 0), Ok(None));
        assert_eq!(start(1 << 20, 3), Ok(Some(3)));
        let refused = start(64 << 20, 6).unwrap_err().to_string();
        assert!(refused.contains("needs 1482 MiB, and 64 MiB are granted"), "{refused}");
        let refused = start(1 << 40, 8).unwrap_err().to_string();
        assert!(refused.contains("4294967295"), "{refused}");
        let next = Table::plan(Engine::Portable, &Space::default(), 64 << 20).unwrap().report(1.0).next_bytes;
        assert_eq!(next.map(|bytes| bytes.div_ceil(1 << 20)), Some(1482));
    }

    #[test]
    fn building_pays_after_as_many_hits_as_foretold() {
        let table = table(&Space::default(), 1 << 20);
        let before = table.report(10.0);
        assert_eq!((before.longest, before.done, before.hits), (3, 1.0, 0));
        let cost = before.cost_ns.unwrap() as f64;
        assert_eq!(before.break_even, Some(cost / (17_576.0 / 2.0 * 10.0)));
        (0..4).for_each(|_| table.note_hit(cost / 8.0));
        let after = table.report(10.0).break_even.unwrap();
        assert!((after - 8.0).abs() < 0.01, "{after}");
    }

    #[test]
    fn a_table_that_is_stopped_answers_nothing() {
        let table = Table::plan(Engine::Portable, &Space::default(), 1 << 20).unwrap();
        table.stop();
        table.build(1);
        assert_eq!(look_up(&table, b"abc", 3..=3), None);
    }
}
