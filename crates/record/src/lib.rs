//! One request of a trial as a row, how it ended, the server's stamps, and the clock of both.
//!
//! Client, server, generator and readers of a run all speak of requests in these types. Files of rows are
//! `kendall-archive`'s business; only the server's own files of stamps and counts are read and written here, because servers
//! write them.

pub mod clock;
pub mod counts;
mod error;
mod row;
pub mod stamps;

pub use error::RecordError;
pub use row::{Outcome, RequestRow};
