//! A worker's hold: a sleep or a computation that ends on time, or at once when it is interrupted.
//!
//! The kernel wakes a sleeper some tens of microseconds late. So the worker asks to be woken a little early, and spins for
//! the rest; lateness still counts as service in the stamps, because it kept the worker busy.

use std::hint::spin_loop;
use std::num::NonZeroU64;
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_service::Interrupt;
use rustix::thread::set_current_timer_slack;
use rustix::time::{ClockId, clock_gettime};

/// The time before the end at which the kernel should wake the sleeper.
const SPUN_NS: i64 = 30_000;
/// The interval at which a computing worker reads its interrupt.
const COMPUTE_NS: i64 = 10_000;

/// Sleeps for a time, or until the worker is interrupted; returns the time slept, in nanoseconds.
pub(crate) fn sleep(time_ns: i64, interrupt: &Interrupt) -> i64 {
    let begun_ns = now_ns();
    let slept_ns = || now_ns() - begun_ns;
    if time_ns > SPUN_NS {
        interrupt.sleep(Duration::from_nanos((time_ns - SPUN_NS).cast_unsigned()));
        if interrupt.is_raised() {
            return slept_ns();
        }
    }
    while slept_ns() < time_ns {
        spin_loop();
    }
    slept_ns()
}

/// Computes until this thread has used that much processor time, or is interrupted; returns the time used, in nanoseconds.
pub(crate) fn compute(time_ns: i64, interrupt: &Interrupt) -> i64 {
    let begun_ns = thread_ns();
    let used_ns = || thread_ns() - begun_ns;
    while used_ns() < time_ns && !interrupt.is_raised() {
        let look_ns = (used_ns() + COMPUTE_NS).min(time_ns);
        while used_ns() < look_ns {
            spin_loop();
        }
    }
    used_ns()
}

/// Makes this thread's sleeps end on time, and not up to 50 µs later, as is the default.
pub(crate) fn sleep_precisely() {
    // If it fails, sleeps are longer, which the stamps report.
    let _ = set_current_timer_slack(Some(NonZeroU64::MIN));
}

/// The processor time of this thread, in nanoseconds.
fn thread_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use super::*;

    const LONG_NS: i64 = 60_000_000_000;

    #[test]
    fn no_hold_is_shorter_than_specified_unless_it_is_interrupted() {
        let interrupt = Interrupt::new();
        for time_ns in [0, 1_000, 50_000, 3_000_000] {
            assert!(sleep(time_ns, &interrupt) >= time_ns);
            assert!(compute(time_ns, &interrupt) >= time_ns);
        }
        interrupt.raise();
        assert!(sleep(LONG_NS, &interrupt) < LONG_NS);
        assert!(compute(LONG_NS, &interrupt) < LONG_NS);
    }

    #[test]
    fn an_interrupt_ends_a_hold_in_its_middle() {
        let (sender, interrupts) = channel();
        let sleeper = thread::spawn(move || {
            let interrupt = Interrupt::new();
            sender.send(interrupt.clone()).unwrap();
            sleep(LONG_NS, &interrupt)
        });
        interrupts.recv().unwrap().raise();
        assert!(sleeper.join().unwrap() < LONG_NS);
    }
}
