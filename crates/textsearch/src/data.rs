//! The sentences in memory: [`read`](load::read) loads a file as blocks of some megabytes, [`block`] is the layout of a block,
//! [`bytes`] its memory.

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod load;
