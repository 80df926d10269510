//! Candidate stations: which there are, the service times that each implies, and the response times that each gives.

use kendall_evidence::{Rules, Visit, departures};
use kendall_station::{Discipline, Servers};

use crate::block::Block;
use crate::implied::{in_order_s, in_turn_s, one_by_one_s, shared_s, together_s};
use crate::observed::{Capacity, Conditions, KnownStation, Level, Observed};
use crate::order::{
    Order, Shared, Speed, departures_in_turn_s, departures_s, population_in_order_s, population_s,
    serve_in_batches, serve_together,
};

/// A station that may be the server: how many servers, in which order they serve, and the time that requests spend elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) order: Order,
    pub(crate) servers: u32,
    pub(crate) delay_s: f64,
}

/// The candidates that can be: service times no longer than responses, and capacity as measured. All with several delays, if the
/// server's timestamps do not report it.
pub(crate) fn candidates(observed: &Observed) -> Vec<Candidate> {
    const SERVERS: [u32; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64];
    /// A candidate whose mean service time is this many times the lowest level's mean response is impossible.
    const LONGER: f64 = 1.25;
    if observed.is_stamped()
        && let Some(KnownStation { servers, discipline, .. }) = &observed.known
    {
        let outside = observed.levels.iter().flat_map(Level::counted).filter_map(|request| request.stamp);
        let outside_s: Vec<f64> = outside.map(|stamp| stamp.outside_s).collect();
        let delay_s = kendall_stats::mean(&outside_s);
        return vec![Candidate { order: Order::OneQueue(*discipline), servers: servers.get(), delay_s }];
    }
    let mean_s = observed.lowest().mean_response_s();
    let can_be = |servers: &u32| match observed.capacity {
        Some(Capacity { per_s, .. }) => f64::from(*servers) / per_s <= LONGER * mean_s,
        // The highest level is below saturation.
        None => {
            f64::from(*servers)
                > observed.highest().rate_per_s * 0.5 * (mean_s - observed.shortest_s()).max(0.0)
        }
    };
    let (mut counts, disciplines): (Vec<u32>, _) = match &observed.known {
        Some(known) => (vec![known.servers.get()], vec![known.discipline]),
        None => (
            SERVERS.into_iter().filter(can_be).collect(),
            vec![Discipline::Fifo, Discipline::ProcessorSharing],
        ),
    };
    if counts.is_empty() {
        counts.push(1);
    }
    let stations = counts.into_iter().flat_map(|servers| {
        disciplines.iter().map(move |&discipline| Candidate {
            order: Order::OneQueue(discipline),
            servers,
            delay_s: 0.0,
        })
    });
    let step_s = observed.delay_step_s();
    stations
        .flat_map(|station| (0..=DELAYS).map(move |part| station.delayed(f64::from(part) * step_s)))
        .collect()
}

/// Delays that are tried at first, from none to the shortest response times.
const DELAYS: u32 = 8;

/// Orders of several queues are tried with at most this many servers.
const MOST_QUEUES: u32 = 8;
/// A speed that depends on the number of requests present is tried where throughput falls by more than this, and twice the drift.
const LEAST_FALL: f64 = 0.15;
/// Limits that are tried, in times of the servers.
const LIMITS: [u32; 3] = [2, 4, 8];

impl Candidate {
    /// Other orders that the same data may have, with the same delay: several queues, batches, a limit on the requests in service, a speed
    /// that depends on their number.
    pub(crate) fn variants(self, observed: &Observed) -> Vec<Self> {
        if observed.known.is_some() {
            return Vec::new();
        }
        let with = |order, servers| Self { order, servers, ..self };
        let mut variants = Vec::new();
        if (2..=MOST_QUEUES).contains(&self.servers) {
            variants.extend(
                [Order::Turns, Order::Scattered, Order::ScatteredFifo].map(|order| with(order, self.servers)),
            );
        }
        if self.servers == 1 {
            variants.extend([Order::Batches, Order::Together].map(|order| with(order, 1)));
        }
        variants.extend(LIMITS.map(|times| with(Order::AtMost(times * self.servers), self.servers)));
        // Noise of a curve would be taken for a fall that no server has.
        let falls = observed.fall() > LEAST_FALL.max(2.0 * observed.capacity_sd());
        if falls && Speed::of_populations(&observed.closed, self.delay_s).is_some() {
            variants.extend([Order::SharedSpeed, Order::SerialSpeed].map(|order| with(order, 1)));
        }
        variants
    }

    /// The order with another number of servers, each of which has as many threads as before.
    pub(crate) fn order_with(self, servers: u32) -> Order {
        match self.order {
            Order::AtMost(limit) => Order::AtMost((limit / self.servers).saturating_mul(servers)),
            // Several servers share the batches, and so come near to one queue.
            Order::Batches | Order::Together if servers > 1 => Order::OneQueue(Discipline::Fifo),
            order => order,
        }
    }

    /// The most seconds of service per second.
    pub(crate) fn width(self, conditions: &Conditions<'_>) -> f64 {
        match self.shared(conditions) {
            Some(shared) => shared.speed.full(),
            None => f64::from(self.servers),
        }
    }

