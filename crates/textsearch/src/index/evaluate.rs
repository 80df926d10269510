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
    /// For a shard with this many rows. `None` if no line matches. `trying` is the cost of trying a line, in numbers read.
    pub(crate) fn new(need: &Need, shard: &Shard, rows: u64, trying: u64) -> Option<Self> {
        let mut windows = Vec::new();
        let mut most_lines = rows;
        // Of several, some may be left unread.
        let mut is_whole = need.windows.len() + need.one_of.len() == 1;
        for window in &need.windows {
            if !is_worth_a_look(window, shard) {
                is_whole = false;
                continue;
            }
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
            let some: Vec<Self> =
                needs.iter().filter_map(|need| Self::new(need, shard, rows, trying)).collect();
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
