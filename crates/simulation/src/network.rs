//! The simulation of networks, and of stations under conditions for which Kendall's notation has no letters.
//!
//! One event loop for everything: any discipline at any node, finite capacity, blocking, retries, impatience, breakdowns,
//! setup times, batches, and rates that vary. It is slower than the loops for plain stations, which the rest of this module
//! prefers where they suffice; for a plain station under the same seed it gets the same customers as they do.
//!
//! Arrivals in a batch come one by one at the same instant, so that a part of a batch may be admitted. A breakdown during a
//! setup voids it.

mod answer;
mod event_loop;
mod hall;
mod scene;
mod sharing;
mod spot;
mod until;
mod watch;

use std::sync::Arc;

use kendall_station::{Network, Station};
use kendall_stats::random::{Purpose, derive};

use super::observer::{FEWEST_SECTIONS, Figure, MOST_SECTIONS, Observer, Often, Precision};
use super::threads::processors;
use super::trace::{Sink, Traced};
use super::{Execution, Progress, SimulationError, StopRule};
pub use answer::{NetworkAnswer, NodeAnswer, PhaseAnswer};
use spot::Layout;
pub use watch::Counts;
use watch::{Tally, Watch};

/// A network that grows without bound is only followed until the growth is evident.
const UNSTABLE_CUSTOMERS: u64 = 100_000;
/// A run of fewer customers does not distinguish a network that grows from one that fills.
const FEWEST_TO_JUDGE: u64 = 20_000;

/// Runs a network in virtual time until the stop rule ends it; a precision refers to the response time of the whole
/// network.
///
/// Warm-up and intervals are those of [`simulate`](super::simulate). Arrivals whose rate has a period have no steady state
/// but an average over periods; the answer is that average, together with the response by phase.
///
/// # Errors
/// Fails on an invalid network, on one that never settles, that reaches a deadlock or stops making progress, on arrivals
/// that end when a steady state is needed, and on a trace that is too short.
///
/// ```
/// use kendall_simulation::{StopRule, simulate_network};
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
/// # Ok::<(), kendall_simulation::SimulationError>(())
/// ```
pub fn simulate_network(
    network: &Network,
    stop: StopRule,
    seed: u64,
) -> Result<NetworkAnswer, SimulationError> {
    run(network, stop, seed, Execution::Threads(processors()))
}

/// Runs a network like [`simulate_network`], while another thread watches its progress and may stop it.
///
/// # Errors
/// As [`simulate_network`], and [`SimulationError::Stopped`] once stopped.
pub fn simulate_network_watched(
    network: &Network,
    stop: StopRule,
    seed: u64,
    progress: &Arc<Progress>,
) -> Result<NetworkAnswer, SimulationError> {
    run(network, stop, seed, Execution::Watched(progress))
}

/// Runs a network like [`simulate_network`], on this thread, and reports every customer as it leaves the network, warm-up
/// included: its service is the sum over its visits, and its server the last one.
///
/// # Errors
/// As [`simulate_network`].
pub fn simulate_network_traced(
    network: &Network,
    stop: StopRule,
    seed: u64,
    sink: &mut dyn FnMut(&Traced),
) -> Result<NetworkAnswer, SimulationError> {
    run(network, stop, seed, Execution::Traced(sink))
}

/// Runs a station under any conditions, as a network of one node.
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

pub(super) fn run(
    network: &Network,
    stop: StopRule,
    seed: u64,
    execution: Execution<'_>,
) -> Result<NetworkAnswer, SimulationError> {
    network.validate()?;
    let layout = Layout::of(network);
    match stop {
        StopRule::Steady { max_customers, relative_half_width } => {
            let mean = |relative_half_width| Precision { of: Figure::Mean, relative_half_width };
            steady(&layout, max_customers, relative_half_width.map(mean), seed, execution)
        }
        StopRule::Quantile { p, relative_half_width, max_customers } => {
            let precision = Precision { of: Figure::Quantile(p), relative_half_width };
            steady(&layout, max_customers, Some(precision), seed, execution)
        }
        StopRule::Runs { customers, runs } => from_empty(&layout, customers, runs, seed, execution),
    }
}

/// One long run.
fn steady(
    layout: &Layout,
    max_customers: u64,
    precision: Option<Precision>,
    seed: u64,
    mut execution: Execution<'_>,
) -> Result<NetworkAnswer, SimulationError> {
    if let Some(ends_s) = layout.ends_s() {
        return Err(SimulationError::NoSteadyState { ends_s });
    }
    let grows = layout.loses_nobody && layout.utilisation >= 1.0 && !layout.is_trace();
    let (max_customers, precision) =
        if grows { (max_customers.min(UNSTABLE_CUSTOMERS), None) } else { (max_customers, precision) };
    let often = if precision.is_some() { Often::UntilPrecise } else { Often::AtTheEnd };
    // A node never ends the run: this precision is unreachable.
    let of_node = |spot: &spot::Spot| Observer::new(&spot.station, u64::MAX, Some(-1.0));
    let watch = Watch {
        overall: Observer::of_one_among(&layout.overall, 1, max_customers, often)
            .watched_by(execution.progress()),
        precision,
        nodes: layout.spots.iter().map(of_node).collect(),
        tally: Tally::new(layout.spots.len()),
        counts: Counts::default(),
    };
    let mut only = [(watch, Ok(0.0))];
    execution.each(&mut only, |(watch, ended), sink| {
        *ended =
            event_loop::run(layout, watch, event_loop::Run { number: 0, seed, customers: u64::MAX }, sink);
    });
    execution.go_on()?;
    let [(mut watch, ended)] = only;
    watch.tally.finish(ended?);
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
    answer::of(vec![watch], layout, seed)
}

/// Independent runs of this many customers, several to a section.
fn from_empty(
    layout: &Layout,
    customers: u64,
    runs: u64,
    seed: u64,
    mut execution: Execution<'_>,
) -> Result<NetworkAnswer, SimulationError> {
    let runs = runs.max(FEWEST_SECTIONS as u64);
    let in_section = runs.div_ceil(MOST_SECTIONS as u64);
    let progress = execution.progress();
    let section = |first: u64| {
        let watch = Watch {
            overall: Observer::of_runs(&layout.overall, in_section).watched_by(progress.clone()),
            precision: None,
            nodes: layout.spots.iter().map(|spot| Observer::of_runs(&spot.station, in_section)).collect(),
            tally: Tally::of_runs(layout.spots.len()),
            counts: Counts::default(),
        };
        (first..(first + in_section).min(runs), watch, Ok(()))
    };
    let mut sections: Vec<_> = (0..runs).step_by(in_section as usize).map(section).collect();
    execution.each(&mut sections, |(numbers, watch, ended), mut sink| {
        for number in numbers {
            if watch.overall.is_stopped() {
                return;
            }
            let seed = derive(seed, Purpose::Trial, number);
            let sink: Sink<'_> = match &mut sink {
                Some(sink) => Some(&mut **sink),
                None => None,
            };
            match event_loop::run(layout, watch, event_loop::Run { number, seed, customers }, sink) {
                Ok(now_s) => watch.end_run(now_s, customers),
                Err(why) => {
                    *ended = Err(why);
                    return;
                }
            }
        }
    });
    execution.go_on()?;
    let watches = sections.into_iter().map(|(_, watch, ended)| ended.map(|()| watch));
    answer::of(watches.collect::<Result<_, _>>()?, layout, seed)
}
