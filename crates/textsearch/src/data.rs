//! The sentences in memory: [`read`](load::read) brings a file in as blocks of some megabytes, [`block`] says how a block lies,
//! [`bytes`] where.

pub(crate) mod block;
pub(crate) mod bytes;
pub(crate) mod load;
