//! Runs tests in their own network namespaces, which vanish with them.

use std::env;
use std::process::Command;

use crate::left_out::missing;

/// Set in the process that runs in its own namespaces.
const INSIDE: &str = "KENDALL_TEST_INSIDE";

/// The time limit of a test in its namespaces, in seconds.
const LIMIT: &str = "200";

/// Runs a test of this test program again, in a process with its own network, mount and user namespaces, in which it has the
/// rights of root. There this function is called with `INSIDE` set and runs `test`. `probe` is a command that succeeds where such
/// namespaces are possible and useful. `/run` is empty there, so that `ip netns` has separate names.
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
