//! The index: for each three bytes that follow each other in a sentence, the lines that have them.
//!
//! After Cox's codesearch (2012), but with lists of lines instead of files: a language has but some twenty thousand such trigrams, so
//! nearly each is in any file, but not in any sentence. A line counts with the line feeds before and behind it, so that where a
//! sentence begins and ends is in the index, too. [`need`] says which trigrams a pattern asks for, [`build`] makes the lists of a
//! block, [`shard`] puts those of many blocks together, [`evaluate`] finds the
//! lines that have what is asked for, [`saved`] keeps lists from one time to the next, and [`whole`] is all of it for a file.

pub(crate) mod build;
pub(crate) mod evaluate;
pub(crate) mod need;
pub(crate) mod saved;
pub(crate) mod shard;
pub(crate) mod whole;
