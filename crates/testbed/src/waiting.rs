//! Waits for another thread or process.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than any wait of a test takes, so that a test that hangs fails instead.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
///
/// # Panics
/// Where it does not hold within [`LIMIT`].
pub fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let begun = Instant::now();
    while !condition() {
        assert!(begun.elapsed() < LIMIT, "waited in vain until {what}");
        sleep(Duration::from_millis(2));
    }
}

/// Waits until a program has written a line into a file, and returns that line without its end.
///
/// # Panics
/// Where the line is not there within [`LIMIT`].
pub fn written_line(path: &Path) -> String {
    let line = || fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'));
    wait_until(&format!("{} has a line", path.display()), || line().is_some());
    line().expect("it was there").trim_end().to_owned()
}
