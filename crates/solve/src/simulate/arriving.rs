//! The customers of a simulation as they arrive: when, of which class, and with how much service to receive.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kendall_station::random::{Purpose, Rng, stream};
use kendall_station::{Arrivals, Instants, Law, Station};

use super::Instant;

/// A customer at its arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Customer {
    pub(super) arrival_s: f64,
    pub(super) class: usize,
    pub(super) service_s: f64,
}

/// The stream of customers, open or closed.
pub(super) struct Arriving<'a> {
    source: Source<'a>,
    /// Cumulated shares and the service law of each class; one entry without classes.
    classes: Vec<(f64, &'a Law)>,
    /// How many may still come.
    left: u64,
    class_rng: Rng,
    service_rng: Rng,
}

enum Source<'a> {
    Open { instants: Instants<'a>, next_s: Option<f64> },
    Closed { think: &'a Law, rng: Rng, due: BinaryHeap<Reverse<Instant>> },
}

impl<'a> Arriving<'a> {
    /// Opens the streams. The users of a closed population begin by thinking.
    pub(super) fn new(station: &'a Station, seed: u64) -> Self {
        Self::limited(station, seed, u64::MAX)
    }

    /// The same, of so many customers.
    pub(super) fn limited(station: &'a Station, seed: u64, customers: u64) -> Self {
        let source = match &station.arrivals {
            Arrivals::Closed { population, think } => {
                let mut rng = stream(seed, Purpose::Think, 0);
                let due = (0..*population).map(|_| Reverse(Instant(think.sample(&mut rng)))).collect();
                Source::Closed { think, rng, due }
            }
            open => {
                let mut instants = open.instants(seed).expect("open streams and traces have instants");
                let next_s = instants.next();
                Source::Open { instants, next_s }
            }
        };
        let mut sum = 0.0;
        let mut classes: Vec<(f64, &Law)> = station
            .classes
            .iter()
            .map(|class| {
                sum += class.share;
                (sum, class.service.as_ref().unwrap_or(&station.service))
            })
            .collect();
        if classes.is_empty() {
            classes.push((1.0, &station.service));
        }
        Self {
            source,
            classes,
            left: customers,
            class_rng: stream(seed, Purpose::Class, 0),
            service_rng: stream(seed, Purpose::Service, 0),
        }
    }

    /// When the next customer arrives; `None` if none will, unless one returns before.
    pub(super) fn next_s(&self) -> Option<f64> {
        match &self.source {
            _ if self.left == 0 => None,
            Source::Open { next_s, .. } => *next_s,
            Source::Closed { due, .. } => due.peek().map(|due| due.0.0),
        }
    }

    /// The next customer, as it arrives.
    pub(super) fn take(&mut self) -> Option<Customer> {
        let arrival_s = match &mut self.source {
            Source::Open { instants, next_s } => std::mem::replace(next_s, instants.next())?,
            Source::Closed { due, .. } => due.pop()?.0.0,
        };
        self.left -= 1;
        let class = if self.classes.len() == 1 {
            0
        } else {
            const UNIT: Law = Law::Uniform { low_s: 0.0, high_s: 1.0 };
            let u = UNIT.sample(&mut self.class_rng);
            self.classes.partition_point(|class| class.0 <= u).min(self.classes.len() - 1)
        };
        let service_s = self.classes[class].1.sample(&mut self.service_rng);
        Some(Customer { arrival_s, class, service_s })
    }

    /// A customer has left, served or turned away: a user of a closed population thinks again.
    pub(super) fn left(&mut self, now_s: f64) {
        if let Source::Closed { think, rng, due } = &mut self.source {
            due.push(Reverse(Instant(now_s + think.sample(rng))));
        }
    }
}
