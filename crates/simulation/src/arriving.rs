//! The customers of a simulation as they arrive: their instants, classes and service times.
//!
//! All three are drawn some hundred customers ahead, each kind in its own loop, which is much faster than one customer after
//! the other. Each kind has its own stream of random numbers, so the results are the same.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kendall_station::{Arrivals, Attendance, Crowd, Instants, Law, Station};
use kendall_stats::random::{Purpose, Rng, stream, unit};

use super::Instant;
use super::trace::{Fate, Traced};

/// The number of customers that are drawn ahead.
const AHEAD: usize = 512;

/// A customer at its arrival.
#[derive(Clone, Copy, Debug)]
pub(super) struct Customer {
    /// The customer's number in order of arrival, from 0.
    pub(super) index: u64,
    pub(super) arrival_s: f64,
    pub(super) service_s: f64,
    pub(super) class: u32,
    /// The user that sends the request, of a session or of a population that changes.
    user: u32,
}

impl Customer {
    /// The trace entry of a customer that finds the station full.
    pub(super) fn lost(&self, run: u64) -> Traced {
        Traced {
            run,
            index: self.index,
            class: self.class as usize,
            arrival_s: self.arrival_s,
            service_s: self.service_s,
            started_s: None,
            departure_s: self.arrival_s,
            waiting_s: 0.0,
            server: None,
            fate: Fate::Lost,
        }
    }
}

/// The next customers of an open stream.
pub(super) struct Ahead<'a> {
    /// The number of the first one.
    pub(super) index: u64,
    pub(super) arrival_s: &'a [f64],
    pub(super) service_s: &'a [f64],
    /// Empty without classes.
    pub(super) class: &'a [u32],
}

/// The stream of customers: open, closed or partly open.
pub(super) struct Arriving<'a> {
    source: Source<'a>,
    /// Cumulated shares and the service law of each class; one entry without classes.
    classes: Vec<(f64, &'a Law)>,
    /// Whether all classes have the same law.
    alike: bool,
    /// The number of customers that may still arrive, and the number that have.
    left: u64,
    taken: u64,
    class_rng: Rng,
    service_rng: Rng,
    /// Service time and class of those drawn ahead, and how many of them have come. No classes where there is one.
    service_s: Vec<f64>,
    class: Vec<u32>,
    at: usize,
}

enum Source<'a> {
    /// The instants drawn ahead, in step with service time and class; fewer at the end of a trace.
    Open {
        instants: Instants<'a>,
        arrival_s: Vec<f64>,
    },
    Closed {
        think: &'a Law,
        rng: Rng,
        due: BinaryHeap<Reverse<Instant>>,
    },
    /// The users, each due at its own instant if it comes again.
    Attended {
        users: &'a Attendance,
        rng: Rng,
        due: BinaryHeap<Reverse<(Instant, u32)>>,
    },
    Sessions(Crowd<'a>),
}

impl<'a> Arriving<'a> {
    /// Opens the streams. The users of a closed population begin by thinking.
    pub(super) fn new(station: &'a Station, seed: u64) -> Self {
        Self::limited(station, seed, u64::MAX)
    }

