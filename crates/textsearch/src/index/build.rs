//! Builds the lists of one block: for each of its segments, and each trigram in it, the lines that have it.

use std::ops::Range;

use crate::data::block::Block;

/// A segment has at least this many lines, if the block has: types with fewer rows share one.
const LEAST_LINES: usize = 4096;
const TRIGRAMS: usize = 1 << 24;

/// The lists of a segment. Lines are counted from its first.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) entries: Vec<Entry>,
    pub(crate) data: Vec<u8>,
}

/// One list: up to which byte of the data it reaches, and how many lines it has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) trigram: u32,
    pub(crate) end: u32,
    pub(crate) lines: u32,
}

/// The stretches of lines of a block that have their own lists: a type, or several small ones.
pub(crate) fn segments(block: &Block) -> Vec<Range<usize>> {
    let mut segments: Vec<Range<usize>> = Vec::new();
    for (_, lines) in block.groups() {
        match segments.last_mut() {
            Some(last) if last.len() < LEAST_LINES || lines.len() < LEAST_LINES / 4 => last.end = lines.end,
            _ => segments.push(lines),
        }
    }
    segments
}

/// Builds lists. It keeps its tables from one segment to the next; each thread has one.
pub(crate) struct Builder {
    /// Where each trigram is collected, plus one; 0 if it has not occurred yet.
    slots: Vec<u32>,
    collected: Vec<Collected>,
}

#[derive(Default)]
struct Collected {
    trigram: u32,
    /// The last line, plus one.
    last: u32,
    lines: u32,
    gaps: Vec<u8>,
}

impl Builder {
    pub(crate) fn new() -> Self {
        Self { slots: vec![0; TRIGRAMS], collected: Vec::new() }
    }

    /// The lists of these lines of a block.
    pub(crate) fn lists(&mut self, block: &Block, segment: Range<usize>) -> Lists {
        let (text, starts) = (block.text(), block.starts());
        for (number, line) in segment.clone().enumerate() {
            let (start, end) = (starts[line] as usize, starts[line + 1] as usize);
            // The line feed behind the line before is the one before this line.
            let mut trigram = u32::from(b'\n');
            for (index, &byte) in text[start..end].iter().enumerate() {
                trigram = (trigram << 8 | u32::from(byte)) & (TRIGRAMS as u32 - 1);
                if index > 0 {
                    self.add(trigram, number as u32);
                }
            }
        }
        self.take(segment.len())
    }

    fn add(&mut self, trigram: u32, line: u32) {
        let slot = &mut self.slots[trigram as usize];
        if *slot == 0 {
            self.collected.push(Collected { trigram, ..Collected::default() });
            *slot = self.collected.len() as u32;
        }
        let collected = &mut self.collected[*slot as usize - 1];
        if collected.last == line + 1 {
            return;
        }
        push_number(&mut collected.gaps, line - collected.last);
        collected.last = line + 1;
        collected.lines += 1;
    }

    /// The collected lists. A list that is longer than a bit for each line becomes a bit map.
    fn take(&mut self, lines: usize) -> Lists {
        let mut lists = Lists::default();
        for collected in self.collected.iter_mut().filter(|collected| collected.lines > 0) {
            let bits = lines.div_ceil(8);
            if collected.gaps.len() < bits {
                lists.data.extend_from_slice(&collected.gaps);
            } else {
                let start = lists.data.len();
                lists.data.resize(start + bits, 0);
                for_each_line(&collected.gaps, |line| lists.data[start + line / 8] |= 1 << (line % 8));
            }
            let end = lists.data.len() as u32;
            lists.entries.push(Entry { trigram: collected.trigram, end, lines: collected.lines });
            collected.gaps.clear();
            (collected.last, collected.lines) = (0, 0);
        }
        lists
    }
}

/// Seven bits per byte, the low ones first; the highest bit is set if more follow.
fn push_number(bytes: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The lines of a list of gaps.
pub(crate) fn for_each_line(gaps: &[u8], mut line: impl FnMut(usize)) {
    let mut next = 0;
    let (mut number, mut shift) = (0, 0);
    for &byte in gaps {
        number |= usize::from(byte & 0x7f) << (shift & 31);
        if byte & 0x80 != 0 {
            shift += 7;
            continue;
        }
        next += number + 1;
        line(next - 1);
        (number, shift) = (0, 0);
    }
}
