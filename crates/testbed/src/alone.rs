//! Tests of properties of a whole process: signals, limits.

use std::env;
use std::process::Command;

const ALONE: &str = "KENDALL_TESTBED_ALONE";

/// Runs a test in a separate process, and returns `true` in that process. Call it first in the test, with the test's full name
/// (`module::function`), and return where it returns `false`: the test has then passed in the separate process.
///
/// # Panics
/// Where the test fails in the separate process.
pub fn alone(test: &str) -> bool {
    if env::var_os(ALONE).is_some_and(|alone| alone == test) {
        return true;
    }
    let program = env::current_exe().expect("the path of this test program");
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .env(ALONE, test)
        .output()
        .expect("this test program can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("1 passed"),
        "{test} in a separate process:\n{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    false
}
