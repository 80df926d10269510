//! CoDel for real packets: the queue of a program that forwards them.

use crate::codel::{CoDel, Controller};
use crate::counters::Ledger;
use crate::drops::Cause;
use crate::line::Line;
use crate::packet::{Ecn, Packet};

/// A first-in, first-out queue of items under CoDel (RFC 8289), with a bound on its bytes. It reads no clock.
#[derive(Debug)]
pub struct CodelQueue<T> {
    controller: Controller,
    line: Line<T>,
    ledger: Ledger,
    most_bytes: u64,
}

impl<T> CodelQueue<T> {
    /// An empty queue that holds at most `most_bytes`.
    pub fn new(settings: CoDel, most_bytes: u64) -> Self {
        Self {
            controller: Controller::new(settings),
            line: Line::new(),
            ledger: Ledger::default(),
            most_bytes,
        }
    }

    /// Adds an item of a size at a time; drops it if the queue is full.
    pub fn push(&mut self, now_ns: i64, bytes: u32, item: T) {
        self.ledger.offered(now_ns, 0, bytes, self.line.bytes());
        if self.line.bytes() + u64::from(bytes) > self.most_bytes {
            self.ledger.dropped(now_ns, 0, Cause::Overflow);
        } else {
            self.line.add(now_ns, Packet { bytes, flow: 0, ecn: Ecn::NotCapable, item });
        }
    }

    /// Takes the oldest item that CoDel does not drop.
    pub fn pop(&mut self, now_ns: i64) -> Option<T> {
        let head = self.controller.take(now_ns, &mut self.line, &mut self.ledger)?;
        self.ledger.counters.inside -= 1;
        Some(head.packet.item)
    }

    /// The bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.line.bytes()
    }

    /// The number of items dropped up to now.
    pub fn dropped(&self) -> u64 {
        self.ledger.counters.dropped.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_the_newest_item() {
        let mut queue = CodelQueue::new(CoDel::default(), 25);
        (0..4).for_each(|item| queue.push(0, 10, item));
        assert_eq!((queue.pop(1), queue.pop(1), queue.pop(1)), (Some(0), Some(1), None));
        assert_eq!((queue.dropped(), queue.bytes()), (2, 0));
    }

    #[test]
    fn a_standing_queue_loses_packets() {
        let mut queue = CodelQueue::new(CoDel::default(), 1 << 20);
        // One packet a millisecond each way behind 50 that wait: each waits for 50 ms.
        for now in 0..50 {
            queue.push(now * 1_000_000, 1000, now);
        }
        for now in 50..1050 {
            queue.push(now * 1_000_000, 1000, now);
            queue.pop(now * 1_000_000);
        }
        assert!(queue.dropped() > 5, "{}", queue.dropped());
        assert!(queue.bytes() < 50_000);
    }
}
