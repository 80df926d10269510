//! Sets of lines of a block: while they are found, and in the form in which answers keep them.

use std::ops::Range;

use crate::data::block::{Block, Line};

/// Lines that were found, a bit for each line.
#[derive(Debug, Default)]
pub(crate) struct LineSet {
    words: Vec<u64>,
}

impl LineSet {
    /// Clears this many lines.
    pub(crate) fn clear(&mut self, lines: usize) {
        self.words.clear();
        self.words.resize(lines.div_ceil(64), 0);
    }

    pub(crate) fn insert(&mut self, line: usize) {
        self.words[line / 64] |= 1 << (line % 64);
    }

    pub(crate) fn insert_all(&mut self, lines: Range<usize>) {
        for line in lines {
            self.insert(line);
        }
    }

    /// Adds the lines of these bits, the first of which is for line `from`, as far as they are in `wanted`.
    pub(crate) fn insert_bits(&mut self, bits: &[u64], from: usize, wanted: &Range<usize>) {
        for line in ones(bits).map(|line| from + line).filter(|line| wanted.contains(line)) {
            self.insert(line);
        }
    }

    /// Stretches of consecutive lines.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = Range<usize>> {
        let mut lines = self.iter().peekable();
        std::iter::from_fn(move || {
            let start = lines.next()?;
            let mut end = start + 1;
            while lines.next_if_eq(&end).is_some() {
                end += 1;
            }
            Some(start..end)
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> {
        ones(&self.words)
    }
}

fn ones(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(index, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(64 * index + bit)
        })
    })
}

/// The answer of a block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BlockAnswer {
    Nothing,
    /// The lines, in the order of the file.
    Few(Box<[Line]>),
    /// The lines, as a bit for each line.
    Many(Box<[u64]>),
    /// All lines of the requested types.
    All,
}

/// Up to one line in this many is kept as a number.
const FEW: usize = 16;

impl BlockAnswer {
    pub(crate) fn new(lines: &LineSet, block: &Block) -> Self {
        match lines.len() {
            0 => Self::Nothing,
            count if count * FEW <= block.lines() => {
                let mut few: Box<[Line]> = lines.iter().map(|line| line as Line).collect();
                block.sort_as_in_file(&mut few);
                Self::Few(few)
            }
            _ => Self::Many(lines.words.clone().into()),
        }
    }

    /// In the order of the file.
    pub(crate) fn lines(&self, block: &Block, kinds: &[i32]) -> Vec<Line> {
        let wanted =
            |line: &Line| kinds.is_empty() || kinds.binary_search(&block.kind((*line).into())).is_ok();
        match self {
            Self::Nothing => Vec::new(),
            Self::Few(few) => few.to_vec(),
            Self::Many(words) => {
                let is_in = |line: &Line| words[usize::from(*line) / 64] >> (line % 64) & 1 == 1;
                block.all_as_in_file().into_iter().filter(is_in).collect()
            }
            Self::All if kinds.is_empty() => block.all_as_in_file(),
            Self::All => block.all_as_in_file().into_iter().filter(wanted).collect(),
        }
    }

    /// The number of rows.
    pub(crate) fn rows(&self, block: &Block, kinds: &[i32]) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Few(few) => few.len() as u64,
            Self::Many(words) => words.iter().map(|word| u64::from(word.count_ones())).sum(),
            Self::All => block.rows_of(kinds) as u64,
        }
    }

    /// The memory that it takes beyond itself.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Nothing | Self::All => 0,
            Self::Few(few) => size_of_val(&few[..]),
            Self::Many(words) => size_of_val(&words[..]),
        }
    }
}
