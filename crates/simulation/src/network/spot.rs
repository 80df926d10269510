//! A network in the form of the event loop: indices instead of names.

use kendall_station::{
    Arrivals, Batch, Breakdown, Class, Clock, Conditions, Interrupted, Job, Knows, Law, Network, Node,
    Population, Routes, Servers, Station, WhenFull,
};

use crate::events;
use crate::settling::LOSSES;

/// Transitions: cumulated probabilities and nodes. A draw beyond the last one leaves the network.
pub(super) type Transitions = Vec<(f64, u32)>;

/// One node.
pub(super) struct Spot {
    pub(super) name: String,
    /// The node as a station, for the observer and the queue; its arrivals are the expected ones.
    pub(super) station: Station,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) room: u64,
    pub(super) blocks: bool,
    /// The jobs of each class, before any service.
    pub(super) jobs: Vec<Job>,
    /// Whether service can make a customer of some class less urgent, which only matters to Gittins.
    pub(super) ages: bool,
    /// By class.
    pub(super) transitions: Vec<Transitions>,
    /// By class.
    services: Vec<Law>,
}

/// The network by indices.
pub(super) struct Layout {
    pub(super) spots: Vec<Spot>,
    /// Cumulated shares of the classes.
    pub(super) shares: Vec<f64>,
    pub(super) users: Option<Users>,
    /// The network as if it were one station, for the observer.
    pub(super) overall: Station,
    /// The utilisation of its busiest node, if no customer is lost.
    pub(super) utilisation: f64,
    /// Whether that utilisation, from 1 on, means that it never settles.
    pub(super) loses_nobody: bool,
    /// The number of customers that a network may hold while it is still filling: its servers, and those that arrive during a
    /// service, a repair, a setup, or some delays before a retry.
    pub(super) filling: f64,
    /// The period of its arrivals, if they have one.
    pub(super) period_s: Option<f64>,
}

pub(super) struct Users {
    pub(super) count: u32,
    pub(super) think: Law,
    pub(super) enter: Transitions,
}

impl Spot {
    fn of(network: &Network, node: &Node) -> Self {
        let class = |class: &kendall_station::RoutedClass| Class {
            name: class.name.clone(),
            share: class.share,
            weight: class.weight,
            service: node.services.get(&class.name).cloned(),
        };
        let station = Station {
            capacity: node.capacity,
            discipline: node.discipline,
            classes: network.classes.iter().map(class).collect(),
            conditions: node.conditions.clone(),
            ..Station::new(Arrivals::poisson(1.0), node.service.clone(), node.servers)
        };
        let jobs = events::jobs(&station);
        let classes = network.classes.len().max(1);
        let own = |class: usize| station.classes.get(class).and_then(|class| class.service.clone());
        Self {
            name: node.name.clone(),
            arrivals: node.arrivals.clone(),
            room: node.capacity.unwrap_or(u64::MAX),
            blocks: node.when_full == WhenFull::Block,
            ages: node.discipline.knows() == Knows::WeightAndLaw && jobs.iter().any(events::loses_urgency),
            jobs,
            transitions: (0..classes)
                .map(|class| transitions(network, network.routes(class), &node.name))
                .collect(),
            services: (0..classes).map(|class| own(class).unwrap_or_else(|| node.service.clone())).collect(),
            station,
        }
    }

    /// Sets the number of arrivals and the work that the observer expects, by which it judges how soon the node settles. Users
    /// or an overload limit it.
    fn expect(&mut self, users: Option<&Population>, rate_per_s: f64, work: f64) {
        if let Some(users) = users {
            self.station.arrivals = Arrivals::Closed { population: users.count, think: users.think.clone() };
        } else if work >= f64::from(self.station.servers.get()) || rate_per_s <= 0.0 {
            self.station.capacity.get_or_insert(u64::MAX);
        } else {
            self.station.arrivals = Arrivals::poisson(rate_per_s);
        }
    }

