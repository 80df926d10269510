//! Waits for sockets and for an instant at once, to the nanosecond.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};

use kendall_record::clock::now_ns;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

/// The longest wait, so that the relay notices in time that it is to stop.
const LONGEST_NS: i64 = 50_000_000;
/// The most events that one wait returns.
const EVENTS: usize = 256;
/// The number of the timer among the sockets.
const TIMER: u64 = u64::MAX;

/// Waits for sockets and for a timer among them: the time-out of a wait has a resolution of milliseconds only.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
    timer: OwnedFd,
    armed_for: Option<i64>,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer =
            timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        let poller = Self { epoll, timer, armed_for: None };
        // Setting the timer again clears it, and each expiry is a new edge, so it is never read.
        poller.watch(&poller.timer, TIMER, EventFlags::IN | EventFlags::ET)?;
        Ok(poller)
    }

    /// Watches a socket, whose events carry this number.
    pub(super) fn watch(&self, socket: impl AsFd, number: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Waits for an event or an instant of [`now_ns`], and adds the number and kind of each event.
    pub(super) fn wait(
        &mut self,
        until_ns: Option<i64>,
        ready: &mut Vec<(u64, EventFlags)>,
    ) -> io::Result<()> {
        let due = until_ns.is_some_and(|until_ns| until_ns <= now_ns());
        if !due {
            self.arm(until_ns)?;
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: if due { 0 } else { LONGEST_NS } };
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS];
        match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Ok((events, _)) => {
                let events = events.iter().map(|event| (event.data.u64(), event.flags));
                ready.extend(events.filter(|(number, _)| *number != TIMER));
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn arm(&mut self, until_ns: Option<i64>) -> io::Result<()> {
        if let Some(until_ns) = until_ns.filter(|until_ns| self.armed_for != Some(*until_ns)) {
            let value = Timespec { tv_sec: until_ns / 1_000_000_000, tv_nsec: until_ns % 1_000_000_000 };
            let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
            self.armed_for = Some(until_ns);
        }
        Ok(())
    }
}
