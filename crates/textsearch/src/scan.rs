//! Scans of text that read every byte: [`dfa`] steps a table, several streams at a time; [`literals`] searches for words; [`lazy`]
//! scans one line, and can be stopped in the middle of it.

pub(crate) mod dfa;
pub(crate) mod lazy;
pub(crate) mod literals;
