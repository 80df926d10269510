//! A worker's hold: a sleep that ends on time, or at once when it is told to.
//!
//! The kernel wakes a sleeper some tens of microseconds late. So it is asked to do so a little early, and the rest is spun
//! away; what is late still counts as service in the stamps, for it kept the worker busy.

use std::hint::spin_loop;
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use kendall_record::clock::now_ns;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// How long before the end the kernel is asked to wake the sleeper.
const SPUN_NS: i64 = 30_000;
/// How often who computes looks whether it is told to stop.
const COMPUTE_NS: i64 = 10_000;

/// The bell by which a worker is told to stop holding.
#[derive(Debug)]
pub(crate) struct Bell(OwnedFd);

impl Bell {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    /// Tells the worker to stop holding. One that does not hold stops the next time at once.
    pub(crate) fn ring(&self) {
        // Fails only where the bell has been rung 2⁶⁴ − 2 times and not been heard.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Sleeps for so long, or until the bell rings; says for how long, in nanoseconds.
    pub(crate) fn sleep(&self, time_ns: i64) -> i64 {
        let begun_ns = now_ns();
        let slept_ns = || now_ns() - begun_ns;
        if time_ns > SPUN_NS && self.rings_within(time_ns - SPUN_NS) {
            return slept_ns();
        }
        while slept_ns() < time_ns {
            spin_loop();
        }
        slept_ns()
    }

    /// Computes until this thread has used so much of a processor, or the bell rings; says how much, in nanoseconds.
    pub(crate) fn compute(&self, time_ns: i64) -> i64 {
        let begun_ns = thread_ns();
        let used_ns = || thread_ns() - begun_ns;
        while used_ns() < time_ns && !self.rings_within(0) {
            let look_ns = (used_ns() + COMPUTE_NS).min(time_ns);
            while used_ns() < look_ns {
                spin_loop();
            }
        }
        used_ns()
    }

    /// Whether the bell rings within a time, and hears it.
    fn rings_within(&self, time_ns: i64) -> bool {
        let timeout = Timespec { tv_sec: time_ns / 1_000_000_000, tv_nsec: time_ns % 1_000_000_000 };
        let mut bell = [PollFd::from_borrowed_fd(self.0.as_fd(), PollFlags::IN)];
        // Interrupted by a signal it returns early, as if it had rung; the worker then asks what to do, and goes on.
        if let Ok(0) = poll(&mut bell, Some(&timeout)) {
            return false;
        }
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
        true
    }
}

/// Lets this thread's sleeps end when they should, and not up to 50 µs later, as is usual.
pub(crate) fn sleep_precisely() {
    // Where it fails, sleeps are longer, which the stamps tell.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
}

/// The processor time of this thread, in nanoseconds.
fn thread_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    const LONG_NS: i64 = 60_000_000_000;

    #[test]
    fn nobody_is_held_shorter_than_asked_unless_the_bell_rings() {
        let bell = Bell::new().unwrap();
        for time_ns in [0, 1_000, 50_000, 3_000_000] {
            assert!(bell.sleep(time_ns) >= time_ns);
            assert!(bell.compute(time_ns) >= time_ns);
        }
        bell.ring();
        bell.ring();
        assert!(bell.sleep(LONG_NS) < LONG_NS);
        bell.ring();
        assert!(bell.compute(LONG_NS) < LONG_NS);
    }

    #[test]
    fn a_bell_is_heard_in_the_middle_of_a_hold() {
        let bell = Arc::new(Bell::new().unwrap());
        let sleeper = {
            let bell = Arc::clone(&bell);
            thread::spawn(move || bell.sleep(LONG_NS))
        };
        thread::sleep(std::time::Duration::from_millis(20));
        bell.ring();
        assert!(sleeper.join().unwrap() < LONG_NS);
    }
}
