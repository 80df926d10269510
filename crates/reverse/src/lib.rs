//! Hash reversal: given a SHA-256 digest and a range, find the 64-bit integer in the range behind the digest.
//!
//! The system of a course in operating systems, compatible with its protocol to the byte: one connection is
//! one request of 49 bytes and one answer of 8. A request carries a priority, and its work is uniform up to
//! the size of its range, so the order of service matters and can be computed.
//!
//! [`serve`] runs the server, [`ReverseWorkload`] generates load for any server of this protocol. The
//! workload draws its requests from kendall's own streams; it does not reproduce the numbers of the course's
//! client.

mod board;
mod client;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod gang;
mod memory;
mod options;
mod process;
pub mod protocol;
mod row;
mod search;
mod server;
mod workload;

pub use client::Client;
pub use kendall_service::{Config, ServiceError};
pub use memory::{Answers, Memory};
pub use options::{Execution, ReverseOptions, Sharing, UnknownName};
pub use process::{SEARCH_ONE, search_one};
pub use row::ROW;
pub use search::Key;
pub use server::{Reverse, bind, serve};
pub use workload::{ParameterError, Parameters, ReverseWorkload};
