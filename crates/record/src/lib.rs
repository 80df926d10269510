//! One request of a trial as a row, its outcome, the server's stamps, and the clock of both.
//!
//! Client, server, generator and readers of a run share these types for requests. `kendall-archive` reads and writes the
//! files of rows; only the server's own files of stamps and counts are here, because servers write them.

pub mod clock;
pub mod counts;
mod error;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod row;
pub mod stamps;

pub use error::RecordError;
pub use row::{Outcome, RequestRow};
