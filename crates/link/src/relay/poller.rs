//! Waiting for sockets and for an instant at once, to the nanosecond.

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};

use kendall_record::clock::now_ns;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::set_current_timer_slack;

/// No wait is longer, so that the relay sees in time that it is to stop.
const LONGEST_NS: i64 = 50_000_000;
/// The most events that one wait hands over.
const EVENTS: usize = 256;

/// Waits for sockets.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: OwnedFd,
}

impl Poller {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self { epoll: epoll::create(CreateFlags::CLOEXEC)? })
    }

    /// Makes the thread that waits here as punctual as it may be. Where that is refused the relay is later, and says so.
    pub(super) fn hurry() {
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let _ = rustix::process::setpriority_process(None, -20);
    }

    /// Watches a socket, which is known by a number from now on.
    pub(super) fn watch(&self, socket: impl AsFd, number: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, socket, EventData::new_u64(number), flags)?)
    }

    /// Waits for an event or an instant of [`now_ns`]; adds which sockets have something, and what.
    pub(super) fn wait(&self, until_ns: Option<i64>, ready: &mut Vec<(u64, EventFlags)>) -> io::Result<()> {
        let left_ns = until_ns.map_or(LONGEST_NS, |until_ns| until_ns.saturating_sub(now_ns()));
        let timeout = Timespec { tv_sec: 0, tv_nsec: left_ns.clamp(0, LONGEST_NS) };
        let mut events = [MaybeUninit::<Event>::uninit(); EVENTS];
        match epoll::wait(&self.epoll, &mut events, Some(&timeout)) {
            Ok((events, _)) => ready.extend(events.iter().map(|event| (event.data.u64(), event.flags))),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}
