//! The driver over its own sockets: one thread, one epoll instance, no allocation and no future for a request.
//!
//! The thread that owns the sockets owns the timer. How it waits for the next send is the whole art of being on
//! time:
//!
//! - With nothing due soon it waits for sockets and time alike, and every answer wakes it.
//! - With a send due within [`DEAF`] it waits for that instant alone, and reads after the send what came meanwhile:
//!   fewer wakings, and no answer's reading is in the way of a send. That answers are read late does not show in
//!   their stamps, which are the kernel's.
//! - It is woken too early by about as much as waking takes, and spins for the rest. In precise mode that is as much as
//!   it ever takes, and it looks after its sockets between.
//!
//! Where an answer decides when the next request is due, as in a closed population, it never waits deafly, and
//! stamps are its own: a user has an answer when it is read.

mod alarm;
mod carrier;
mod slots;
mod socket;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;

use crate::connection::Stamps;
use crate::dialog::{Dialogs, Wire};
use crate::ledger::{CHECK_EVERY, EndedRequest, Failure, Ledger, OutgoingRequest, in_time};
use crate::plan::{Plan, Timing};
use crate::poll::alarm::Alarm;
use crate::poll::carrier::{Carrier, Hangup, Out, Step};
use crate::poll::slots::Slots;
use crate::poll::socket::{Inbox, KernelClock, keep_stamping};
use crate::request::Reuse;
use crate::summary::StampedBy;

pub(crate) use crate::poll::slots::Key;

/// With a send due this soon, answers wait until it is out, in nanoseconds.
const DEAF: i64 = 150_000;
/// How long before a send it looks at no socket any more: longer than reading one answer takes.
const HANDS_OFF: i64 = 20_000;
/// After so many sends it looks at its sockets, however soon the next is due: else a rate that leaves no time between two
/// sends would leave all answers unread.
const UNHEARD_AT_MOST: u32 = 4;
/// What an event of a timer says in place of a connection's key.
const NO_CONNECTION: u64 = u64::MAX;
/// The most events taken from the kernel at once.
const EVENTS: usize = 256;

/// Runs the requests of a ledger until the last has ended, or it is cancelled. Nothing is in flight then.
///
/// # Errors
/// Fails only where it cannot be set up.
pub(crate) fn drive<'a>(
    ledger: &mut Ledger<'a, Key>,
    wire: &'a Wire,
    dialogs: &'a dyn Dialogs,
    plan: &'a Plan,
    cancel: &AtomicBool,
) -> io::Result<StampedBy> {
    let epoll = epoll::create(CreateFlags::CLOEXEC)?;
    let alarm = Alarm::new(&plan.arrivals, plan.seed, plan.timing)?;
    if let Some(alarm) = &alarm {
        alarm.register(&epoll, EventData::new_u64(NO_CONNECTION))?;
    }
    let stamping = alarm.as_ref().and_then(|_| keep_stamping());
    let stamped_by = if stamping.is_some() { StampedBy::Kernel } else { StampedBy::Generator };
    let mut driver = Driver {
        ledger,
        wire,
        dialogs,
        plan,
        stamped_by,
        epoll,
        alarm,
        slots: Slots::default(),
        inbox: Inbox::new(),
        events: Vec::with_capacity(EVENTS),
        urgent: 0,
        expiry_ns: i64::MAX,
        unheard: 0,
    };
    driver.run(cancel)?;
    Ok(stamped_by)
}

struct Driver<'l, 'a> {
    ledger: &'l mut Ledger<'a, Key>,
    wire: &'a Wire,
    dialogs: &'a dyn Dialogs,
    plan: &'a Plan,
    stamped_by: StampedBy,
    epoll: OwnedFd,
    /// There is one if the instants are fixed in advance.
    alarm: Option<Alarm<'a>>,
    slots: Slots,
    inbox: Inbox,
    events: Vec<epoll::Event>,
    /// Connections on which something is still to be written.
    urgent: u32,
    /// No request is to be given up before this instant.
    expiry_ns: i64,
    /// Sends since the sockets were last looked at.
    unheard: u32,
}

