//! Reports the tests that a run leaves out, on standard error and, where `KENDALL_LEFT_OUT` names a file, as a line of that file,
//! which `make test` prints at its end.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::{env, thread};

/// Reports that a test is left out for a reason that installing programs does not change: the kernel, the user's rights, the
/// hardware.
///
/// # Panics
/// Where the file for such lines cannot be written.
pub fn left_out(why: &str) {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let test = thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("{package} {test}: {}\n", why.trim().replace('\n', " "));
    eprint!("left out: {line}");
    let Some(path) = env::var_os("KENDALL_LEFT_OUT") else { return };
    // One write, so that lines of concurrent tests stay whole.
    let file = OpenOptions::new().create(true).append(true).open(&path);
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .unwrap_or_else(|error| panic!("{} cannot be written: {error}", path.display()));
}

/// Reports that a test is left out because a program is missing.
///
/// # Panics
/// With `CI` set: there, a test without its peer is a failure.
pub fn missing(what: &str) {
    let why = format!("{what} is missing; run tools/install test");
    assert!(env::var_os("CI").is_none(), "{why}");
    left_out(&why);
}

/// Whether a program is installed that is a test's peer. `with` is an argument that makes it end at once, for example
/// `--version`.
///
/// # Panics
/// Where it is missing while `CI` is set.
pub fn has_peer(program: &str, with: &str) -> bool {
    let ran = Command::new(program).arg(with).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if ran.is_err() {
        missing(program);
    }
    ran.is_ok()
}
