//! The shared state of all nodes of a running network: the time, the agenda, the customers, and the
//! observers.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use kendall_station::Ticket;

use super::watch::Watch;
use crate::Instant;

/// A future event. An event that carries a plan is void if the plans of its server have changed since.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The first event of a server in service: the end, being overtaken, or a breakdown.
    Serve { node: u32, server: u32, plan: u32 },
    /// The first event under processor sharing, of any customer or server.
    Share { node: u32, plan: u32 },
    /// A server breaks down by the calendar.
    Fail { node: u32, server: u32 },
    /// A server is repaired.
    Repair { node: u32, server: u32 },
    /// A server has been set up.
    SetUp { node: u32, server: u32, plan: u32 },
    /// A server without work is switched off.
    SwitchOff { node: u32, server: u32, plan: u32 },
    /// A customer that waits loses its patience.
    Impatience { customer: u32, epoch: u32 },
    /// A customer tries again.
    Return { customer: u32 },
    /// The next customers of an open stream come.
    Arrival { node: u32 },
    /// A user of a closed population ends its think time.
    Request,
}

struct Due {
    at: Instant,
    /// Arrivals come after all other events at the same instant; among the others, the one planned first.
    turn: u64,
    event: Event,
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> Ordering {
        self.at.cmp(&other.at).then(self.turn.cmp(&other.turn))
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Due {}

/// A customer in the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Customer {
    pub(super) class: u32,
    /// The node where it is, or to which it will return.
    pub(super) node: u32,
    /// The server that serves it or, where it is blocked, that it keeps.
    pub(super) server: u32,
    /// The customer's number in order of arrival.
    pub(super) index: u64,
    /// The instant at which the customer came from outside.
    pub(super) due_s: f64,
    /// The instant at which the customer was first served anywhere; not a number before.
    pub(super) started_s: f64,
    /// The instant at which the customer came to this node, in this attempt.
    pub(super) joined_s: f64,
    /// The service it needs here.
    pub(super) service_s: f64,
    /// The service it had at the nodes before.
    pub(super) served_s: f64,
    /// Retries of this visit.
    pub(super) retries: u32,
    /// A counter that voids its impatience.
    pub(super) epoch: u32,
    /// The customer's receipt from the queue.
    pub(super) ticket: Option<Ticket>,
    /// Whether the customer's service here has begun.
    pub(super) begun: bool,
    /// Whether the customer found no server ready, here and anywhere.
    pub(super) delayed_here: bool,
    pub(super) delayed: bool,
}

pub(super) struct Scene<'w> {
    pub(super) now_s: f64,
    pub(super) watch: &'w mut Watch,
    pub(super) customers: Vec<Customer>,
    vacant: Vec<u32>,
    agenda: BinaryHeap<Reverse<Due>>,
    turns: u64,
    /// Servers that serve, in all nodes.
    pub(super) busy: u64,
    /// Customers in the network, those that will try again included.
    pub(super) inside: u64,
}

impl<'w> Scene<'w> {
    pub(super) fn new(watch: &'w mut Watch) -> Self {
        Self {
            now_s: 0.0,
            watch,
            customers: Vec::new(),
            vacant: Vec::new(),
            agenda: BinaryHeap::new(),
            turns: 0,
            busy: 0,
            inside: 0,
        }
    }

    /// Plans an event some time from now.
    pub(super) fn plan(&mut self, after_s: f64, event: Event) {
        self.plan_at(self.now_s + after_s, event);
    }

    pub(super) fn plan_at(&mut self, at_s: f64, event: Event) {
        const LATE: u64 = 1 << 63;
        self.turns += 1;
        let late = if matches!(event, Event::Arrival { .. } | Event::Request) { LATE } else { 0 };
        self.agenda.push(Reverse(Due { at: Instant(at_s), turn: self.turns | late, event }));
    }

    /// Takes the next event off the agenda.
    pub(super) fn next(&mut self) -> Option<(f64, Event)> {
        self.agenda.pop().map(|Reverse(due)| (due.at.0, due.event))
    }

    /// Advances the time.
    pub(super) fn advance(&mut self, to_s: f64) {
        self.watch.overall.pass(to_s - self.now_s, self.inside as f64, self.busy as f64);
        self.now_s = to_s;
    }

    pub(super) fn enter(&mut self, customer: Customer) -> u32 {
        self.inside += 1;
        match self.vacant.pop() {
            Some(place) => {
                // The counter continues, so that events planned for the previous customer of this slot stay
                // void.
                let epoch = self.customers[place as usize].epoch;
                self.customers[place as usize] = Customer { epoch, ..customer };
                place
            }
            None => {
                self.customers.push(customer);
                (self.customers.len() - 1) as u32
            }
        }
    }

    pub(super) fn dismiss(&mut self, who: u32) {
        self.inside -= 1;
        self.vacant.push(who);
    }

    pub(super) fn of(&mut self, who: u32) -> &mut Customer {
        &mut self.customers[who as usize]
    }
}