impl Driver<'_, '_> {
    fn run(&mut self, cancel: &AtomicBool) -> io::Result<()> {
        let check_every = CHECK_EVERY.as_nanos() as i64;
        let (mut check_ns, mut drain_until_ns) = (0, i64::MAX);
        let start_ns = now_ns();
        self.ledger.start(start_ns);
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
                self.inbox.clock = KernelClock::read();
                self.ledger.publish(now);
                check_ns = now + check_every;
            }
            if self.ledger.is_over(now) {
                if now >= drain_until_ns || drain_until_ns == i64::MAX {
                    // No silence if it was this thread that stood still.
                    self.listen(0)?;
                    drain_until_ns = self.ledger.drain_until_ns(now);
                }
                if self.ledger.is_settled() || now >= drain_until_ns {
                    break;
                }
            }
            if now >= self.expiry_ns {
                // What is there already may have come in time, if this thread stood still.
                self.listen(0)?;
                self.expire(now);
            }
            self.wait(now, check_ns.min(drain_until_ns).min(self.expiry_ns))?;
        }
        self.abandon();
        Ok(())
    }

    /// Begins every request that is due by now and can have a connection.
    fn begin_due(&mut self) {
        while let Some(begin) = self.ledger.next(now_ns()) {
            self.begin(begin);
        }
    }

    /// Waits for the next send, for answers, or for `until_ns`, and sees to the sockets.
    fn wait(&mut self, now: i64, until_ns: i64) -> io::Result<()> {
        // All that is due is on its way by now, so making a request keeps none of them.
        self.ledger.prepare();
        let Some(due_ns) = self.ledger.next_ns() else { return self.listen(until_ns - now) };
        let Some(alarm) = &mut self.alarm else { return self.listen(until_ns.min(due_ns) - now) };
        let awake_ns = alarm.set(due_ns, now)?;
        let left_ns = due_ns - now;
        let can_be_deaf = self.urgent == 0 && self.stamped_by == StampedBy::Kernel;
        if self.ledger.is_waiting() {
            // Nothing can go out before an answer has come.
            return self.listen(until_ns.min(due_ns) - now);
        }
        if self.unheard >= UNHEARD_AT_MOST {
            return self.listen(0);
        }
        match self.plan.timing {
            Timing::Precise if now >= awake_ns && left_ns > HANDS_OFF => return self.listen(0),
            _ if now >= awake_ns => {
                while now_ns() < due_ns {
                    std::hint::spin_loop();
                }
                return Ok(());
            }
            Timing::Sleep if left_ns <= DEAF && can_be_deaf => {
                self.listen(0)?;
                if let (Some(alarm), true) = (&self.alarm, self.urgent == 0) {
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

    /// Waits for at most so long until sockets have something, and sees to them.
    fn listen(&mut self, at_most_ns: i64) -> io::Result<()> {
        self.unheard = 0;
        let at_most_ns = at_most_ns.max(0);
        let timeout = Timespec { tv_sec: at_most_ns / 1_000_000_000, tv_nsec: at_most_ns % 1_000_000_000 };
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        for place in 0..self.events.len() {
            let epoll::Event { flags, data } = self.events[place];
            self.ready(Key::from_bits(data.u64()), flags);
            self.begin_due();
        }
        Ok(())
    }

    /// A socket can be read or written, or has failed.
    fn ready(&mut self, key: Key, flags: EventFlags) {
        let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        if flags.contains(EventFlags::OUT) {
            self.step(key, |carrier, _| if carrier.is_urgent() { carrier.write() } else { Step::Wait });
        }
        let hangup = if flags.intersects(ends) { Hangup::Yes } else { Hangup::No };
        if flags.intersects(ends | EventFlags::IN) {
            self.step(key, |carrier, inbox| carrier.read(inbox, hangup));
        }
    }

    /// Begins one request on its connection or a new one.
    fn begin(&mut self, mut begin: OutgoingRequest<Key>) {
        // A request goes to the kernel at once if its connection is open, so one reading of the clock does for both.
        let now = now_ns();
        let start = begin.start;
        self.unheard += 1;
        self.ledger.begun(&mut begin.due, start, now);
        let deadline_ns = now.saturating_add(i64::try_from(self.plan.timeout.as_nanos()).unwrap_or(i64::MAX));
        self.expiry_ns = self.expiry_ns.min(deadline_ns);
        let key = match begin.on.map_or_else(|| self.connect(), Ok) {
            Ok(key) => key,
            Err(error) => return self.fail(begin, &error),
        };
        self.step(key, |carrier, _| {
            carrier.load(begin, deadline_ns);
            Step::Wait
        });
        self.step(key, |carrier, _| carrier.write());
    }

    /// Opens a connection.
    fn connect(&mut self) -> io::Result<Key> {
        let carrier = Carrier::connect(self.wire, self.dialogs, self.stamped_by)?;
        let key = self.slots.insert(carrier);
        let carrier = self.slots.get(key).expect("it was just put there");
        // Edges, so that one registration serves for connecting, writing and reading.
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        match epoll::add(&self.epoll, &*carrier, EventData::new_u64(key.to_bits()), flags) {
            Ok(()) => {
                // TLS has the first word to say from the beginning.
                self.urgent += u32::from(carrier.is_urgent());
                Ok(key)
            }
            Err(error) => {
                self.slots.remove(key);
                Err(error.into())
            }
        }
    }

    /// A request for which no connection could even be begun.
    fn fail(&mut self, begin: OutgoingRequest<Key>, error: &io::Error) {
        let now = now_ns();
        let stamps = Stamps { completed: Some(now), ..Stamps::default() };
        let (due, class, failure) = (begin.due, begin.request.class, Failure::of(error));
        self.ledger.refused(error);
        self.ledger.end(
            EndedRequest { due, class, port: 0, stamps, outcome: Outcome::Refused, failure },
            None,
            now,
        );
    }

    /// Lets a connection do something, and draws the conclusions.
    fn step(&mut self, key: Key, act: impl FnOnce(&mut Carrier, &mut Inbox) -> Step) {
        // None where a timer has fired, or the connection was closed since.
        let Some(carrier) = self.slots.get(key) else { return };
        let was_urgent = carrier.is_urgent();
        let was_sent = carrier.sent_ns();
        let step = act(carrier, &mut self.inbox);
        self.urgent = self.urgent - u32::from(was_urgent) + u32::from(carrier.is_urgent());
        if let (None, Some(at_ns)) = (was_sent, carrier.sent_ns()) {
            self.ledger.sent(at_ns);
        }
        match step {
            Step::Wait => {}
            Step::Ended(outcome, Reuse::Keep) => {
                let out = carrier.take_out();
                let port = carrier.port;
                self.end(out, port, outcome, Failure::NotOurs, Some(key));
            }
            Step::Ended(outcome, Reuse::Close) => self.close(key, outcome, Failure::NotOurs),
            Step::Broken(outcome, error) => {
                let failure = error.as_ref().map_or(Failure::NotOurs, Failure::of);
                if let Some(error) = error.filter(|_| carrier.out().is_some()) {
                    self.ledger.refused(&error);
                }
                self.close(key, outcome, failure);
            }
        }
    }

    /// Closes a connection, with which the request that it carries ends.
    fn close(&mut self, key: Key, outcome: Outcome, failure: Failure) {
        let Some(mut carrier) = self.slots.remove(key) else { return };
        self.urgent -= u32::from(carrier.is_urgent());
        let (out, port) = (carrier.take_out(), carrier.port);
        match (&out, outcome) {
            (None, _) => self.ledger.lost(|idle| *idle == key),
            (_, Outcome::TimedOut | Outcome::Unanswered) => carrier.reset(),
            _ => {}
        }
        self.end(out, port, outcome, failure, None);
    }

    fn end(
        &mut self,
        out: Option<Out>,
        port: u16,
        outcome: Outcome,
        failure: Failure,
        connection: Option<Key>,
    ) {
        let Some(Out { due, request, mut stamps, deadline_ns, .. }) = out else { return };
        let now = now_ns();
        stamps.completed = match outcome {
            Outcome::Answered | Outcome::Wrong | Outcome::Refused => stamps.completed.or(Some(now)),
            Outcome::TimedOut => Some(now),
            Outcome::Unanswered => None,
        };
        let outcome = in_time(outcome, &stamps, deadline_ns);
        let ended = EndedRequest { due, class: request.class, port, stamps, outcome, failure };
        self.ledger.end(ended, connection, now);
    }

    /// Gives up what has been out for too long.
    fn expire(&mut self, now: i64) {
        let deadlines = || self.slots.iter().filter_map(|(key, one)| Some((key, one.out()?.deadline_ns)));
        let late: Vec<Key> = deadlines().filter(|&(_, at_ns)| at_ns <= now).map(|(key, _)| key).collect();
        let next = deadlines().map(|(_, at_ns)| at_ns).filter(|&at_ns| at_ns > now).min();
        self.expiry_ns = next.unwrap_or(i64::MAX);
        for key in late {
            self.close(key, Outcome::TimedOut, Failure::NotOurs);
        }
    }

    /// Ends everything that is still out, unanswered.
    fn abandon(&mut self) {
        let keys: Vec<Key> = self.slots.iter().map(|(key, _)| key).collect();
        for key in keys {
            self.close(key, Outcome::Unanswered, Failure::NotOurs);
        }
    }
}
