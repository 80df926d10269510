//! A table of all short passwords by their SHA-1 digests, built while the server runs.
//!
//! Building computes every digest twice, once to count and once to place, on threads of the lowest priority. The report
//! shows whether that has paid off: its cost, and the time that requests would have taken without it.

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
use super::query::{FinderError, Hash, PasswordQuery};
use super::space::Space;

/// The number of candidates that a thread takes at a time.
const CHUNK: u64 = 1 << 17;

/// A table that is built in the background.
#[derive(Debug)]
pub(super) struct Table {
    engine: Engine,
    /// The masks, each with the number of its first candidate.
    masks: Vec<(u64, Mask)>,
    candidates: u64,
    longest: usize,
    next_bytes: Option<u64>,
    built: OnceLock<Built>,
    /// The number of digests computed; twice the number of candidates in the end.
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

/// The report of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableReport {
    /// The length of its longest passwords, in characters.
    pub longest: usize,
    /// The number of its passwords, once complete.
    pub passwords: u64,
    /// The table's size in bytes.
    pub bytes: u64,
    /// The size in bytes of a table of passwords one character longer; `None` if that is impossible.
    pub next_bytes: Option<u64>,
    /// The share that is built; 1 when it answers.
    pub done: f64,
    /// The processor time of building, in ns, once complete.
    pub cost_ns: Option<u64>,
    /// The number of requests it has answered.
    pub hits: u64,
    /// The average processor time that these would have taken without it, in ns.
    pub saved_ns: u64,
    /// The number of answered requests at which building pays off: by those it has answered, or before there are any, by
    /// passwords of its longest length.
    pub break_even: Option<f64>,
}

impl Table {
    /// Begins to build a table of the passwords up to this length, or otherwise up to the longest that fits this many
    /// bytes; `None` if not even one letter does.
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

    /// Stops building, if it is running.
    pub(super) fn stop(&self) {
        self.stopped.store(true, Relaxed);
    }

    fn build(&self, threads: usize) {
        let mut filling = Filling::new(self.candidates);
        let count = self.on_threads(threads, |mark, _| filling.count(mark));
        filling.place_buckets();
        let place = self.on_threads(threads, |mark, number| filling.place(mark, number));
        if !self.stopped.load(Relaxed) {
            let built = Built { index: filling.finish(), cost_ns: (count + place).as_nanos() as u64 };
            self.built.set(built).expect("it is built once");
        }
    }

    /// Computes all digests and passes on their marks, with the numbers of the candidates. Returns the processor time
    /// used.
    fn on_threads(&self, threads: usize, each: impl Fn(u32, u32) + Sync) -> Duration {
        let next: Vec<AtomicU64> = self.masks.iter().map(|_| AtomicU64::new(0)).collect();
        let work = || {
            // Requests have precedence. If the priority cannot be lowered, building continues at the default one.
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

    /// The password, if it is in the table and of a requested length.
    pub(super) fn look_up(&self, query: &PasswordQuery) -> Option<Vec<u8>> {
        let Hash::Sha1(digest) = &query.hash else { return None };
        let built = self.built.get()?;
        let candidates = built.index.look_up(sha1_mark(digest)).iter();
        candidates
            .map(|number| self.password(u64::from(*number)))
            .find(|password| query.lengths.contains(&password.len()) && query.hash.is_of(password))
    }

    fn password(&self, number: u64) -> Vec<u8> {
        let place = self.masks.partition_point(|(offset, _)| *offset <= number) - 1;
        let (offset, mask) = &self.masks[place];
        mask.password(number - offset)
    }

    /// Records a hit that saved this much processor time.
    pub(super) fn note_hit(&self, saved_ns: f64) {
        self.hits.fetch_add(1, Relaxed);
        let add = |sum: u64| Some(sum.saturating_add(saved_ns as u64));
        let _ = self.saved_ns.fetch_update(Relaxed, Relaxed, add);
    }

    /// The report; `candidate_ns` is the time per candidate of a search.
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

/// The size in bytes of a table of all passwords up to a length; `None` if it has more than 32-bit numbers can count.
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
        table.look_up(&PasswordQuery { hash: Hash::Sha1(sha1(password)), lengths })
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
        assert!(refused.contains("needs 1482 MiB, but only 64 MiB are allowed"), "{refused}");
        let refused = start(1 << 40, 8).unwrap_err().to_string();
        assert!(refused.contains("4294967295"), "{refused}");
        let next = Table::plan(Engine::Portable, &Space::default(), 64 << 20).unwrap().report(1.0).next_bytes;
        assert_eq!(next.map(|bytes| bytes.div_ceil(1 << 20)), Some(1482));
    }

    #[test]
    fn building_pays_off_after_the_reported_number_of_hits() {
        let table = table(&Space::default(), 1 << 20);
        let before = table.report(10.0);
        assert_eq!((before.longest, before.done, before.hits), (3, 1.0, 0));
        let cost = before.cost_ns.unwrap() as f64;
        assert_eq!(before.break_even, Some(cost / (17_576.0 / 2.0 * 10.0)));
        (0..4).for_each(|_| table.note_hit(cost / 8.0));
        let after = table.report(10.0).break_even.unwrap();
        assert!((after - 8.0).abs() < 0.01, "{after}");
        (0..2).for_each(|_| table.note_hit(f64::MAX));
        assert_eq!(table.report(10.0).saved_ns, u64::MAX);
    }

    #[test]
    fn a_stopped_table_answers_no_request() {
        let table = Table::plan(Engine::Portable, &Space::default(), 1 << 20).unwrap();
        table.stop();
        table.build(1);
        assert_eq!(look_up(&table, b"abc", 3..=3), None);
    }
}