    pub(super) fn conditions(&self) -> &Conditions {
        &self.station.conditions
    }

    pub(super) fn service(&self, class: usize) -> &Law {
        &self.services[class]
    }

    pub(super) fn operating_clock(&self) -> bool {
        let operating = |breakdown: &Breakdown| breakdown.clock == Clock::Operating;
        self.conditions().breakdown.as_ref().is_some_and(operating)
    }

    /// An estimate of how long customers can gather without being served.
    fn longest_absence_s(&self) -> f64 {
        const SOME: u32 = 4;
        let Conditions { retry, breakdown, setup, .. } = self.conditions();
        let delays_s = retry.as_ref().map_or(0.0, |retry| {
            let most = retry.most.unwrap_or(SOME).min(SOME);
            (0..most).map(|i| retry.after.mean_s(i)).sum()
        });
        let repair_s = breakdown.as_ref().map_or(0.0, |breakdown| breakdown.repair.mean_s());
        delays_s + repair_s + setup.as_ref().map_or(0.0, |setup| setup.time.mean_s())
    }

    /// Whether a customer can leave it unserved, for good or for a while.
    fn may_lose(&self) -> bool {
        let loses = |breakdown: &Breakdown| breakdown.then == Interrupted::Lose;
        let turns_away = self.room < u64::MAX && (!self.blocks || self.arrivals.is_some());
        turns_away
            || self.conditions().patience.is_some()
            || self.conditions().breakdown.as_ref().is_some_and(loses)
    }
}

fn transitions(network: &Network, routes: &Routes, from: &str) -> Transitions {
    let row = routes.get(from).into_iter().flatten();
    cumulated(network, row)
}

fn cumulated<'a>(network: &Network, row: impl Iterator<Item = (&'a String, &'a f64)>) -> Transitions {
    let mut sum = 0.0;
    let mut transitions = Transitions::new();
    for (name, &chance) in row {
        sum += chance;
        if let Some(node) = network.index(name).filter(|_| chance > 0.0) {
            // A sum that is 1 except for rounding counts as 1, so that every customer goes on.
            transitions.push((if sum > 1.0 - 1e-9 { f64::INFINITY } else { sum }, node as u32));
        }
    }
    transitions
}

impl Layout {
    pub(super) fn of(network: &Network) -> Self {
        let mut spots: Vec<Spot> = network.nodes.iter().map(|node| Spot::of(network, node)).collect();
        let flows = network.flows();
        // The work that arrives at each node, in seconds of a server per second or, if closed, per request.
        let work = |i: usize| -> f64 {
            let served =
                flows.iter().enumerate().map(|(class, flow)| flow[i] * spots[i].service(class).mean_s());
            served.sum::<f64>() * spots[i].conditions().breakdown.as_ref().map_or(1.0, Breakdown::stretch)
        };
        let work: Vec<f64> = (0..spots.len()).map(work).collect();
        for (i, spot) in spots.iter_mut().enumerate() {
            let rate_per_s = flows.iter().map(|flow| flow[i]).sum();
            spot.expect(network.population.as_ref(), rate_per_s, work[i]);
        }
        let load = |i: usize| work[i] / f64::from(spots[i].station.servers.get());
        let busiest = (0..spots.len()).max_by(|&a, &b| load(a).total_cmp(&load(b))).unwrap_or(0);
        let accumulating = |(i, spot): (usize, &Spot)| {
            flows.iter().map(|flow| flow[i]).sum::<f64>() * spot.longest_absence_s()
        };
        let users = network.population.as_ref().map(|users| Users {
            count: users.count,
            think: users.think.clone(),
            enter: cumulated(network, users.enter.iter()),
        });
        let servers = spots.iter().map(|spot| spot.station.servers.get()).fold(0, u32::saturating_add);
        let mut sum = 0.0;
        let mut cumulate = |share: f64| {
            sum += share;
            sum
        };
        let period = |spot: &Spot| match &spot.arrivals {
            Some(Arrivals::Varying(profile)) => profile.period_s,
            _ => None,
        };
        Self {
            shares: network.classes.iter().map(|class| cumulate(class.share)).collect(),
            overall: as_one_station(&spots, network, &work, busiest, servers),
            utilisation: if users.is_some() { 0.0 } else { load(busiest) },
            loses_nobody: !spots.iter().any(Spot::may_lose),
            filling: f64::from(servers)
                + work.iter().sum::<f64>()
                + spots.iter().enumerate().map(accumulating).sum::<f64>(),
            period_s: spots.iter().find_map(period),
            users,
            spots,
        }
    }

