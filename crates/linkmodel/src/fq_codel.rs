//! Flow queue CoDel (Høiland-Jørgensen, McKenney, Täht, Gettys and Dumazet, RFC 8290): flows alternate by deficit round
//! robin, new ones first, and CoDel keeps the line of each one short.

use std::collections::VecDeque;

use crate::codel::{CoDel, Controller};
use crate::counters::Ledger;
use crate::drops::Cause;
use crate::line::{Line, Waiting};
use crate::packet::Packet;
use kendall_stats::random::mix;

/// The number of lines (RFC 8290, section 5.2.3: the default of its implementations).
pub const LINES: usize = 1024;
/// The most packets that an overflow drops at once (section 4.1.3).
const BATCH: usize = 64;

/// The parameters of FQ-CoDel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDel {
    /// CoDel's, for each line.
    pub codel: CoDel,
    /// The number of bytes that a flow may send in its turn.
    pub quantum_bytes: u32,
}

impl Default for FqCoDel {
    /// A full Ethernet frame in a turn (RFC 8290, section 5.2.2).
    fn default() -> Self {
        Self { codel: CoDel::default(), quantum_bytes: 1514 }
    }
}

/// Whether the line of a flow is in one of the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ListState {
    Idle,
    Listed,
}

#[derive(Debug)]
struct Flow<T> {
    line: Line<T>,
    controller: Controller,
    /// The bytes that it may still send in this turn.
    deficit: i64,
    state: ListState,
}

/// The lines of all flows.
#[derive(Debug)]
pub(crate) struct Flows<T> {
    settings: FqCoDel,
    flows: Vec<Flow<T>>,
    new: VecDeque<u16>,
    old: VecDeque<u16>,
    bytes: u64,
    perturbation: u64,
}

impl<T> Flows<T> {
    pub(crate) fn new(settings: FqCoDel, seed: u64) -> Self {
        let flow = || Flow {
            line: Line::new(),
            controller: Controller::new(settings.codel),
            deficit: 0,
            state: ListState::Idle,
        };
        Self {
            settings,
            flows: (0..LINES).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            perturbation: seed,
        }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds a packet to the line of its flow (section 4.1); then drops from the longest line while there are too many.
    pub(crate) fn add(&mut self, now_ns: i64, packet: Packet<T>, limit_bytes: u64, ledger: &mut Ledger) {
        let index = mix(packet.flow ^ self.perturbation) as usize % LINES;
        let flow = &mut self.flows[index];
        self.bytes += u64::from(packet.bytes);
        flow.line.add(now_ns, packet);
        if flow.state == ListState::Idle {
            flow.state = ListState::Listed;
            flow.deficit = i64::from(self.settings.quantum_bytes);
            self.new.push_back(index as u16);
        }
        while self.bytes > limit_bytes {
            self.drop_from_longest(now_ns, ledger);
        }
    }

    /// Drops half of the longest line from its head, but at most a batch (section 4.1.3).
    fn drop_from_longest(&mut self, now_ns: i64, ledger: &mut Ledger) {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.line.bytes()).expect("there are lines");
        let enough_bytes = longest.line.bytes().div_ceil(2);
        let mut dropped_bytes = 0;
        for _ in 0..BATCH {
            let Some(head) = longest.line.take() else { break };
            dropped_bytes += u64::from(head.packet.bytes);
            ledger.dropped(now_ns, head.packet.flow, Cause::Overflow);
            if dropped_bytes >= enough_bytes {
                break;
            }
        }
        self.bytes -= dropped_bytes;
    }

    /// Takes the next packet (section 4.2).
    pub(crate) fn take(&mut self, now_ns: i64, ledger: &mut Ledger) -> Option<Waiting<T>> {
        loop {
            let (from_new, index) = match (self.new.front(), self.old.front()) {
                (Some(index), _) => (true, *index),
                (None, Some(index)) => (false, *index),
                (None, None) => return None,
            };
            let flow = &mut self.flows[usize::from(index)];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.settings.quantum_bytes);
                self.unlist(from_new);
                self.old.push_back(index);
                continue;
            }
            let before_bytes = flow.line.bytes();
            let head = flow.controller.take(now_ns, &mut flow.line, ledger);
            self.bytes -= before_bytes - flow.line.bytes();
            match head {
                Some(head) => {
                    flow.deficit -= i64::from(head.packet.bytes);
                    return Some(head);
                }
                // A flow that empties joins the old ones, so that it cannot stay new for ever.
                None if from_new && !self.old.is_empty() => {
                    self.unlist(from_new);
                    self.old.push_back(index);
                }
                None => {
                    flow.state = ListState::Idle;
                    self.unlist(from_new);
                }
            }
        }
    }

    fn unlist(&mut self, from_new: bool) {
        let list = if from_new { &mut self.new } else { &mut self.old };
        list.pop_front();
    }
}
