//! Processor sharing at a node, in a virtual time that advances by the service that each customer receives.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::until::Until;
use crate::Instant;

pub(super) struct Sharing {
    /// The service received by a customer that has been here since the node was last empty.
    each_s: f64,
    /// Customers by the reading of `each_s` at which they are done.
    active: BinaryHeap<Reverse<(Instant, u32)>>,
    /// The servers that serve them.
    pub(super) working: Vec<u32>,
    /// The event planned last, and how often plans have changed.
    until: Until,
    breaking: u32,
    plan: u32,
}

impl Sharing {
    pub(super) fn new() -> Self {
        Self {
            each_s: 0.0,
            active: BinaryHeap::new(),
            working: Vec::new(),
            until: Until::Done,
            breaking: 0,
            plan: 0,
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.active.len() as u64
    }

    pub(super) fn is_empty(&self) -> bool {
        self.active.is_empty()
    }

    pub(super) fn counts(&self, plan: u32) -> bool {
        self.plan == plan
    }

    /// The share of one server that each customer has, where this many serve.
    fn speed(&self, busy: u64) -> f64 {
        (busy as f64 / self.active.len() as f64).min(1.0)
    }

    pub(super) fn advance(&mut self, time_s: f64, busy: u64) {
        if self.active.is_empty() {
            // A fresh start keeps the virtual clock small, and therefore exact.
            self.each_s = 0.0;
        } else {
            self.each_s += time_s * self.speed(busy);
        }
    }

    pub(super) fn admit(&mut self, service_s: f64, who: u32) {
        self.active.push(Reverse((Instant(self.each_s + service_s), who)));
    }

    /// Takes a server out of work, and returns whether it worked.
    pub(super) fn stop(&mut self, server: u32) -> bool {
        let before = self.working.len();
        self.working.retain(|&working| working != server);
        self.working.len() < before
    }

    /// Plans the next departure or, if that is earlier, the breakdown of a server. `None` if there is no event.
    pub(super) fn plan(&mut self, now_s: f64, busy: u64, broken: Option<(f64, u32)>) -> Option<(f64, u32)> {
        self.plan = self.plan.wrapping_add(1);
        let done = self.active.peek()?.0.0.0;
        if busy == 0 {
            return None;
        }
        let done_s = now_s + (done - self.each_s).max(0.0) / self.speed(busy);
        self.until = Until::Done;
        match broken {
            Some((after_s, server)) if now_s + after_s < done_s => {
                (self.until, self.breaking) = (Until::Broken, server);
                Some((now_s + after_s, self.plan))
            }
            _ => Some((done_s, self.plan)),
        }
    }

    /// Handles the planned event: a departure, or the breakdown of a server.
    pub(super) fn happen(&mut self) -> Result<u32, u32> {
        if self.until == Until::Broken {
            return Err(self.breaking);
        }
        let Reverse((done, who)) = self.active.pop().expect("a departure was planned");
        self.each_s = done.0;
        Ok(who)
    }
}
