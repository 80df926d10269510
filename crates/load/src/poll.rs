//! The driver over its own sockets: one thread, one epoll instance, no allocation and no future per request.
//!
//! The thread that owns the sockets owns the timer. Its way of waiting for the next send determines how punctual it is:
//!
//! - With nothing due soon it waits for sockets and time alike, and every answer wakes it.
//! - With a send due within [`DEAF`] it waits for that instant alone, and reads answers after the send:
//!   fewer wakeups, and reading an answer never delays a send. Late reading does not show in their stamps,
//!   which are the kernel's.
//! - It is woken early by about the time that waking takes, and spins for the rest. In precise mode that is the
//!   longest time that waking ever takes, and it polls its sockets meanwhile.
//!
//! If an answer decides when the next request is due, as in a closed population, it never waits deafly, and uses its own
//! stamps: a user has an answer when it is read.

mod alarm;
mod carrier;
mod exchanges;
mod reactor;
mod session_line;
mod sessions;
mod slots;
mod socket;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use kendall_record::clock::now_ns;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::gate::Pass;
use crate::ledger::{CHECK_EVERY, Ledger};
use crate::plan::{Plan, Timing};
use crate::poll::alarm::Alarm;
use crate::poll::reactor::Reactor;
use crate::poll::socket::{Inbox, KernelClock, keep_stamping};
use crate::summary::StampedBy;

pub(crate) use crate::poll::exchanges::Exchanges;
pub(crate) use crate::poll::reactor::Lines;
pub(crate) use crate::poll::sessions::SessionLines;
pub(crate) use crate::poll::slots::Key;

/// With a send due this soon, answers wait until it is sent, in nanoseconds.
const DEAF: i64 = 150_000;
/// How long before a send it stops polling sockets: longer than reading one answer takes.
const HANDS_OFF: i64 = 20_000;
/// After this many sends it polls its sockets, however soon the next is due: otherwise a rate without gaps between sends
/// would leave all answers unread.
const UNHEARD_AT_MOST: u32 = 4;
/// The key of a timer's event, instead of a connection's.
const NO_CONNECTION: u64 = u64::MAX;
/// The most events taken from the kernel at once.
const EVENTS: usize = 256;

/// Runs the requests of a ledger over connections until the last has ended, or it is cancelled. No request is in flight
/// then.
///
/// # Errors
/// Fails only if it cannot be set up.
pub(crate) fn drive<'a>(
    ledger: &mut Ledger<'a, Key>,
    lines: impl Lines,
    plan: &'a Plan,
    pass: Pass<'_>,
    cancel: &AtomicBool,
) -> io::Result<StampedBy> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let alarm = Alarm::new(plan, ledger.share())?;
    if let Some(alarm) = &alarm {
        alarm.register(&epoll, EventData::new_u64(NO_CONNECTION))?;
    }
    let stamping = alarm.as_ref().and_then(|_| keep_stamping());
    let stamped_by = if stamping.is_some() { StampedBy::Kernel } else { StampedBy::Generator };
    let inbox = Inbox::new();
    let reactor =
        Reactor { ledger, plan, stamped_by, epoll, inbox, urgent: 0, expiry_ns: i64::MAX, unheard: 0 };
    let mut driver = Driver { reactor, lines, alarm, events: Vec::with_capacity(EVENTS) };
    driver.open(cancel)?;
    driver.run(pass, cancel)?;
    Ok(stamped_by)
}

struct Driver<'l, 'a, L> {
    reactor: Reactor<'l, 'a>,
    lines: L,
    /// The alarm, which exists if the instants are fixed in advance.
    alarm: Option<Alarm<'a>>,
    events: Vec<epoll::Event>,
}

impl<L: Lines> Driver<'_, '_, L> {
    /// Opens the connections that the run needs before it starts, within the timeout of a request.
    fn open(&mut self, cancel: &AtomicBool) -> io::Result<()> {
        let timeout_ns = i64::try_from(self.reactor.plan.timeout.as_nanos()).unwrap_or(i64::MAX);
        let until_ns = now_ns().saturating_add(timeout_ns);
        while self.lines.open(&mut self.reactor) && now_ns() < until_ns && !cancel.load(Ordering::Relaxed) {
            self.poll(CHECK_EVERY.as_nanos() as i64)?;
            for place in 0..self.events.len() {
                self.ready(place);
            }
        }
        Ok(())
    }