    /// The arrivals of the station, limited to this many customers.
    pub(super) fn limited(station: &'a Station, seed: u64, customers: u64) -> Self {
        let source = match &station.arrivals {
            Arrivals::Closed { population, think } => {
                let mut rng = stream(seed, Purpose::Think, 0);
                let due = (0..*population).map(|_| Reverse(Instant(think.sample(&mut rng)))).collect();
                Source::Closed { think, rng, due }
            }
            Arrivals::Attended(users) => {
                let mut rng = stream(seed, Purpose::Think, 0);
                let mut first = |user| {
                    let due_s = users.due_s(user, 0.0, || users.think.sample(&mut rng))?;
                    Some(Reverse((Instant(due_s), user)))
                };
                let due = (0..users.most()).filter_map(&mut first).collect();
                Source::Attended { users, rng, due }
            }
            Arrivals::Sessions(sessions) => Source::Sessions(Crowd::new(sessions, seed)),
            open => {
                let instants = open.instants(seed).expect("open streams and traces have instants");
                Source::Open { instants, arrival_s: Vec::new() }
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
        let ahead = customers.min(AHEAD as u64) as usize;
        let mut arriving = Self {
            source,
            alike: classes.iter().all(|class| class.1 == classes[0].1),
            class: vec![0; if station.classes.is_empty() { 0 } else { ahead }],
            classes,
            left: customers,
            taken: 0,
            class_rng: stream(seed, Purpose::Class, 0),
            service_rng: stream(seed, Purpose::Service, 0),
            service_s: vec![0.0; ahead],
            at: 0,
        };
        arriving.draw();
        arriving
    }

    /// Draws the next ones, once all that were drawn have come.
    fn draw(&mut self) {
        self.at = 0;
        if let Source::Open { instants, arrival_s } = &mut self.source {
            arrival_s.resize(self.service_s.len(), 0.0);
            let count = instants.fill(arrival_s);
            arrival_s.truncate(count);
        }
        if self.classes.len() > 1 {
            // Counted without a branch on the drawn class; a local copy of the generator stays in registers.
            let mut rng = self.class_rng.clone();
            let bounds = &self.classes[..self.classes.len() - 1];
            for class in &mut self.class {
                let u = unit(&mut rng);
                *class = bounds.iter().map(|bound| u32::from(bound.0 <= u)).sum();
            }
            self.class_rng = rng;
        }
        if self.alike {
            self.classes[0].1.fill(&mut self.service_rng, &mut self.service_s);
        } else {
            for (service_s, &class) in self.service_s.iter_mut().zip(&self.class) {
                *service_s = self.classes[class as usize].1.sample(&mut self.service_rng);
            }
        }
    }

    /// When the next customer arrives; `None` if none will, unless a user returns earlier.
    #[inline]
    pub(super) fn next_s(&self) -> Option<f64> {
        match &self.source {
            _ if self.left == 0 => None,
            Source::Open { arrival_s, .. } => arrival_s.get(self.at).copied(),
            Source::Closed { due, .. } => due.peek().map(|due| due.0.0),
            Source::Attended { due, .. } => due.peek().map(|due| due.0.0.0),
            Source::Sessions(crowd) => crowd.next_s(),
        }
    }

    /// The next customer, as it arrives.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Customer> {
        let arrival_s = self.next_s()?;
        let mut user = 0;
        match &mut self.source {
            Source::Open { .. } => {}
            Source::Closed { due, .. } => drop(due.pop()),
            Source::Attended { due, .. } => user = due.pop()?.0.1,
            Source::Sessions(crowd) => user = crowd.take()?.1,
        }
        let customer = Customer {
            index: self.taken,
            arrival_s,
            class: self.class.get(self.at).copied().unwrap_or(0),
            service_s: self.service_s[self.at],
            user,
        };
        self.passed(1);
        Some(customer)
    }

    /// The next customers of an open stream, up to `most` and as many as are drawn; empty at its end.
    pub(super) fn ahead(&self, most: u64) -> Ahead<'_> {
        let Source::Open { arrival_s, .. } = &self.source else {
            unreachable!("only an open stream knows its next customers")
        };
        let here = arrival_s.len() - self.at;
        let these = self.at..self.at + (here as u64).min(most).min(self.left) as usize;
        Ahead {
            index: self.taken,
            arrival_s: &arrival_s[these.clone()],
            service_s: &self.service_s[these.clone()],
            class: if self.class.is_empty() { &[] } else { &self.class[these] },
        }
    }

    /// Advances by this many customers.
    #[inline]
    pub(super) fn passed(&mut self, customers: usize) {
        self.left -= customers as u64;
        self.taken += customers as u64;
        self.at += customers;
        if self.at == self.service_s.len() {
            self.draw();
        }
    }

    /// Ends a customer's stay, served or rejected: a user of a closed population thinks again; one that is to leave, or that
    /// has made the last request of its session, is gone.
    #[inline]
    pub(super) fn left(&mut self, customer: &Customer, now_s: f64) {
        match &mut self.source {
            Source::Open { .. } => {}
            Source::Closed { think, rng, due } => due.push(Reverse(Instant(now_s + think.sample(rng)))),
            Source::Attended { users, rng, due } => {
                let due_s = users.due_s(customer.user, now_s, || users.think.sample(rng));
                due.extend(due_s.map(|due_s| Reverse((Instant(due_s), customer.user))));
            }
            Source::Sessions(crowd) => crowd.answered(customer.user, now_s, 0.0),
        }
    }
}
