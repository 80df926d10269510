//! One direction of the emulated link. It takes packets in at one port, lets the model decide which leave and when, and sends
//! them out at the other. Each direction has its own thread, so that a burst in one does not delay the other.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kendall_linkmodel::{Counters, Packet, Path};
use kendall_record::clock::now_ns;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use nix::unistd::pipe;
use rustix::process::setpriority_process;
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
};

use crate::frame::{Flow, Frame};
use crate::lateness::Lateness;
use crate::port::Port;
use crate::spool::Spool;

/// The most packets that are taken in before due packets are sent.
const BATCH: usize = 64;
/// The last part of a wait is a busy loop, because sleep ends about this much later than requested …
const SPIN_NS: i64 = 60_000;
/// … but at most one part in this many of all time.
const SPIN_SHARE: i64 = 4;
/// The most of that share that may be saved up.
const SPIN_SAVED_NS: i64 = 100 * SPIN_NS;
/// The number of frames kept for reuse.
const SPARE_FRAMES: usize = 4096;
/// The number of flows whose names are kept.
const NAMED_FLOWS: usize = 4096;
/// How often the model's log is moved to the spool.
const SPOOL_EVERY_NS: i64 = 250_000_000;

/// The signal to stop forwarding, for every thread that forwards.
pub(crate) struct Stop {
    stopped: AtomicBool,
    /// Becomes readable, which wakes sleeping threads.
    waker: OwnedFd,
}

impl Stop {
    /// A pipe: dropping the second end makes the first readable, which wakes the threads.
    pub(crate) fn new() -> io::Result<(Arc<Self>, OwnedFd)> {
        let (waker, held) = pipe()?;
        Ok((Arc::new(Self { stopped: AtomicBool::new(false), waker }), held))
    }

    /// Stops the forwarding.
    pub(crate) fn set(&self, held: OwnedFd) {
        self.stopped.store(true, Ordering::Relaxed);
        drop(held);
    }
}

/// The counts and times of one direction.
pub(crate) struct Done {
    pub(crate) counters: Vec<Counters>,
    /// How late packets were sent, compared with the model.
    pub(crate) late: Lateness,
    /// How long those packets had waited in queues.
    pub(crate) waited: Lateness,
    /// Packets that the kernel did not accept.
    pub(crate) unsent: u64,
    pub(crate) names: HashMap<u64, Flow>,
    pub(crate) spool: Option<Spool>,
}

/// One direction of a running link.
pub(crate) struct Direction {
    from: Arc<dyn Port>,
    to: Arc<dyn Port>,
    path: Path<Frame>,
    done: Done,
    spare: Vec<Frame>,
    /// Every packet that had arrived by then has been taken in.
    known_ns: i64,
    spooled_ns: i64,
    spin_left_ns: i64,
    spin_as_of_ns: i64,
}

impl Direction {
    pub(crate) fn new(
        from: Arc<dyn Port>,
        to: Arc<dyn Port>,
        path: Path<Frame>,
        spool: Option<Spool>,
    ) -> Self {
        let now = now_ns();
        let done = Done {
            counters: Vec::new(),
            late: Lateness::default(),
            waited: Lateness::default(),
            unsent: 0,
            names: HashMap::new(),
            spool,
        };
        let (spare, spin_left_ns) = (Vec::new(), 0);
        Self { from, to, path, done, spare, known_ns: now, spooled_ns: now, spin_left_ns, spin_as_of_ns: now }
    }

    /// Forwards until stopped. Packets still under way are then lost.
    pub(crate) fn run(mut self, stop: &Stop) -> io::Result<Done> {
        come_first();
        while !stop.stopped.load(Ordering::Relaxed) {
            self.take_in()?;
            self.hand_out();
            self.log()?;
            self.wait(&stop.waker)?;
        }
        if let Some(spool) = &mut self.done.spool {
            spool.write(self.path.finish_log())?;
        }
        self.done.counters = self.path.counters().collect();
        Ok(self.done)
    }

    fn take_in(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            let asked_ns = now_ns();
            let mut frame = self.spare.pop().unwrap_or_else(|| self.from.frame());
            let Some(came_ns) = self.from.receive(&mut frame)? else {
                self.spare.push(frame);
                self.known_ns = asked_ns;
                return Ok(());
            };
            // The wall clock, by which the kernel stamps, may have been set meanwhile.
            self.known_ns = came_ns.max(self.known_ns);
            let flow = frame.flow();
            let number = flow.number();
            if self.done.names.len() < NAMED_FLOWS {
                self.done.names.entry(number).or_insert(flow);
            }
            let packet = Packet { bytes: frame.link_bytes(), flow: number, ecn: frame.ecn(), item: frame };
            self.path.offer(self.known_ns, packet);
        }
        Ok(())
    }

    fn hand_out(&mut self) {
        for _ in 0..BATCH {
            let Some(delivery) = self.path.poll(self.known_ns) else { return };
            let mut frame = delivery.packet.item;
            if delivery.marked {
                frame.mark();
            }
            if let Some(bit) = delivery.wrong_bit {
                frame.flip(bit);
            }
            for _ in 0..delivery.copies {
                self.done.late.record(delivery.at_ns, now_ns(), 1);
                self.done.waited.record(0, delivery.waited_ns, 1);
                // The kernel refuses a packet where it has no memory. That is a loss, but not one that the settings ask for.
                self.done.unsent += u64::from(self.to.send(&frame).is_err());
            }
            if self.spare.len() < SPARE_FRAMES {
                self.spare.push(frame);
            }
        }
    }

    fn log(&mut self) -> io::Result<()> {
        if let Some(spool) = &mut self.done.spool
            && self.known_ns - self.spooled_ns >= SPOOL_EVERY_NS
        {
            self.spooled_ns = self.known_ns;
            spool.write(self.path.drain_log(self.known_ns))?;
        }
        Ok(())
    }

    /// Waits for a packet, for the next departure, or for the end.
    fn wait(&mut self, waker: &OwnedFd) -> io::Result<()> {
        let now = now_ns();
        let earned_ns = (now - self.spin_as_of_ns) / SPIN_SHARE;
        self.spin_left_ns = (self.spin_left_ns + earned_ns).min(SPIN_SAVED_NS);
        self.spin_as_of_ns = now;
        let timeout = match self.path.next_ns() {
            None => None,
            Some(due_ns) => {
                let left_ns = due_ns - now;
                let spin_ns = SPIN_NS.min(self.spin_left_ns);
                if left_ns <= spin_ns {
                    self.spin_left_ns -= left_ns.max(0);
                    while now_ns() < due_ns {
                        std::hint::spin_loop();
                    }
                    return Ok(());
                }
                let sleep_ns = left_ns - spin_ns;
                Some(TimeSpec::new(sleep_ns / 1_000_000_000, sleep_ns % 1_000_000_000))
            }
        };
        let readable = |file| PollFd::new(file, PollFlags::POLLIN);
        match ppoll(&mut [readable(waker.as_fd()), readable(self.from.file())], timeout, None) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Makes the calling thread wake on time and before others, as far as permitted. Without the permission packets leave later, and
/// that is measured. The thread does not starve others: it has work only after the senders have run.
fn come_first() {
    let _ = set_timerslack(1);
    let _ = setpriority_process(None, -20);
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
}