    fn run(&mut self, pass: Pass<'_>, cancel: &AtomicBool) -> io::Result<()> {
        let check_every = CHECK_EVERY.as_nanos() as i64;
        let (mut check_ns, mut drain_until_ns) = (0, i64::MAX);
        let Some(start_ns) = pass.start_ns() else { return Ok(()) };
        self.reactor.ledger.start(start_ns);
        if let Some(alarm) = &mut self.alarm {
            alarm.start(start_ns);
        }
        loop {
            self.begin_due();
            let now = now_ns();
            if now >= check_ns {
                if cancel.load(Ordering::Relaxed) {
                    break;
                }
                self.reactor.inbox.clock = KernelClock::read();
                self.reactor.ledger.publish(now);
                check_ns = now + check_every;
            }
            if self.reactor.ledger.is_over(now) {
                if now >= drain_until_ns || drain_until_ns == i64::MAX {
                    // Not a silence if this thread was stalled.
                    self.listen(0)?;
                    drain_until_ns = self.reactor.ledger.drain_until_ns(now);
                }
                if self.reactor.ledger.is_settled() || now >= drain_until_ns {
                    break;
                }
            }
            if now >= self.reactor.expiry_ns {
                // Bytes that are already there may have arrived in time, if this thread was stalled.
                self.listen(0)?;
                self.lines.expire(&mut self.reactor, now);
            }
            self.wait(now, check_ns.min(drain_until_ns).min(self.reactor.expiry_ns))?;
        }
        self.lines.abandon(&mut self.reactor);
        Ok(())
    }

    /// Begins every request that is due by now and can have a connection.
    fn begin_due(&mut self) {
        while let Some(request) = self.reactor.ledger.next(now_ns()) {
            self.lines.begin(&mut self.reactor, request);
        }
    }

    /// Waits for the next send, for answers, or for `until_ns`, and handles the sockets.
    fn wait(&mut self, now: i64, until_ns: i64) -> io::Result<()> {
        // All requests that are due were begun, so creating a request delays none of them.
        self.reactor.ledger.prepare();
        let Some(due_ns) = self.reactor.ledger.next_ns() else { return self.listen(until_ns - now) };
        let Some(alarm) = &mut self.alarm else { return self.listen(until_ns.min(due_ns) - now) };
        let awake_ns = alarm.set(due_ns, now)?;
        let left_ns = due_ns - now;
        let can_be_deaf = self.reactor.urgent == 0 && self.reactor.stamped_by == StampedBy::Kernel;
        if self.reactor.ledger.is_waiting() {
            // No request can be sent before an answer has come.
            return self.listen(until_ns.min(due_ns) - now);
        }
        if self.reactor.unheard >= UNHEARD_AT_MOST {
            return self.listen(0);
        }
        match self.reactor.plan.timing {
            Timing::Precise if now >= awake_ns && left_ns > HANDS_OFF => return self.listen(0),
            _ if now >= awake_ns => {
                while now_ns() < due_ns {
                    std::hint::spin_loop();
                }
                return Ok(());
            }
            Timing::Sleep if left_ns <= DEAF && can_be_deaf => {
                self.listen(0)?;
                if let (Some(alarm), true) = (&self.alarm, self.reactor.urgent == 0) {
                    alarm.sleep(due_ns)?;
                }
            }
            _ => self.listen(until_ns - now)?,
        }
        if let Some(alarm) = &mut self.alarm {
            alarm.woken(now);
        }
        Ok(())
    }

    /// Waits for at most this long until sockets are ready, and handles them.
    fn listen(&mut self, at_most_ns: i64) -> io::Result<()> {
        self.reactor.unheard = 0;
        self.poll(at_most_ns)?;
        for place in 0..self.events.len() {
            self.ready(place);
            self.begin_due();
        }
        Ok(())
    }

    /// Waits for at most this long for events of the kernel.
    fn poll(&mut self, at_most_ns: i64) -> io::Result<()> {
        let at_most_ns = at_most_ns.max(0);
        let timeout = Timespec { tv_sec: at_most_ns / 1_000_000_000, tv_nsec: at_most_ns % 1_000_000_000 };
        self.events.clear();
        match epoll::wait(&self.reactor.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn ready(&mut self, place: usize) {
        let epoll::Event { flags, data } = self.events[place];
        self.lines.ready(&mut self.reactor, Key::from_bits(data.u64()), flags);
    }
}
