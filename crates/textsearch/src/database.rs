//! A database: the sentences of a file, and the index to search them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::data::block::{Block, Lay};
use crate::data::load::{self, Oddities};
use crate::error::SearchError;
use crate::index::whole::Index;
use crate::opening::{IndexSource, Layout, OpenOptions};

/// The contents of a database.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The file.
    pub path: PathBuf,
    /// The file's size.
    pub file_bytes: u64,
    /// The number of rows of each type.
    pub rows_by_type: BTreeMap<i32, u64>,
    /// The memory of the sentences, with the tables that locate and order them.
    pub text_bytes: u64,
    /// The sentences alone, each with its line feed.
    pub sentence_bytes: u64,
    /// The lines that were not plain rows.
    pub oddities: Oddities,
    /// The time to read the file.
    pub read_in: Duration,
    /// The memory that the index takes.
    pub index_bytes: u64,
    /// The number of rows it covers; the rest is scanned.
    pub indexed_rows: u64,
    /// The time to build the index, or to read it.
    pub index_in: Duration,
    /// The origin of the index.
    pub index_source: IndexSource,
}

impl Contents {
    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows_by_type.values().sum()
    }
}

/// Sentences in memory, ready for searches. Nothing in it changes, so any number of threads may search it.
#[derive(Debug)]
pub struct Database {
    pub(crate) blocks: Vec<Block>,
    pub(crate) layout: Layout,
    pub(crate) index: Index,
    contents: Contents,
}

impl Database {
    /// Reads a file of lines `type@@@sentence`.
    ///
    /// The file is read into memory rather than mapped, because a process that writes to a mapped file would change the text during
    /// a search. It takes its own size, six bytes per row, and the size of the index, which is about as much as the text.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not such a file, or if there is not enough memory. A failure to read or save the
    /// index is not an error.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, SearchError> {
        Self::open_unless(path, options, &AtomicBool::new(false))
    }

    /// As [`open`](Self::open), unless `stop` is set: then it ends within a piece of the file or a shard of the index.
    pub(crate) fn open_unless(
        path: &Path,
        options: &OpenOptions,
        stop: &AtomicBool,
    ) -> Result<Self, SearchError> {
        let begun = Instant::now();
        let failed = |reason| SearchError::Read { path: path.to_owned(), reason };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(SearchError::NotAFile(path.to_owned()));
        }
        let lay = if options.layout == Layout::Flat { Lay::File } else { Lay::ByKind };
        let (pieces, oddities) = load::read(&file, path, metadata.len(), lay, options.threads, stop)?;
        let read_in = begun.elapsed();
        let blocks: Vec<Block> = pieces.into_iter().flat_map(|piece| piece.blocks).collect();
        let mut rows_by_type = BTreeMap::new();
        for (kind, lines) in blocks.iter().flat_map(Block::kinds) {
            *rows_by_type.entry(kind).or_default() += lines as u64;
        }
        let text_bytes = blocks.iter().map(|block| block.bytes() as u64).sum();
        let sentence_bytes = blocks.iter().map(|block| block.text().len() as u64).sum();
        let indexing = Instant::now();
        let (index, index_source) = match options.layout {
            Layout::Indexed => Index::open(&blocks, path, options, stop),
            Layout::Flat | Layout::ByType => Default::default(),
        };
        if stop.load(Ordering::Relaxed) {
            return Err(SearchError::Stopped);
        }
        let contents = Contents {
            path: path.to_owned(),
            file_bytes: metadata.len(),
            rows_by_type,
            text_bytes,
            sentence_bytes,
            oddities,
            read_in,
            index_bytes: index.bytes(),
            indexed_rows: index.rows(&blocks),
            index_in: indexing.elapsed(),
            index_source,
        };
        Ok(Self { blocks, layout: options.layout, index, contents })
    }

    /// The database's contents.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The layout of the database.
    pub fn layout(&self) -> Layout {
        self.layout
    }
}
