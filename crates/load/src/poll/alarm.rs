//! The timers that wake the generator for its sends: always one more than the next is armed, each early by the time that
//! waking takes.
//!
//! Arming the earliest timer makes the kernel reprogram the processor's, which on a virtual machine costs several
//! microseconds, as much as sending the request. A timer that is armed while an earlier one is pending costs next to
//! nothing: the kernel reprograms the processor's for it when it handles the one that fires.

use std::io;
use std::iter::{Skip, StepBy};
use std::os::fd::OwnedFd;

use kendall_record::clock::now_ns;
use kendall_station::Instants;
use rustix::event::{PollFd, PollFlags, epoll, poll};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

use crate::plan::{Plan, Timing};
use crate::share::Share;

/// A request due this soon after another is mostly due before the generator can sleep again, and its timer would only
/// interrupt.
const WORTH_IT_NS: i64 = 30_000;

/// Wakes the generator shortly before each of the instants of an open stream.
pub(crate) struct Alarm<'a> {
    timers: [Timer; 2],
    /// A second copy of the schedule's instants, one ahead of it.
    instants: StepBy<Skip<Instants<'a>>>,
    start_ns: i64,
    /// The current instant; `None` after the last.
    ahead_ns: Option<i64>,
    lead: Lead,
}

struct Timer {
    fd: OwnedFd,
    /// The number of the request for which it is armed.
    due_ns: i64,
    /// The instant at which the timer fires.
    at_ns: i64,
}

/// How long before a send to wake. It is a quantile of the time that waking takes, learned from each wakeup by a small
/// step towards it (Robbins and Monro 1951).
struct Lead {
    ns: f64,
    /// The share of wakeups that should be in time; the generator spins for the rest.
    in_time: f64,
    step_ns: f64,
    /// The largest share of the time between two sends.
    of_gap: f64,
}

impl Lead {
    /// Longer than waking takes on a machine that is not paused as a whole.
    const MOST_NS: f64 = 200_000.0;

    fn of(timing: Timing) -> Self {
        match timing {
            // Most of the time that waking always takes, and hardly anything to spin for.
            Timing::Sleep => Self { ns: 0.0, in_time: 0.25, step_ns: 4_000.0, of_gap: 0.25 },
            // Spinning through most of a short gap would keep the core from the threads of a server on the same machine:
            // they wait there until the scheduler moves them, which takes milliseconds, and so do their answers.
            Timing::Precise => Self { ns: 60_000.0, in_time: 0.995, step_ns: 20_000.0, of_gap: 0.3 },
        }
    }

    fn learn(&mut self, took_ns: i64) {
        let by = if (took_ns as f64) > self.ns { self.in_time } else { self.in_time - 1.0 };
        self.ns = (self.ns + by * self.step_ns).clamp(0.0, Self::MOST_NS);
    }

    fn within(&self, gap_ns: i64) -> i64 {
        self.ns.min(self.of_gap * gap_ns.max(0) as f64) as i64
    }
}

impl<'a> Alarm<'a> {
    /// `None` where the instants are not fixed in advance.
    pub(crate) fn new(plan: &'a Plan, share: Share) -> io::Result<Option<Self>> {
        let Some(instants) = plan.arrivals.instants(plan.seed) else { return Ok(None) };
        let instants = share.stream(instants);
        let timer = || {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            Ok::<_, Errno>(Timer { fd, due_ns: i64::MIN, at_ns: i64::MIN })
        };
        let timers = [timer()?, timer()?];
        Ok(Some(Self { timers, instants, start_ns: 0, ahead_ns: Some(0), lead: Lead::of(plan.timing) }))
    }

    /// Registers the timers with an epoll instance, which they wake.
    pub(crate) fn register(&self, epoll: &OwnedFd, data: epoll::EventData) -> io::Result<()> {
        for timer in &self.timers {
            epoll::add(epoll, &timer.fd, data, epoll::EventFlags::IN | epoll::EventFlags::ET)?;
        }
        Ok(())
    }

    /// Starts the run: every instant counts from here.
    pub(crate) fn start(&mut self, now_ns: i64) {
        (self.start_ns, self.ahead_ns) = (now_ns, Some(now_ns));
    }

    /// Arms a timer for the next request, unless one is armed, and the other for the request after it. Returns when the
    /// first fires.
    pub(crate) fn set(&mut self, due_ns: i64, now_ns: i64) -> io::Result<i64> {
        while self.ahead_ns.is_some_and(|ahead_ns| ahead_ns <= due_ns) {
            let next_s = self.instants.next();
            self.ahead_ns = next_s.map(|at_s| self.start_ns.saturating_add((at_s * 1e9).round() as i64));
        }
        let next = usize::from(self.timers[0].due_ns != due_ns);
        self.timers[next].arm(due_ns, self.lead.within(due_ns - now_ns))?;
        if let Some(ahead_ns) = self.ahead_ns.filter(|ahead_ns| ahead_ns - due_ns > WORTH_IT_NS) {
            self.timers[1 - next].arm(ahead_ns, self.lead.within(ahead_ns - due_ns))?;
        }
        Ok(self.timers[next].at_ns)
    }

    /// Learns from a sleep from an instant until now, at which a timer may have woken the generator.
    pub(crate) fn woken(&mut self, from_ns: i64) {
        let now_ns = now_ns();
        if let Some(timer) = self.timers.iter().find(|timer| (from_ns + 1..=now_ns).contains(&timer.at_ns)) {
            self.lead.learn(now_ns - timer.at_ns);
        }
    }

    /// Sleeps until the instant of the last call of [`set`](Self::set).
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
        // Zero would disarm it; a past instant fires at once.
        let at_ns = due_ns.saturating_sub(lead_ns).max(1);
        let it_value = Timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value };
        timerfd_settime(&self.fd, TimerfdTimerFlags::ABSTIME, &once)?;
        (self.due_ns, self.at_ns) = (due_ns, at_ns);
        Ok(())
    }
}
