//! One direction of one link: a queue, a sender and a wire in series.

use crate::counters::{Counters, Ledger};
use crate::fault::Fault;
use crate::log::{FlowLog, FlowRow};
use crate::packet::{Delivery, Packet};
use crate::queue::Queue;
use crate::random::{Purpose, derive};
use crate::rate::Sender;
use crate::settings::Settings;
use crate::wire::Wire;

/// The least size of a packet, an IPv4 header: so a limit on bytes is also one on packets.
pub const SMALLEST_BYTES: u32 = 20;

/// One direction of one link.
///
/// Packets enter through [`offer`](Self::offer) and leave through [`poll`](Self::poll). Every event inside has its exact
/// instant in virtual time, so neither the frequency nor the delay of polling changes the deliveries or their instants.
/// Instants are in ns on any one clock; one that is earlier than the last counts as the last.
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
    /// An empty link. Random draws come from the seed; a trace of rates begins at `start_ns`.
    ///
    /// # Errors
    ///
    /// Fails if the settings contradict each other or are out of bounds: see [`Settings::check`].
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

    /// Passes a packet to the link.
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

    /// Takes the next packet that has arrived by now, earliest first. Call it until it returns `None`.
    pub fn poll(&mut self, now_ns: i64) -> Option<Delivery<T>> {
        self.advance(now_ns);
        self.wire.take(self.now_ns, &mut self.ledger)
    }

    /// When to poll next if no packet is offered until then; `None` if the link is empty.
    pub fn next_ns(&self) -> Option<i64> {
        // A packet that is sent later also arrives later than those in transit, but may arrive before those that are
        // held back.
        let sends = self.sends_next_ns().filter(|_| !self.wire.passes());
        self.wire.next_ns().into_iter().chain(sends).min()
    }

    /// The counters up to now.
    pub fn counters(&self) -> Counters {
        self.ledger.counters
    }

    /// The bytes that wait in the queue, without the packet that is being sent.
    pub fn queue_bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Whether a packet that is offered now will certainly fit the queue: for callers whose packets must not be lost.
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
    /// polled, so the rows are complete once everything due by now was polled.
    pub fn drain_log(&mut self, now_ns: i64) -> impl Iterator<Item = FlowRow> + use<T> {
        self.advance(now_ns);
        let complete_ns = self.wire.next_ns().map_or(self.now_ns, |next_ns| next_ns.min(self.now_ns));
        self.ledger.log.as_mut().map(|log| log.drain(complete_ns)).into_iter().flatten()
    }

    /// Takes the open rows as well: for the end of a run.
    pub fn finish_log(&mut self) -> impl Iterator<Item = FlowRow> + use<T> {
        self.ledger.log.as_mut().map(|log| log.drain(i64::MAX)).into_iter().flatten()
    }

    /// Sends what is due to be sent by now.
    fn advance(&mut self, now_ns: i64) {
        let now_ns = now_ns.max(self.now_ns);
        if let Some(sender) = &mut self.sender {
            while !self.queue.is_empty() {
                // It was free before only if the packet has just arrived.
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
