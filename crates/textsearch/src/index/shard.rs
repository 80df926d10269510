//! The lists of some hundred megabytes of text, by trigram.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::build::{Builder, Lists, segments};
use super::need::{ByteSet, Window};
use crate::data::block::Block;

/// Blocks are combined until they have this many bytes of text.
const SHARD_BYTES: usize = 256 << 20;
/// For at most this many first bytes of a window, each is combined with its second one.
const FEW_FIRSTS: usize = 8;

/// The lists of several blocks. Everything is sorted by trigram, then by segment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Shard {
    /// The trigrams that occur.
    pub(crate) trigrams: Vec<u32>,
    /// Where the entries of each begin, and where the last ends.
    pub(crate) first_entries: Vec<u32>,
    /// How many lines each has.
    pub(crate) lines: Vec<u32>,
    /// The segment of each entry, counted from the shard's first.
    pub(crate) segments: Vec<u16>,
    /// The byte of the data up to which each entry reaches.
    pub(crate) ends: Vec<u32>,
    pub(crate) data: Vec<u8>,
}

/// The blocks that share each shard.
pub(crate) fn shards(blocks: &[Block]) -> Vec<Range<usize>> {
    let mut shards: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    let mut numbered = 0;
    for (index, block) in blocks.iter().enumerate() {
        bytes += block.text().len();
        numbered += segments(block).len();
        match shards.last_mut() {
            Some(last) if bytes <= SHARD_BYTES && numbered <= usize::from(u16::MAX) => last.end = index + 1,
            _ => {
                shards.push(index..index + 1);
                bytes = block.text().len();
                numbered = segments(block).len();
            }
        }
    }
    shards
}

