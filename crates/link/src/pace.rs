//! Punctual threads and sleeps.

use std::num::NonZeroU64;

use kendall_record::clock::now_ns;
use rustix::process::setpriority_process;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

/// Gives the calling thread the highest priority that is permitted. Without the permission it wakes later, and that is measured.
pub(crate) fn hurry() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setpriority_process(None, -20);
}

/// Sleeps until an instant of [`now_ns`]; returns at once where that has passed.
pub(crate) fn sleep_until(instant_ns: i64) {
    let instant = Timespec { tv_sec: instant_ns / 1_000_000_000, tv_nsec: instant_ns % 1_000_000_000 };
    while now_ns() < instant_ns {
        // After an interruption, the loop sleeps again.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &instant);
    }
}
