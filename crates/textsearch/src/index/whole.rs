//! The index of a data file: its shards, built now or read from the file next to it.

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use super::build::segments;
use super::saved::{self, Fault, Of};
use super::shard::{Shard, shards};
use crate::data::block::Block;
use crate::opening::{IndexSource, OpenOptions, Saving};

/// The lists of all indexed text: shards from the first block on, as far as they fit the memory.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pub(crate) shards: Vec<Indexed>,
}

/// A shard and the blocks it covers.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) blocks: Range<usize>,
    /// The segments of each block, and the number of the first of them.
    pub(crate) segments: Vec<(u16, Vec<Range<usize>>)>,
    pub(crate) shard: Shard,
}

impl Indexed {
    pub(crate) fn new(all: &[Block], blocks: Range<usize>, shard: Shard) -> Self {
        let mut next = 0;
        let numbered = all[blocks.clone()].iter().map(|block| {
            let own = segments(block);
            let first = next;
            next += own.len() as u16;
            (first, own)
        });
        let segments = numbered.collect();
        Self { blocks, segments, shard }
    }
}

impl Of {
    fn new(all: &[Block], blocks: Range<usize>) -> Self {
        let mut checksum = crc32fast::Hasher::new();
        for block in &all[blocks.clone()] {
            checksum.update(&block.checksum.to_le_bytes());
            checksum.update(&(block.lines() as u64).to_le_bytes());
        }
        Self { blocks, checksum: checksum.finalize() }
    }
}

impl Index {
    /// Builds the index of the blocks of a data file, or reads the saved one. If it is stopped, the index is incomplete and not saved.
    pub(crate) fn open(
        blocks: &[Block],
        path: &Path,
        options: &OpenOptions,
        stop: &AtomicBool,
    ) -> (Self, IndexSource) {
        let is_stopped = || stop.load(Ordering::Relaxed);
        let of: Vec<Of> = shards(blocks).into_iter().map(|covered| Of::new(blocks, covered)).collect();
        let path = saved::path_of(path);
        let read =
            if options.saving == Saving::Off { Err(Fault::Absent) } else { saved::read(&path, &of, stop) };
        let may_save =
            options.saving == Saving::Beside && !matches!(read, Err(Fault::Foreign | Fault::Unreadable(_)));
        let mut fault = match &read {
            Err(Fault::Foreign) => Some(format!("{} is not an index and was left unchanged", path.display())),
            Err(Fault::Unreadable(reason)) => Some(format!("cannot read {}: {reason}", path.display())),
            _ => None,
        };
        let mut kept = read.unwrap_or_default().into_iter();
        let mut index = Self::default();
        let mut built = 0;
        for of in &of {
            if index.bytes() >= options.index_memory_bytes || is_stopped() {
                break;
            }
            let shard = match kept.next() {
                Some(shard) => shard,
                None if options.saving == Saving::Existing => break,
                None => {
                    built += 1;
                    Shard::build(&blocks[of.blocks.clone()], options.threads)
                }
            };
            if index.bytes() + shard.bytes() > options.index_memory_bytes {
                break;
            }
            index.shards.push(Indexed::new(blocks, of.blocks.clone(), shard));
        }
        if may_save && built > 0 && !index.shards.is_empty() && !is_stopped() {
            let shards = of.into_iter().zip(index.shards.iter().map(|indexed| &indexed.shard));
            if let Err(reason) = saved::write(&path, shards, stop) {
                fault = Some(format!("cannot write {}: {reason}", path.display()));
            }
        }
        let reused = index.shards.len().saturating_sub(built);
        (index, IndexSource { shards_built: built, shards_read: reused, fault })
    }

    /// The number of rows it covers.
    pub(crate) fn rows(&self, blocks: &[Block]) -> u64 {
        self.shards
            .iter()
            .flat_map(|shard| &blocks[shard.blocks.clone()])
            .map(|block| block.lines() as u64)
            .sum()
    }
    /// The shard of a block.
    pub(crate) fn shard_of(&self, block: usize) -> Option<usize> {
        let at = self.shards.partition_point(|shard| shard.blocks.end <= block);
        (at < self.shards.len()).then_some(at)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.shards.iter().map(|shard| shard.shard.bytes()).sum()
    }
}
