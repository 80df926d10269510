//! The clock of connections, and a timer on it that is exact to microseconds: pacing needs finer steps than the
//! millisecond of tokio's timers.

use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// The present instant of the monotonic clock.
pub(crate) fn now() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    let whole = u64::try_from(now.tv_sec).expect("the monotonic clock is not negative");
    Duration::new(whole, u32::try_from(now.tv_nsec).expect("a second has 10^9 nanoseconds"))
}

/// A timer that one task waits for.
#[derive(Debug)]
pub(crate) struct Timer {
    file: AsyncFd<OwnedFd>,
    /// The instant at which the timer expires.
    armed: Option<Duration>,
}

impl Timer {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: an `OwnedFd` names one open file from here until it is dropped, which `AsyncFd` does after it has taken
        // the file out of the reactor.
        #[expect(unsafe_code)]
        let file = unsafe { AsyncFd::register(timer) }?;
        Ok(Self { file, armed: None })
    }

    /// Waits until the given instant, or forever without one. Can be cancelled and called with another instant.
    pub(crate) async fn wait(&mut self, until: Option<Duration>) {
        let Some(until) = until else { return pending().await };
        if self.armed != Some(until) {
            // An instant of zero would disarm the timer.
            let instant = until.max(Duration::from_nanos(1));
            let it_value = Timespec {
                tv_sec: i64::try_from(instant.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: instant.subsec_nanos().into(),
            };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
            timerfd_settime(&self.file, TimerfdTimerFlags::ABSTIME, &once).expect("the instant is valid");
            self.armed = Some(until);
        }
        loop {
            let mut ready = self.file.readable().await.expect("the runtime runs while its tasks do");
            ready.clear_ready();
            // It may have become ready by an earlier setting.
            if now() >= until {
                self.armed = None;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timer_expires_not_before_its_instant_and_can_be_set_again() {
        let mut timer = Timer::new().unwrap();
        for wait in [Duration::ZERO, Duration::from_micros(300), Duration::from_millis(3)] {
            let until = now() + wait;
            timer.wait(Some(until)).await;
            assert!(now() >= until);
        }
        let late = now() + Duration::from_secs(1000);
        let soon = now() + Duration::from_millis(2);
        tokio::select! {
            () = timer.wait(Some(late)) => panic!("the timer expires early"),
            () = tokio::time::sleep(Duration::from_millis(1)) => {}
        }
        timer.wait(Some(soon)).await;
        assert!(now() >= soon && now() < late);
    }
}
