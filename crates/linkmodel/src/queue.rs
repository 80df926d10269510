//! The queue of packets for a busy link: one line, one that CoDel keeps short, or one for each flow.

use crate::codel::{CoDel, Controller};
use crate::counters::Ledger;
use crate::drops::Cause;
use crate::fq_codel::{Flows, FqCoDel};
use crate::line::{Line, Waiting};
use crate::packet::Packet;

/// The management of the queue of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Aqm {
    /// First come, first served; a packet that finds it full is dropped.
    #[default]
    DropTail,
    /// A single queue, kept short by CoDel (RFC 8289).
    CoDel(CoDel),
    /// A line for each flow, in round robin, each kept short: RFC 8290.
    FqCoDel(FqCoDel),
}

/// The queue of a link, of at most this many bytes. The packet that is being sent no longer counts.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    limit_bytes: u64,
    order: Order<T>,
}

#[derive(Debug)]
enum Order<T> {
    Line(Line<T>),
    Controlled(Line<T>, Controller),
    Fair(Box<Flows<T>>),
}

impl<T> Queue<T> {
    pub(crate) fn new(limit_bytes: u64, aqm: Aqm, seed: u64) -> Self {
        let order = match aqm {
            Aqm::DropTail => Order::Line(Line::new()),
            Aqm::CoDel(codel) => Order::Controlled(Line::new(), Controller::new(codel)),
            Aqm::FqCoDel(settings) => Order::Fair(Box::new(Flows::new(settings, seed))),
        };
        Self { limit_bytes, order }
    }

    /// The bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.order {
            Order::Line(line) | Order::Controlled(line, _) => line.bytes(),
            Order::Fair(flows) => flows.bytes(),
        }
    }

    /// The limit of waiting bytes.
    pub(crate) fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Whether no packet waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Adds a packet, and drops it or others if not all fit.
    pub(crate) fn add(&mut self, now_ns: i64, packet: Packet<T>, ledger: &mut Ledger) {
        let full = self.bytes() + u64::from(packet.bytes) > self.limit_bytes;
        match &mut self.order {
            Order::Line(_) | Order::Controlled(..) if full => {
                ledger.dropped(now_ns, packet.flow, Cause::Overflow);
            }
            Order::Line(line) | Order::Controlled(line, _) => line.add(now_ns, packet),
            Order::Fair(flows) => flows.add(now_ns, packet, self.limit_bytes, ledger),
        }
    }

    /// Takes the packet to send next.
    pub(crate) fn take(&mut self, now_ns: i64, ledger: &mut Ledger) -> Option<Waiting<T>> {
        match &mut self.order {
            Order::Line(line) => line.take(),
            Order::Controlled(line, controller) => controller.take(now_ns, line, ledger),
            Order::Fair(flows) => flows.take(now_ns, ledger),
        }
    }
}
