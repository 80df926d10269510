//! Tests in their own network namespaces, which vanish with them.

use std::env;
use std::process::Command;

use crate::left_out::missing;

/// Set in the process that is within namespaces of its own.
const INSIDE: &str = "KENDALL_TEST_INSIDE";

/// Seconds that a test may take in its namespaces.
const LIMIT: &str = "200";

/// Runs a test of this test program again, in a process with network, mount and user namespaces of its own, in which it may do
/// what root does; there it is called with `INSIDE` set and runs `test`. `probe` is a command that succeeds where such
/// namespaces can be had and are of use. `/run` is empty there, so that `ip netns` has names of its own.
///
/// # Panics
/// Where the test fails, or, with `CI` set, where the probe does.
pub fn inside(name: &str, probe: &[&str], test: fn()) {
    if env::var_os(INSIDE).is_some() {
        return test();
    }
    let in_namespaces = || {
        let mut command = Command::new("timeout");
        command.args([LIMIT, "unshare", "--user", "--map-root-user", "--net", "--mount", "--"]);
        command
    };
    let tried = in_namespaces().args(probe).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        return missing(&format!("a network namespace for ordinary users, or {} in it,", probe[0]));
    }
    let script = r#"mount -t tmpfs none /run && exec "$0" --exact "$1" --nocapture"#;
    let status = in_namespaces()
        .args(["sh", "-c", script])
        .arg(env::current_exe().expect("this program has a path"))
        .arg(name)
        .env(INSIDE, "1")
        .status()
        .expect("the probe ran");
    assert!(status.success(), "{name} failed inside");
}
