//! One direction of one link: a queue, a sender and a wire, one behind the other.

use crate::counters::{Counters, Ledger};
use crate::fault::Fault;
use crate::log::{FlowLog, FlowRow};
use crate::packet::{Delivery, Packet};
use crate::queue::Queue;
use crate::random::{Purpose, derive};
use crate::rate::Sender;
use crate::settings::Settings;
use crate::wire::Wire;

/// The bytes as which a packet counts at least, an IPv4 header: so a bound on bytes is also one on packets.
pub const SMALLEST_BYTES: u32 = 20;

/// One direction of one link.
///
/// Packets are handed in with [`offer`](Self::offer) and come out of [`poll`](Self::poll). Everything that happens
/// inside has its exact instant in virtual time, so neither how often one polls nor how late changes what comes out or
/// when it was due. Instants are in ns on any one clock, and one that is earlier than the last is taken for the last.
#[derive(Debug)]
pub struct Link<T> {
    queue: Queue<T>,
    sender: Option<Sender>,
    wire: Wire<T>,
    ledger: Ledger,
    overhead_bytes: u64,
    now_ns: i64,
}

impl<T> Link<T> {
    /// A link with nothing on it. Chance is drawn from the seed; a trace of rates begins at `start_ns`.
    ///
    /// # Errors
    ///
    /// Where the settings contradict each other or are out of bounds: see [`Settings::check`].
    pub fn new(settings: &Settings, seed: u64, start_ns: i64) -> Result<Self, Fault> {
        settings.check()?;
        Ok(Self {
            queue: Queue::new(settings.queue_bytes, settings.aqm, derive(seed, Purpose::Hashing, 0)),
            sender: Sender::new(&settings.rate, start_ns),
            wire: Wire::new(settings, seed),
            ledger: Ledger::default(),
            overhead_bytes: u64::from(settings.overhead_bytes),
            now_ns: start_ns,
        })
    }

    /// Keeps a log from now on with a row for each flow and span of this many ns; see [`drain_log`](Self::drain_log).
    #[must_use]
    pub fn logged(mut self, every_ns: i64) -> Self {
        self.ledger.log = Some(FlowLog::new(every_ns));
        self
    }

    /// Hands a packet to the link.
    pub fn offer(&mut self, now_ns: i64, mut packet: Packet<T>) {
        self.advance(now_ns);
        packet.bytes = packet.bytes.max(SMALLEST_BYTES);
        self.ledger.offered(self.now_ns, packet.flow, packet.bytes, self.queue.bytes());
        if self.sender.is_none() {
            self.ledger.waited(self.now_ns, packet.flow, 0);
            return self.wire.add(self.now_ns, packet, false, 0, &mut self.ledger);
        }
        self.queue.add(self.now_ns, packet, &mut self.ledger);
        self.advance(now_ns);
    }

    /// Takes the next packet that has arrived by now, earliest first. Call it until there is none.
    pub fn poll(&mut self, now_ns: i64) -> Option<Delivery<T>> {
        self.advance(now_ns);
        self.wire.take(self.now_ns, &mut self.ledger)
    }

    /// When to poll next if nothing is offered until then; `None` where nothing is inside.
    pub fn next_ns(&self) -> Option<i64> {
        // What is sent later also arrives later than what passes already, but may arrive before what is held back.
        let sends = self.sends_next_ns().filter(|_| !self.wire.passes());
        self.wire.next_ns().into_iter().chain(sends).min()
    }

    /// What has happened so far.
    pub fn counters(&self) -> Counters {
        self.ledger.counters
    }

    /// The bytes that wait in the queue, the packet that is being sent not among them.
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Whether a packet that is offered now is sure not to be dropped for want of room: for those whose packets must not
    /// be lost.
    pub fn has_room(&self, bytes: u32) -> bool {
        let bytes = u64::from(bytes.max(SMALLEST_BYTES));
        let queued = self.queue.bytes() + bytes;
        queued <= self.queue.limit_bytes() && self.wire.has_room(queued)
    }

    /// When the next packet leaves the queue, if one waits.
    pub fn sends_next_ns(&self) -> Option<i64> {
        self.sender.as_ref().filter(|_| !self.queue.is_empty()).map(Sender::free_ns)
    }

    /// Takes the rows of the log whose span is over: oldest first, within a span by flow. Deliveries count when they are
    /// polled, so the rows are complete once everything due by now has been.
    pub fn drain_log(&mut self, now_ns: i64) -> impl Iterator<Item = FlowRow> + use<T> {
        self.advance(now_ns);
        let complete_ns = self.wire.next_ns().map_or(self.now_ns, |next_ns| next_ns.min(self.now_ns));
        self.ledger.log.as_mut().map(|log| log.drain(complete_ns)).into_iter().flatten()
    }

    /// Takes the rows that are still open as well: for the end of a run.
    pub fn finish_log(&mut self) -> impl Iterator<Item = FlowRow> + use<T> {
        self.ledger.log.as_mut().map(|log| log.drain(i64::MAX)).into_iter().flatten()
    }

    /// Sends what is due to be sent by now.
    fn advance(&mut self, now_ns: i64) {
        let now_ns = now_ns.max(self.now_ns);
        if let Some(sender) = &mut self.sender {
            while !self.queue.is_empty() {
                // It was free before only if the packet has come just now.
                let start_ns = sender.free_ns().max(self.now_ns);
                if start_ns > now_ns {
                    break;
                }
                let Some(head) = self.queue.take(start_ns, &mut self.ledger) else { break };
                let waited_ns = start_ns - head.since_ns;
                self.ledger.waited(start_ns, head.packet.flow, waited_ns);
                let left_ns = sender.send(start_ns, u64::from(head.packet.bytes) + self.overhead_bytes);
                self.wire.add(left_ns, head.packet, head.marked, waited_ns, &mut self.ledger);
            }
        }
        self.now_ns = now_ns;
    }
}
