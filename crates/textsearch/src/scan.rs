//! Ways over text that look at every byte: [`dfa`] steps a table, several streams at a time; [`literals`] looks for words.

pub(crate) mod dfa;
pub(crate) mod literals;
