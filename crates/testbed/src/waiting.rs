//! Waiting for what another thread or process does.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Longer than anything takes that a test waits for, so that a test that hangs fails instead.
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
