//! Finds the lines of a segment that have the trigrams that a pattern needs.
//!
//! The rarest window comes first; each of the others is only evaluated while reading its lists costs less than trying the
//! remaining lines.

use super::build::for_each_line;
use super::need::{ByteSet, Need, Window};
use super::shard::Shard;

/// The windows that a pattern needs in a shard, with their lists.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The rarest first.
    windows: Vec<Lists>,
    one_of: Vec<Vec<Self>>,
    /// Whether the lines that it marks are exactly those that have all windows.
    pub(crate) is_whole: bool,
    /// The largest possible number of lines that have it.
    pub(crate) most_lines: u64,
    /// The expected number of lines that have it.
    pub(crate) likely_lines: f64,
    /// The expected number of entries to read.
    pub(crate) numbers: f64,
}

#[derive(Debug)]
struct Lists {
    places: Vec<u32>,
    numbers: u64,
    /// The approximate number of lines in one segment.
    share: u64,
}

/// Going to a list costs as much as reading this many numbers: it is elsewhere in memory.
const GOING: u64 = 120;
/// A window that nearly all lines have gives no information.
const COMMON: f64 = 0.7;
/// The most trigrams of a window that are read.
const MOST_TRIGRAMS: usize = 8192;

impl Resolved {
    /// For a shard with this many rows. `None` if no line matches. `trying` is the cost of trying a line, in numbers read. Windows
    /// beyond the trigrams that may still be tested, `tests_left`, are left out, as if all lines had them.
    pub(crate) fn new(
        need: &Need,
        shard: &Shard,
        rows: u64,
        trying: u64,
        tests_left: &mut usize,
    ) -> Option<Self> {
        let mut windows = Vec::new();
        let mut most_lines = rows;
        // Of several, some may be left unread.
        let mut is_whole = need.windows.len() + need.one_of.len() == 1;
        for window in &need.windows {
            let left = tests_left.checked_sub(shard.tests(window));
            let Some(left) = left.filter(|_| is_worth_a_look(window, shard)) else {
                is_whole = false;
                continue;
            };
            *tests_left = left;
            let lists = Lists::of(window, shard);
            if lists.numbers == 0 {
                return None;
            }
            if (lists.numbers as f64) < COMMON * rows as f64 && lists.places.len() <= MOST_TRIGRAMS {
                most_lines = most_lines.min(lists.numbers);
                windows.push(lists);
            } else {
                is_whole = false;
            }
        }
        windows.sort_unstable_by_key(|lists| lists.numbers);
        let (mut likely_lines, mut numbers) = likely(&windows, rows, trying);
        let mut one_of = Vec::new();
        for needs in &need.one_of {
            let resolved = needs.iter().filter_map(|need| Self::new(need, shard, rows, trying, tests_left));
            let some: Vec<Self> = resolved.collect();
            if some.is_empty() {
                return None;
            }
            let lines: u64 = some.iter().map(|one| one.most_lines).sum();
            is_whole &= some.iter().all(|one| one.is_whole);
            if (lines as f64) < COMMON * rows as f64 {
                most_lines = most_lines.min(lines);
                let likely = some.iter().map(|one| one.likely_lines).sum::<f64>();
                likely_lines = likely_lines.min(likely);
                numbers += some.iter().map(|one| one.numbers).sum::<f64>();
                one_of.push(some);
            } else {
                is_whole = false;
            }
        }
        Some(Self { windows, one_of, is_whole, most_lines, likely_lines, numbers })
    }

    /// Whether no window helps.
    pub(crate) fn is_idle(&self) -> bool {
        self.windows.is_empty() && self.one_of.is_empty()
    }

    /// Marks the lines of a segment that may match. `trying` is the cost of trying one of them, in numbers read.
    pub(crate) fn mark(&self, shard: &Shard, segment: u16, trying: u64, bits: &mut Bits) {
        let mut first = true;
        for lists in &self.windows {
            if first {
                lists.mark(shard, segment, bits);
                first = false;
            } else {
                let left = bits.count();
                if left == 0 || left * trying < lists.share + GOING * lists.places.len() as u64 {
                    break;
                }
                let mut more = bits.like();
                lists.mark(shard, segment, &mut more);
                bits.keep(&more);
            }
        }
        for some in &self.one_of {
            if !first && bits.count() == 0 {
                return;
            }
            let mut any = bits.like();
            for one in some {
                let mut more = bits.like();
                one.mark(shard, segment, trying, &mut more);
                any.add(&more);
            }
            if first {
                *bits = any;
                first = false;
            } else {
                bits.keep(&any);
            }
        }
        if first {
            bits.fill();
        }
    }
}

