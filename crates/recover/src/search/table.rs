//! A table of all short passwords by their SHA-1 digests, built while requests are already served.
//!
//! Building computes every digest twice, once to count and once to place, on threads of the lowest priority. Whether
//! that has paid is told: what it cost, and what requests would have taken without it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{io, thread};

use kendall_digest::Engine;
use kendall_digest::password::{Marks, Mask, sha1_mark};
use rustix::process::nice;
use rustix::time::{ClockId, clock_gettime};

use super::index::{self, Filling, Index};
use super::space::Space;
use super::{Hash, Wanted};

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
    /// Passwords of up to so many characters are in it.
    pub longest: usize,
    /// How many passwords it has, or will have.
    pub passwords: u64,
    /// How many bytes it takes.
    pub bytes: u64,
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
    /// Begins to build a table of the passwords up to the length that fits into so many bytes; `None` if not even one
    /// letter does.
    pub(super) fn start(
        engine: Engine,
        space: &Space,
        memory_bytes: u64,
        threads: usize,
    ) -> io::Result<Option<Arc<Self>>> {
        let Some(table) = Self::plan(engine, space, memory_bytes) else { return Ok(None) };
        let table = Arc::new(table);
        let builder = Arc::clone(&table);
        thread::Builder::new().name("recover-table".into()).spawn(move || builder.build(threads))?;
        Ok(Some(table))
    }

    fn plan(engine: Engine, space: &Space, memory_bytes: u64) -> Option<Self> {
        let (mut masks, mut candidates, mut longest) = (Vec::new(), 0, 0);
        for length in 1..=Mask::LONGEST {
            let total = space.size(&(length..=length)).saturating_add(candidates);
            if total > u64::from(u32::MAX) || index::bytes(total) > memory_bytes {
                break;
            }
            for mask in space.of_length(length) {
                let size = mask.size();
                masks.push((candidates, mask));
                candidates += size;
            }
            longest = length;
        }
        (longest > 0).then(|| Self {
            engine,
            masks,
            candidates,
            longest,
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
            done: self.computed.load(Relaxed) as f64 / (2 * self.candidates) as f64,
            cost_ns,
            hits,
            saved_ns,
            break_even: cost_ns.map(|cost_ns| cost_ns as f64 / saved_each),
        }
    }
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
