//! Ways over text that look at every byte: [`dfa`] steps a table, several streams at a time; [`literals`] looks for words; [`lazy`]
//! goes over one line, and can be stopped amidst it.

pub(crate) mod dfa;
pub(crate) mod lazy;
pub(crate) mod literals;
