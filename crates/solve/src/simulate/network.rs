//! The simulation of networks, and of stations under conditions that Kendall's notation has no letters for.
//!
//! One event loop for everything: any discipline at any node, finite room, blocking, retries, impatience, breakdowns,
//! setup times, batches, and rates that vary. It is slower than the loops for plain stations, which the rest of this
//! module prefers where they suffice; of a plain station under the same seed it sees the same customers as they do.
//!
//! Arrivals in a batch come one by one at the same instant, so that part of a batch may find room. A breakdown during
//! a setup voids it.

mod answer;
mod floor;
mod hall;
mod scene;
mod sharing;
mod spot;
mod watch;

use kendall_station::random::{Purpose, derive};
use kendall_station::{Network, Station};

use super::observer::{FEWEST_SECTIONS, Observer};
use super::{SimulationError, StopRule};
pub use answer::{NetworkAnswer, NodeAnswer, PhaseAnswer};
use spot::Layout;
pub use watch::Counts;
use watch::{Tally, Watch};

/// What grows without bound is followed only until that shows.
const UNSTABLE_CUSTOMERS: u64 = 100_000;
/// A run of fewer customers does not tell a network that grows from one that fills.
const FEWEST_TO_JUDGE: u64 = 20_000;

/// Runs a network in virtual time until the rule says stop; the precision it names is that of the response time of the
/// whole.
///
/// Warm-up and intervals are those of [`simulate`](super::simulate). Arrivals whose rate has a period have no steady
/// state but an average over periods, which is what is then answered, with the response by phase beside it.
///
/// # Errors
/// Fails on an impossible network, on one that never settles, that comes to a deadlock or to a standstill, on arrivals
/// that end when a steady state is asked for, and on a trace that is too short.
///
/// ```
/// use kendall_solve::{StopRule, simulate_network};
/// use kendall_station::{Arrivals, Law, Network, Node, Servers, Routes};
/// use std::collections::BTreeMap;
///
/// let node = |name, mean_s| Node::new(name, Law::Exponential { mean_s }, Servers::MIN);
/// let network = Network {
///     nodes: vec![
///         Node { arrivals: Some(Arrivals::poisson(5.0)), ..node("web", 0.1) },
///         node("db", 0.1),
///     ],
///     routing: Routes::from([("web".into(), BTreeMap::from([("db".into(), 1.0)]))]),
///     population: None,
///     classes: Vec::new(),
/// };
/// // Two M/M/1 in a row, each of 0.2 s (Jackson 1957).
/// let answer = simulate_network(&network, StopRule::customers(50_000), 1)?;
/// assert!((answer.overall.response.mean_s.value - 0.4).abs() < 0.04);
/// # Ok::<(), kendall_solve::SimulationError>(())
/// ```
pub fn simulate_network(
    network: &Network,
    stop: StopRule,
    seed: u64,
) -> Result<NetworkAnswer, SimulationError> {
    network.validate()?;
    let layout = Layout::of(network);
    match stop {
        StopRule::Steady { max_customers, relative_half_width } => {
            steady(&layout, max_customers, relative_half_width, seed)
        }
        StopRule::Runs { customers, runs } => from_empty(&layout, customers, runs, seed),
    }
}

/// The same of a station under any conditions, which is a network of one node.
///
/// # Errors
/// As [`simulate_network`].
pub fn simulate_conditions(
    station: &Station,
    stop: StopRule,
    seed: u64,
) -> Result<NetworkAnswer, SimulationError> {
    station.validate()?;
    simulate_network(&Network::from(station), stop, seed)
}

/// One long run.
fn steady(
    layout: &Layout,
    max_customers: u64,
    relative_half_width: Option<f64>,
    seed: u64,
) -> Result<NetworkAnswer, SimulationError> {
    if let Some(ends_s) = layout.ends_s() {
        return Err(SimulationError::NoSteadyState { ends_s });
    }
    let grows = layout.loses_nobody && layout.utilisation >= 1.0 && !layout.is_trace();
    let (max_customers, relative_half_width) = if grows {
        (max_customers.min(UNSTABLE_CUSTOMERS), None)
    } else {
        (max_customers, relative_half_width)
    };
    // A node never ends the run: its precision cannot be reached.
    let of_node = |spot: &spot::Spot| Observer::new(&spot.station, u64::MAX, Some(-1.0));
    let mut watch = Watch {
        overall: Observer::new(&layout.overall, max_customers, relative_half_width),
        nodes: layout.spots.iter().map(of_node).collect(),
        tally: Tally::new(layout.spots.len()),
        counts: Counts::default(),
    };
    let now_s = floor::run(layout, &mut watch, seed, u64::MAX)?;
    if grows {
        let (reached, growth_per_s) = watch.overall.growth();
        let (rho, customers) = (layout.utilisation, watch.overall.customers());
        return Err(SimulationError::Unstable { rho, growth_per_s, reached, customers });
    }
    let Counts { arrived, inside, .. } = watch.counts;
    let mostly_inside = inside as f64 > (0.05 * arrived as f64).max(4.0 * layout.filling);
    if mostly_inside && arrived >= FEWEST_TO_JUDGE && layout.users.is_none() {
        return Err(watch.unstable(inside));
    }
    watch.answer(layout, now_s, seed)
}

/// Independent runs of so many customers.
fn from_empty(
    layout: &Layout,
    customers: u64,
    runs: u64,
    seed: u64,
) -> Result<NetworkAnswer, SimulationError> {
    let mut watch = Watch {
        overall: Observer::of_runs(&layout.overall),
        nodes: layout.spots.iter().map(|spot| Observer::of_runs(&spot.station)).collect(),
        tally: Tally::of_runs(layout.spots.len()),
        counts: Counts::default(),
    };
    let mut now_s = 0.0;
    for run in 0..runs.max(FEWEST_SECTIONS as u64) {
        now_s = floor::run(layout, &mut watch, derive(seed, Purpose::Trial, run), customers)?;
        watch.overall.end_run();
        watch.nodes.iter_mut().for_each(Observer::end_run);
        watch.tally.end_run(now_s);
    }
    watch.answer(layout, now_s, seed)
}
