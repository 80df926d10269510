//! A database: the sentences of a file, and what helps to search them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::data::block::{Block, Lay};
use crate::data::load::{self, Oddities};
use crate::error::SearchError;
use crate::index::whole::Index;
use crate::opening::{IndexSource, Layout, OpenOptions};

/// What a database holds.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub file_bytes: u64,
    /// How many rows there are of each type.
    pub rows_by_type: BTreeMap<i32, u64>,
    /// The memory that sentences take, with what finds and orders them.
    pub text_bytes: u64,
    /// The sentences alone, each with its line feed.
    pub sentence_bytes: u64,
    /// What was not plain rows.
    pub oddities: Oddities,
    /// How long reading took.
    pub read_in: Duration,
    /// The memory that the index takes.
    pub index_bytes: u64,
    /// How many rows it covers; the rest is scanned.
    pub indexed_rows: u64,
    /// How long it took to make it, or to read it.
    pub index_in: Duration,
    /// Where it came from.
    pub index_source: IndexSource,
}

impl Contents {
    /// How many rows there are.
    pub fn rows(&self) -> u64 {
        self.rows_by_type.values().sum()
    }
}

/// Sentences in memory, ready to be searched. Nothing in it changes, so any number of threads may search it.
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
    /// The file is read into memory rather than mapped, since whoever writes to a mapped file changes what is being searched. It
    /// takes its own size, six bytes a row, and what the index takes, which is about as much as the text.
    ///
    /// # Errors
    /// Where the file cannot be read or is not such a file, or memory is wanting. An index that cannot be read or saved is no error.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, SearchError> {
        let begun = Instant::now();
        let failed = |reason| SearchError::Read { path: path.to_owned(), reason };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(SearchError::NotAFile(path.to_owned()));
        }
        let lay = if options.layout == Layout::Flat { Lay::File } else { Lay::ByKind };
        let (pieces, oddities) = load::read(&file, path, metadata.len(), lay, options.threads)?;
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
            Layout::Indexed => Index::open(&blocks, path, options),
            Layout::Flat | Layout::ByType => Default::default(),
        };
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

    /// What it holds.
    pub fn contents(&self) -> &Contents {
        &self.contents
    }

    /// How it is searched.
    pub fn layout(&self) -> Layout {
        self.layout
    }
}
