//! Waiting for an instant.

use kendall_record::clock::now_ns;
use rustix::thread::{ClockId, clock_nanosleep_absolute};
use rustix::time::Timespec;

/// Sleeps until an instant of [`now_ns`]; returns at once where that is past.
pub(crate) fn sleep_until(instant_ns: i64) {
    let instant = Timespec { tv_sec: instant_ns / 1_000_000_000, tv_nsec: instant_ns % 1_000_000_000 };
    while now_ns() < instant_ns {
        // Whoever is interrupted sleeps on.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &instant);
    }
}
