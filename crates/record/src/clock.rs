//! The clock of all stamps: CLOCK_MONOTONIC, which client and server processes of one machine share.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since an arbitrary instant that is the same for every process of this machine until it reboots.
pub fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