    /// The station, where requests share its servers.
    fn shared(self, conditions: &Conditions<'_>) -> Option<Shared> {
        let of_servers = || Speed::of_servers(f64::from(self.servers));
        let measured = || {
            let speed = Speed::of_populations(conditions.closed, self.delay_s);
            speed.map_or_else(of_servers, |speed| speed.times(self.servers))
        };
        match self.order {
            Order::OneQueue(discipline) if discipline.shares() => {
                Some(Shared { limit: usize::MAX, speed: of_servers() })
            }
            Order::OneQueue(_) | Order::Turns | Order::Batches | Order::Together => None,
            Order::AtMost(limit) => Some(Shared { limit: limit as usize, speed: of_servers() }),
            Order::Scattered => Some(Shared { limit: usize::MAX, speed: Speed::of_scattered(self.servers) }),
            Order::ScatteredFifo => {
                Some(Shared { limit: self.servers as usize, speed: Speed::of_scattered(self.servers) })
            }
            Order::SharedSpeed => Some(Shared { limit: usize::MAX, speed: measured() }),
            Order::SerialSpeed => Some(Shared { limit: self.servers as usize, speed: measured() }),
        }
    }

    /// The service times that this station implies, of all requests of a block in the order of sending; exact for every order but those
    /// that weigh requests, which count as first come first served.
    pub(crate) fn implied_s(self, block: &Block, conditions: &Conditions<'_>) -> Vec<f64> {
        match self.shared(conditions) {
            Some(shared) => shared_s(block, &shared, self.delay_s),
            None if self.order == Order::Turns => in_turn_s(block, self.servers as usize, self.delay_s),
            None if self.order == Order::Together => together_s(block, self.delay_s),
            None if self.servers == 1 => one_by_one_s(block, self.delay_s),
            None => in_order_s(block, self.servers as usize, self.delay_s),
        }
    }

    /// The response times since sending of visits, delay included.
    pub(crate) fn responses_s(self, visits: &[Visit], conditions: &Conditions<'_>) -> Vec<f64> {
        let ends_s = match (self.shared(conditions), self.order) {
            (Some(shared), _) => departures_s(visits, |visits, ended| shared.serve(visits, ended)),
            (None, Order::Batches) => departures_s(visits, serve_in_batches),
            (None, Order::Together) => departures_s(visits, serve_together),
            (None, Order::OneQueue(discipline)) => {
                let servers = Servers::new(self.servers).unwrap_or(Servers::MIN);
                let ends_s = departures(visits, &Rules::new(servers, discipline, conditions.classes));
                ends_s.into_iter().map(|end_s| end_s.unwrap_or(f64::INFINITY)).collect()
            }
            (None, _) => departures_in_turn_s(visits, self.servers as usize),
        };
        std::iter::zip(ends_s, visits).map(|(end_s, visit)| end_s - visit.arrival_s + self.delay_s).collect()
    }

    /// The response times of a closed population without think time whose requests take these service times, in seconds, in the order in
    /// which they end. The order is one that [serves populations](Order::serves_populations).
    pub(crate) fn population_s(
        self,
        users: usize,
        services_s: &[f64],
        conditions: &Conditions<'_>,
    ) -> Vec<f64> {
        let (servers, in_turn) = (self.servers as usize, self.order == Order::Turns);
        match self.shared(conditions) {
            Some(shared) => {
                population_s(users, services_s, self.delay_s, |visits, ended| shared.serve(visits, ended))
            }
            None if self.order == Order::Batches => {
                population_s(users, services_s, self.delay_s, serve_in_batches)
            }
            None if self.order == Order::Together => {
                population_s(users, services_s, self.delay_s, serve_together)
            }
            None => population_in_order_s(users, services_s, self.delay_s, servers, in_turn),
        }
    }

    fn delayed(self, delay_s: f64) -> Self {
        Self { delay_s, ..self }
    }

    /// The candidates with delays between those tried at first.
    pub(crate) fn neighbours(self, observed: &Observed) -> impl Iterator<Item = Self> {
        let step_s = observed.delay_step_s();
        let most_s = step_s * f64::from(DELAYS);
        [-0.75, -0.5, -0.25, 0.25, 0.5, 0.75]
            .into_iter()
            .map(move |part| self.delay_s + part * step_s)
            .filter(move |delay_s| *delay_s > 0.0 && *delay_s < most_s)
            .map(move |delay_s| self.delayed(delay_s))
    }
}

impl Observed {
    /// A response time that hardly any request undercuts, in seconds.
    fn shortest_s(&self) -> f64 {
        let lowest = self.lowest().counted().map(|request| request.completed_s - request.sent_s);
        let mut responses_s: Vec<f64> = lowest.collect();
        responses_s.sort_by(f64::total_cmp);
        responses_s[responses_s.len() / 50]
    }

    fn delay_step_s(&self) -> f64 {
        0.995 * self.shortest_s() / f64::from(DELAYS)
    }
}
