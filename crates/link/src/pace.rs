//! Being on time.

use std::num::NonZeroU64;

use kendall_record::clock::now_ns;
use rustix::process::setpriority_process;
use rustix::thread::{ClockId, clock_nanosleep_absolute, set_current_timer_slack};
use rustix::time::Timespec;

/// Makes the calling thread as punctual as it may be. Where that is refused it is later, and that is measured.
pub(crate) fn hurry() {
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let _ = setpriority_process(None, -20);
}

/// Sleeps until an instant of [`now_ns`]; returns at once where that is past.
pub(crate) fn sleep_until(instant_ns: i64) {
    let instant = Timespec { tv_sec: instant_ns / 1_000_000_000, tv_nsec: instant_ns % 1_000_000_000 };
    while now_ns() < instant_ns {
        // Whoever is interrupted sleeps on.
        let _ = clock_nanosleep_absolute(ClockId::Monotonic, &instant);
    }
}
