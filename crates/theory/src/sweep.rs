//! One station or network under other loads: the curve on which a single answer lies.

use kendall_station::{Answer, Arrivals, Network, Population, Station};

use crate::plan::{Plan, plan};
use crate::{NetworkFormula, formula, network_formula};

/// The number of points of a curve.
const STEPS: u32 = 60;

/// The quantity that varies along a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Along {
    /// Arrivals per second.
    Rate,
    /// Users of a closed population.
    Users,
}

/// A curve over the load.
#[derive(Clone, Debug, PartialEq)]
pub struct Line<T> {
    /// The kind of load.
    pub along: Along,
    /// The given load.
    pub here: f64,
    /// Loads, ascending, with their answers; those without an answer are left out.
    pub points: Vec<(f64, T)>,
}

/// The formula's answer for the station under loads up to its capacity, or up to 1.5 times the given load if it has no limit; for a
/// closed population up to twice the users. `None` for a trace or a rate that changes.
pub fn sweep(station: &Station) -> Option<Line<Answer>> {
    let service_s = station.service_overall().mean_s();
    let most_per_s = f64::from(station.servers.get()) / service_s;
    match &station.arrivals {
        Arrivals::Open { .. } | Arrivals::Sessions(_) => {
            let here = station.arrivals.rate_per_s()?;
            let end = if station.capacity.is_some() { 1.5 * here.max(most_per_s) } else { most_per_s };
            let at = |rate_per_s: f64| {
                let arrivals = station.arrivals.at_rate(rate_per_s)?;
                formula(&Station { arrivals, ..station.clone() }).ok()
            };
            Some(Line { along: Along::Rate, here, points: along(rates(here, end), at) })
        }
        Arrivals::Closed { population, think } => {
            let at = |users: f64| {
                let arrivals = Arrivals::Closed { population: users as u32, think: think.clone() };
                formula(&Station { arrivals, ..station.clone() }).ok()
            };
            let here = f64::from(*population);
            Some(Line { along: Along::Users, here, points: along(users(*population), at) })
        }
        Arrivals::Trace { .. } | Arrivals::Varying(_) | Arrivals::Attended(_) => None,
    }
}

/// Sweeps a network: scales all arrivals from outside, or changes the number of users.
pub fn sweep_network(network: &Network) -> Option<Line<NetworkFormula>> {
    if let Some(population) = &network.population {
        let at = |users: f64| {
            let population = Some(Population { count: users as u32, ..population.clone() });
            network_formula(&Network { population, ..network.clone() }).ok()
        };
        let here = f64::from(population.count);
        return Some(Line { along: Along::Users, here, points: along(users(population.count), at) });
    }
    let here: f64 = network.nodes.iter().map(kendall_station::Node::rate_per_s).sum();
    let busiest =
        network_formula(network).ok()?.nodes.iter().map(|node| node.utilisation).fold(0.0, f64::max);
    let at = |rate_per_s: f64| {
        let mut scaled = network.clone();
        for node in &mut scaled.nodes {
            if let Some(Arrivals::Open { gap }) = &mut node.arrivals {
                *gap = gap.with_mean(gap.mean_s() * here / rate_per_s);
            }
        }
        network_formula(&scaled).ok()
    };
    Some(Line { along: Along::Rate, here, points: along(rates(here, here / busiest), at) })
}

/// The cost of a precision at other utilisations of an open station; few points if each takes a simulation.
pub fn sweep_plan(station: &Station, here: &Plan) -> Vec<(f64, Plan)> {
    let Arrivals::Open { gap } = &station.arrivals else { return Vec::new() };
    let steps = if here.basis == crate::Basis::Exact { 48 } else { 6 };
    let at = |step: u32| {
        let utilisation = 0.97 * f64::from(step) / f64::from(steps);
        let mean_s = gap.mean_s() * station.offered_utilisation()? / utilisation;
        let arrivals = Arrivals::Open { gap: gap.with_mean(mean_s) };
        Some((utilisation, plan(&Station { arrivals, ..station.clone() }, here.precision).ok()?))
    };
    (1..=steps).filter_map(at).collect()
}

fn along<T>(loads: impl Iterator<Item = f64>, at: impl Fn(f64) -> Option<T>) -> Vec<(f64, T)> {
    loads.filter_map(|load| Some((load, at(load)?))).collect()
}

/// Rates nearly up to the end, and up to the given rate: denser towards the end, where the curve is steep.
fn rates(here_per_s: f64, end_per_s: f64) -> impl Iterator<Item = f64> {
    let top_per_s = end_per_s * (here_per_s / end_per_s).clamp(0.99, 1.0);
    (1..=STEPS).map(move |step| top_per_s * (1.0 - (1.0 - f64::from(step) / f64::from(STEPS)).powi(2)))
}

/// Users up to twice these.
fn users(population: u32) -> impl Iterator<Item = f64> {
    let most = population.saturating_mul(2);
    let steps = most.min(STEPS);
    let mut last = 0;
    (1..=steps).filter_map(move |step| {
        let users = (f64::from(most) * f64::from(step) / f64::from(steps)).round() as u32;
        (std::mem::replace(&mut last, users) != users).then_some(f64::from(users))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::{Law, Servers};

    #[test]
    fn a_line_ends_where_the_queue_would_grow_and_passes_through_the_answer() {
        let service = Law::Exponential { mean_s: 0.1 };
        let station = Station::new(Arrivals::poisson(5.0), service, Servers::MIN);
        let line = sweep(&station).unwrap();
        assert_eq!((line.along, line.here, line.points.len()), (Along::Rate, 5.0, 60));
        for (rate_per_s, answer) in line.points {
            assert!((answer.response.mean_s.value * (10.0 - rate_per_s) - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn users_are_whole_and_each_comes_once() {
        assert_eq!(users(3).collect::<Vec<_>>(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let many: Vec<f64> = users(1000).collect();
        assert_eq!((many.len(), many[59]), (60, 2000.0));
        assert!(many.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
