//! What integration tests share: servers that run while a test does, programs on free ports, databases, a browser, and the rule for peers that are
//! not installed.
//!
//! For tests only: it panics where a test has to fail. It uses no other crate of the workspace, so every crate's tests may use
//! it.

mod again;
mod alone;
#[cfg(feature = "browser")]
pub mod browser;
mod database;
mod namespaces;
mod program;
mod running;
mod waiting;

use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

pub use again::Again;
pub use alone::alone;
pub use database::{Database, DatabaseKind, SPACES};
pub use namespaces::inside;
pub use program::{Program, free_port};
pub use running::Running;
use rustix::net::sockopt::set_socket_linger;
pub use tempfile::{TempDir, tempdir};
pub use waiting::{LIMIT, wait_until, written_line};

/// Ends a connection with a reset, as the kernel does for a process that is killed.
///
/// # Panics
/// Where the socket has failed before.
pub fn reset(stream: TcpStream) {
    set_socket_linger(&stream, Some(Duration::ZERO)).expect("the socket is open");
}

/// Whether a program is installed that a test has as its peer. `with` makes it end at once, for example `--version`.
///
/// # Panics
/// Where it is missing while `CI` is set: there, a test that runs against nothing is a failure.
pub fn has_peer(program: &str, with: &str) -> bool {
    let ran = Command::new(program).arg(with).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = ran.is_ok();
    assert!(
        is_there || std::env::var_os("CI").is_none(),
        "{program} is not installed; run tools/install test"
    );
    is_there
}
