//! Shared parts of integration tests: servers that run during a test, programs on free ports, databases, a browser, hostile
//! input, and the rule for peers that are not installed.
//!
//! For tests only: it panics where a test has to fail. It uses no other crate of the workspace, so the tests of every crate may
//! use it.

#[cfg(feature = "again")]
pub mod again;
mod alone;
#[cfg(feature = "browser")]
pub mod browser;
mod database;
#[cfg(feature = "fuzz")]
pub mod fuzz;
#[cfg(feature = "hostile")]
pub mod hostile;
mod left_out;
mod namespaces;
mod nats;
mod program;
mod running;
mod undisturbed;
mod waiting;

use std::net::TcpStream;
use std::time::Duration;

#[cfg(feature = "again")]
pub use again::Again;
pub use alone::alone;
pub use database::{Database, DatabaseKind, SPACES};
pub use left_out::{has_peer, left_out, missing};
pub use namespaces::inside;
pub use nats::{JETSTREAM, Nats};
pub use program::{Program, free_port};
pub use running::Running;
use rustix::net::sockopt::set_socket_linger;
pub use tempfile::{TempDir, tempdir};
pub use undisturbed::unless_disturbed;
pub use waiting::{LIMIT, wait_until, written_line};

/// Ends a connection with a reset, as the kernel does for a process that is killed.
///
/// # Panics
/// Where the socket has failed before.
pub fn reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).expect("the socket is open");
}