impl Shard {
    /// Builds the lists of these blocks on several threads.
    pub(crate) fn build(blocks: &[Block], threads: usize) -> Self {
        let made: Vec<OnceLock<Vec<Lists>>> = blocks.iter().map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            let mut builder = Builder::new();
            while let Some(at) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&at| at < blocks.len()) {
                let block = &blocks[at];
                let lists = segments(block).into_iter().map(|segment| builder.lists(block, segment));
                let _ = made[at].set(lists.collect());
            }
        };
        // This thread is one of them, so one block starts none.
        thread::scope(|scope| {
            (1..threads.min(blocks.len())).for_each(|_| drop(scope.spawn(work)));
            work();
        });
        let made = made.into_iter().flat_map(|lists| lists.into_inner().expect("each block was worked on"));
        Self::joined(&made.collect::<Vec<_>>())
    }

    /// Counts, then copies each list to its position.
    fn joined(made: &[Lists]) -> Self {
        let entries = || made.iter().flat_map(|lists| &lists.entries);
        let mut trigrams: Vec<u32> = entries().map(|entry| entry.trigram).collect();
        trigrams.sort_unstable();
        trigrams.dedup();
        let mut place = vec![0u32; 1 << 24];
        trigrams.iter().enumerate().for_each(|(index, &trigram)| place[trigram as usize] = index as u32);
        let mut first_entries = vec![0u32; trigrams.len() + 1];
        let mut lines = vec![0u32; trigrams.len()];
        let mut bytes = vec![0u32; trigrams.len() + 1];
        for lists in made {
            let mut start = 0;
            for entry in &lists.entries {
                let at = place[entry.trigram as usize] as usize;
                first_entries[at + 1] += 1;
                lines[at] += entry.lines;
                bytes[at + 1] += entry.end - start;
                start = entry.end;
            }
        }
        for at in 0..trigrams.len() {
            first_entries[at + 1] += first_entries[at];
            bytes[at + 1] += bytes[at];
        }
        let count = entries().count();
        let (mut segments, mut ends) = (vec![0; count], vec![0; count]);
        let mut data = vec![0; bytes[trigrams.len()] as usize];
        let (mut next_entry, mut next_byte) = (first_entries.clone(), bytes);
        for (segment, lists) in made.iter().enumerate() {
            let mut start = 0;
            for entry in &lists.entries {
                let at = place[entry.trigram as usize] as usize;
                let list = &lists.data[start as usize..entry.end as usize];
                let byte = next_byte[at] as usize;
                data[byte..byte + list.len()].copy_from_slice(list);
                next_byte[at] += list.len() as u32;
                segments[next_entry[at] as usize] = segment as u16;
                ends[next_entry[at] as usize] = next_byte[at];
                next_entry[at] += 1;
                start = entry.end;
            }
        }
        Self { trigrams, first_entries, lines, segments, ends, data }
    }

    /// Whether the shard's tables are consistent, so that no list lies beyond an end.
    pub(crate) fn is_sound(&self) -> bool {
        self.first_entries.len() == self.trigrams.len() + 1
            && self.lines.len() == self.trigrams.len()
            && self.first_entries.is_sorted()
            && self.first_entries.last() == Some(&(self.segments.len() as u32))
            && self.ends.len() == self.segments.len()
            && self.ends.is_sorted()
            && self.ends.last().is_none_or(|&end| end as usize == self.data.len())
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        let tables = [&self.trigrams, &self.first_entries, &self.lines, &self.ends];
        let tables = tables.map(|table| size_of_val(&table[..])).iter().sum::<usize>();
        (tables + size_of_val(&self.segments[..]) + self.data.len()) as u64
    }

    /// The most trigrams that [`fitting`](Self::fitting) tests for a window.
    pub(crate) fn tests(&self, window: &Window) -> usize {
        let [first, second, _] = window;
        let of_all = self.trigrams.len();
        if second.len() == 1 && first.len() <= FEW_FIRSTS { of_all.min(first.len() << 8) } else { of_all }
    }

    /// The trigrams that fit a window, as indices of `trigrams`.
    pub(crate) fn fitting(&self, window: &Window) -> Vec<u32> {
        let [first, second, third] = window;
        let firsts: Vec<u8> = if first.len() == 256 { Vec::new() } else { first.iter().collect() };
        let all = 0..self.trigrams.len();
        let stretches: Vec<Range<usize>> = match (&firsts[..], second.len(), third.len()) {
            ([], ..) => vec![all],
            (_, 1, 1) if firsts.len() <= FEW_FIRSTS => {
                let rest = |set: &ByteSet| u32::from(set.iter().next().expect("it has one"));
                let low = rest(second) << 8 | rest(third);
                firsts.iter().map(|&byte| self.between(u32::from(byte) << 16 | low, 1)).collect()
            }
            (_, 1, _) if firsts.len() <= FEW_FIRSTS => {
                let middle = u32::from(second.iter().next().expect("it has one")) << 8;
                firsts.iter().map(|&byte| self.between(u32::from(byte) << 16 | middle, 1 << 8)).collect()
            }
            _ => firsts.iter().map(|&byte| self.between(u32::from(byte) << 16, 1 << 16)).collect(),
        };
        let fits = |&place: &usize| {
            let [_, a, b, c] = self.trigrams[place].to_be_bytes();
            first.contains(a) && second.contains(b) && third.contains(c)
        };
        stretches.into_iter().flatten().filter(fits).map(|place| place as u32).collect()
    }

    /// The indices of this many trigrams from one on.
    fn between(&self, from: u32, count: u32) -> Range<usize> {
        let start = self.trigrams.partition_point(|&trigram| trigram < from);
        let length = if count == 1 {
            usize::from(self.trigrams.get(start) == Some(&from))
        } else {
            self.trigrams[start..].partition_point(|&trigram| trigram < from + count)
        };
        start..start + length
    }

    /// The list of a trigram in a segment: gaps, or a bit map of the segment's lines.
    pub(crate) fn list(&self, place: u32, segment: u16) -> Option<&[u8]> {
        let place = place as usize;
        let (first, last) = (self.first_entries[place] as usize, self.first_entries[place + 1] as usize);
        let own = &self.segments[first..last];
        // Where a list is in nearly all segments, it is near its number.
        let entry = first + own.binary_search(&segment).ok()?;
        let start = if entry == 0 { 0 } else { self.ends[entry - 1] as usize };
        Some(&self.data[start..self.ends[entry] as usize])
    }
}