impl Lists {
    fn of(window: &Window, shard: &Shard) -> Self {
        let places = shard.fitting(window);
        let numbers = places.iter().map(|&place| u64::from(shard.lines[place as usize])).sum();
        let entries = |place: usize| u64::from(shard.first_entries[place + 1] - shard.first_entries[place]);
        let lists: u64 = places.iter().map(|&place| entries(place as usize)).sum();
        Self { share: numbers * places.len() as u64 / lists.max(1), places, numbers }
    }

    fn mark(&self, shard: &Shard, segment: u16, bits: &mut Bits) {
        for &place in &self.places {
            if let Some(list) = shard.list(place, segment) {
                bits.add_list(list);
            }
        }
    }
}

/// In text that is not a language, too many trigrams may fit a wide window to look all of them up.
fn is_worth_a_look(window: &Window, shard: &Shard) -> bool {
    const LANGUAGE: usize = 1 << 18;
    const NARROW: usize = 64;
    shard.trigrams.len() <= LANGUAGE || window.iter().map(ByteSet::len).product::<usize>() <= NARROW
}

/// How many lines are left, and how many numbers were read, when reading more does not pay. Trigrams of the same word occur
/// together, so a window leaves more than its independent share of the lines left by those before it: about its root.
fn likely(windows: &[Lists], rows: u64, trying: u64) -> (f64, f64) {
    let Some(first) = windows.first() else { return (rows as f64, 0.0) };
    let (mut lines, mut numbers) = (first.numbers as f64, first.numbers as f64);
    for lists in &windows[1..] {
        if lines * (trying as f64) < lists.numbers as f64 {
            break;
        }
        numbers += lists.numbers as f64;
        lines *= (lists.numbers as f64 / rows as f64).sqrt().min(1.0);
    }
    (lines, numbers)
}

/// A bit for each line of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bits {
    words: Vec<u64>,
    lines: usize,
}

impl Bits {
    /// A set of this many lines, all clear.
    pub(crate) fn none(lines: usize) -> Self {
        Self { words: vec![0; lines.div_ceil(64)], lines }
    }

    fn like(&self) -> Self {
        Self::none(self.lines)
    }

    fn fill(&mut self) {
        self.words.fill(u64::MAX);
        if !self.lines.is_multiple_of(64)
            && let Some(last) = self.words.last_mut()
        {
            *last = (1 << (self.lines % 64)) - 1;
        }
    }

    fn add_list(&mut self, list: &[u8]) {
        if list.len() < self.lines.div_ceil(8) {
            // A saved index can be damaged: lines beyond the segment are left out.
            for_each_line(list, |line| {
                if let Some(word) = self.words.get_mut(line / 64) {
                    *word |= 1 << (line % 64);
                }
            });
            return;
        }
        for (word, bytes) in self.words.iter_mut().zip(list.chunks(8)) {
            let mut whole = [0; 8];
            whole[..bytes.len()].copy_from_slice(bytes);
            *word |= u64::from_le_bytes(whole);
        }
    }

    fn add(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word |= other);
    }

    fn keep(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, other)| *word &= other);
    }

    fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    pub(crate) fn words(&self) -> &[u64] {
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::fs;

    use super::*;
    use crate::database::Database;
    use crate::opening::{OpenOptions, Saving};
    use crate::query::Query;
    use crate::semantics::Semantics;

    #[test]
    fn a_limit_of_tests_leaves_out_wide_windows_and_keeps_a_narrow_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data.txt");
        let mut state = 1_u64;
        let mut rows = String::new();
        for _ in 0..4000 {
            let mut letter = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                char::from(b'a' + (state >> 33) as u8 % 26)
            };
            let letters: String = (0..30).map(|_| letter()).collect();
            writeln!(rows, "1@@@{letters}").unwrap();
        }
        fs::write(&path, rows).unwrap();
        let options = OpenOptions { saving: Saving::Off, ..OpenOptions::default() };
        let database = Database::open(&path, &options).unwrap();
        let shard = &database.index.shards[0].shard;
        let class = |first: u8| format!("[{}-{}]", char::from(first), char::from(first + 4));
        let classes: String = (b'a'..=b'u').map(class).collect();
        let query = Query::parse(&format!(";{classes}xyz"), &Semantics::default()).unwrap();
        let need = query.need().need.as_ref().unwrap();
        let resolved = |mut left: usize| {
            let resolved = Resolved::new(need, shard, 4000, 100, &mut left).unwrap();
            (resolved, left)
        };
        let (all, _) = resolved(usize::MAX);
        assert!(all.windows.len() > 10, "{all:?}");
        let (few, left) = resolved(3 * shard.trigrams.len() + 256);
        assert_eq!((few.windows.len(), left), (4, 0));
        assert_eq!(few.windows[0].places.len(), 1, "the rarest is the narrow one");
        assert!(few.likely_lines >= all.likely_lines);
        assert!(resolved(0).0.is_idle());
    }
}
