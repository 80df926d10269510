//! The timers that wake the generator for its sends: always one more than the next is armed.
//!
//! Arming the timer that comes first makes the processor's own be set anew, which on a virtual machine costs several
//! microseconds, as much as sending the request. One that is armed while an earlier one is still to fire costs next
//! to nothing: the kernel sets the processor's to it when it handles the one that fires.

use std::io;
use std::os::fd::OwnedFd;

use kendall_station::{Arrivals, Instants};
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A request due so soon after another is mostly due before the generator can sleep again, and its timer would only
/// interrupt.
const WORTH_IT_NS: i64 = 30_000;

/// Wakes the generator a fixed time before each of the instants of an open stream.
pub(crate) struct Alarm<'a> {
    timers: [Timer; 2],
    /// The instants of the schedule once more, one ahead of it.
    instants: Instants<'a>,
    start_ns: i64,
    /// The instant that it has got to; `None` after the last.
    ahead_ns: Option<i64>,
    lead_ns: i64,
}

struct Timer {
    fd: OwnedFd,
    /// For which request's instant it is armed.
    due_ns: i64,
}

impl<'a> Alarm<'a> {
    /// `None` where the instants are not fixed in advance.
    pub(crate) fn new(arrivals: &'a Arrivals, seed: u64, lead_ns: i64) -> io::Result<Option<Self>> {
        let Some(instants) = arrivals.instants(seed) else { return Ok(None) };
        let timer = || {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok::<_, Errno>(Timer { fd, due_ns: i64::MIN })
        };
        let timers = [timer()?, timer()?];
        Ok(Some(Self { timers, instants, start_ns: 0, ahead_ns: Some(0), lead_ns }))
    }

    /// Lets the timers wake whoever waits for events.
    pub(crate) fn register(&self, epoll: &OwnedFd, data: epoll::EventData) -> io::Result<()> {
        for timer in &self.timers {
            epoll::add(epoll, &timer.fd, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        Ok(())
    }

    /// The run starts: every instant counts from here.
    pub(crate) fn start(&mut self, now_ns: i64) {
        (self.start_ns, self.ahead_ns) = (now_ns, Some(now_ns));
    }

    /// Arms a timer for the next request, unless one is, and the other for the request after it.
    pub(crate) fn set(&mut self, due_ns: i64) -> io::Result<()> {
        while self.ahead_ns.is_some_and(|ahead_ns| ahead_ns <= due_ns) {
            let next_s = self.instants.next();
            self.ahead_ns = next_s.map(|at_s| self.start_ns.saturating_add((at_s * 1e9).round() as i64));
        }
        let next = usize::from(self.timers[0].due_ns != due_ns);
        self.timers[next].arm(due_ns, self.lead_ns)?;
        match self.ahead_ns {
            Some(ahead_ns) if ahead_ns - due_ns > WORTH_IT_NS => {
                self.timers[1 - next].arm(ahead_ns, self.lead_ns)
            }
            _ => Ok(()),
        }
    }

    /// Sleeps until the instant for which [`set`](Self::set) was called the last time.
    pub(crate) fn sleep(&self, due_ns: i64) -> io::Result<()> {
        let Some(timer) = self.timers.iter().find(|timer| timer.due_ns == due_ns) else { return Ok(()) };
        match poll(&mut [PollFd::new(&timer.fd, PollFlags::IN)], None) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Timer {
    fn arm(&mut self, due_ns: i64, lead_ns: i64) -> io::Result<()> {
        if self.due_ns == due_ns {
            return Ok(());
        }
        // Zero would disarm it; an instant that is past fires at once.
        let at_ns = due_ns.saturating_sub(lead_ns).max(1);
        let it_value = Timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
        self.due_ns = due_ns;
        Ok(())
    }
}
