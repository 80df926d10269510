//! The index: for each three consecutive bytes of a sentence, the lines that contain them.
//!
//! After Cox's codesearch (2012), but with lists of lines instead of files: a language has only some twenty thousand such trigrams,
//! so nearly every one occurs in any file, but not in any sentence. A line counts with the line feeds before and behind it, so that
//! the beginning and end of a sentence are in the index, too. [`need`] derives the trigrams that a pattern needs, [`build`] makes
//! the lists of a block, [`shard`] combines those of many blocks, [`evaluate`] finds the lines that have the trigrams, [`saved`]
//! keeps lists in a file, and [`whole`] combines all of it for a data file.

pub(crate) mod build;
pub(crate) mod evaluate;
pub(crate) mod need;
pub(crate) mod saved;
pub(crate) mod shard;
pub(crate) mod whole;