    /// Whether all arrivals come from traces.
    pub(super) fn is_trace(&self) -> bool {
        matches!(self.overall.arrivals, Arrivals::Trace { .. })
    }

    /// The instant of the last arrival, if there is one and it is not that of a trace.
    pub(super) fn ends_s(&self) -> Option<f64> {
        let ends = |arrivals: &Arrivals| match arrivals {
            Arrivals::Varying(profile) if profile.period_s.is_none() => {
                profile.points.last().filter(|last| last.1 == 0.0).map(|last| last.0)
            }
            _ => None,
        };
        let streams = || self.spots.iter().filter_map(|spot| spot.arrivals.as_ref());
        let endless = |arrivals| !matches!(arrivals, &Arrivals::Trace { .. }) && ends(arrivals).is_none();
        if self.users.is_some() || streams().any(endless) {
            return None;
        }
        streams().filter_map(ends).max_by(f64::total_cmp)
    }
}

/// The network as one station with the utilisation of its busiest node, which decides how soon it settles.
fn as_one_station(spots: &[Spot], network: &Network, work: &[f64], busiest: usize, servers: u32) -> Station {
    let of = &spots[busiest].station;
    let servers = Servers::new(servers).unwrap_or(Servers::MIN);
    let rate_per_s: f64 = network.nodes.iter().map(Node::rate_per_s).sum();
    let streams: Vec<&Arrivals> = spots.iter().filter_map(|spot| spot.arrivals.as_ref()).collect();
    let traces = !streams.is_empty() && streams.iter().all(|stream| matches!(stream, Arrivals::Trace { .. }));
    let arrivals = match (&network.population, streams.as_slice()) {
        (Some(users), _) => Arrivals::Closed { population: users.count, think: users.think.clone() },
        (None, &[only]) => match only {
            Arrivals::Open { gap } => Arrivals::Open { gap: gap.scaled(gap_stretch(spots)) },
            other => other.clone(),
        },
        (None, [first, ..]) if traces => (*first).clone(),
        _ => Arrivals::poisson(rate_per_s),
    };
    let load = work[busiest] / f64::from(of.servers.get());
    let mean_s = match network.population {
        Some(_) => work.iter().sum::<f64>(),
        None => load * f64::from(servers.get()) / rate_per_s,
    };
    let service = of.service_overall();
    let service = if service.mean_s() > 0.0 && mean_s > 0.0 && mean_s.is_finite() {
        service.with_mean(mean_s)
    } else {
        Law::Constant { mean_s: 1.0 }
    };
    let plain = |class: &Class| Class { service: None, ..class.clone() };
    Station {
        // A station with a limit relaxes sooner, and its losses keep it from growing.
        capacity: (load >= 1.0).then_some(LOSSES),
        classes: of.classes.iter().map(plain).collect(),
        ..Station::new(arrivals, service, servers)
    }
}

/// The gap between single customers over that between batches.
fn gap_stretch(spots: &[Spot]) -> f64 {
    let batch =
        spots.iter().find(|spot| spot.arrivals.is_some()).and_then(|spot| spot.conditions().batch.as_ref());
    1.0 / batch.map_or(1.0, Batch::mean)
}
