//! A timer of nanoseconds within tokio, whose own timers tick in milliseconds.
//!
//! It is a timerfd on the same epoll instance as the generator's sockets: one thread waits for both, and the
//! kernel wakes it by a high-resolution timer that no slack delays.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Wakes at instants of [`kendall_record::clock::now_ns`].
#[derive(Debug)]
pub(crate) struct Timer {
    fd: AsyncFd<OwnedFd>,
    armed_for: Option<i64>,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let fd = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        #[expect(
            deprecated,
            reason = "its successor is unsafe for types that lie about their descriptor; OwnedFd cannot"
        )]
        let fd = AsyncFd::with_interest(fd, Interest::READABLE)?;
        Ok(Self { fd, armed_for: None })
    }

    /// Waits until an instant. Dropping the future leaves the timer armed, so that waiting again for the same
    /// instant costs no system call.
    pub(crate) async fn until(&mut self, instant_ns: i64) -> io::Result<()> {
        if self.armed_for != Some(instant_ns) {
            // Zero would disarm it; a past instant fires at once.
            let instant_ns = instant_ns.max(1);
            let value = Timespec { tv_sec: instant_ns / 1_000_000_000, tv_nsec: instant_ns % 1_000_000_000 };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
            self.armed_for = Some(instant_ns);
        }
        // Setting it anew clears its count and each expiry is a new edge, so it need not be read.
        self.fd.readable().await?.clear_ready();
        self.armed_for = None;
        Ok(())
    }
}
