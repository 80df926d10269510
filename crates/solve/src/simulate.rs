//! The discrete-event simulator: any station, in virtual time, deterministic in its seed.
//!
//! One event loop serves every discipline through the same `Queue` that live servers use. Two cases have a shorter
//! way: FIFO with unlimited room needs no events at all, and processor sharing runs in virtual time of its own.
//! Memory does not grow with the length of the run. Service times are drawn in order of arrival, each from its
//! purpose's stream, so that two disciplines under one seed see the same customers.

mod arriving;
mod events;
mod fifo;
mod network;
mod observer;
mod section;
mod sharing;

use kendall_station::random::{Purpose, derive};
use kendall_station::{Answer, Arrivals, Discipline, NetworkError, Station, StationError};

use arriving::Arriving;
pub use network::{Counts, NetworkAnswer, NodeAnswer, PhaseAnswer, simulate_conditions, simulate_network};
use observer::Observer;

/// When a simulation stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopRule {
    /// One long run, of which the warm-up is cut: what the station is like in its steady state.
    Steady {
        /// It ends at the latest after this many customers, warm-up included; at least 1000 are run.
        max_customers: u64,
        /// And before that as soon as the 95 % interval of the mean response time is within this share of the mean.
        /// Looked at each time the run has doubled, so that looking often does not make the interval lie.
        relative_half_width: Option<f64>,
    },
    /// Independent runs that begin and end with an empty station: what to expect of a trial of so many requests, whether
    /// the station has a steady state or not.
    Runs {
        /// Customers of each run.
        customers: u64,
        /// How many runs; at least 10 are made.
        runs: u64,
    },
}

/// The steady state to ±1 % of the mean response time, with two million customers at most.
impl Default for StopRule {
    fn default() -> Self {
        Self::Steady { max_customers: Self::MOST_CUSTOMERS, relative_half_width: Some(0.01) }
    }
}

impl StopRule {
    /// The longest run by default.
    pub const MOST_CUSTOMERS: u64 = 2_000_000;

    /// One run of exactly this length, whatever the precision.
    pub fn customers(max_customers: u64) -> Self {
        Self::Steady { max_customers, relative_half_width: None }
    }
}

/// Why a simulation has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum SimulationError {
    #[error("the station cannot be: {0}")]
    Impossible(#[from] StationError),
    #[error(
        "unstable: utilisation would be {rho:.2}; within {customers} customers the number in the station grew to \
         {reached}, by {growth_per_s:.1} per second, and it never settles"
    )]
    Unstable { rho: f64, growth_per_s: f64, reached: u64, customers: u64 },
    #[error(
        "only {customers} requests left the station, which is too few for an answer; {needed} are needed"
    )]
    TooShort { customers: u64, needed: u64 },
    #[error("the network cannot be: {0}")]
    ImpossibleNetwork(#[from] NetworkError),
    #[error(
        "deadlock: at {at_s:.3} s, after {customers} arrivals, every server of {stations} is blocked by a customer that \
         waits for room at another of them; give them more room, or let a full station turn away (when_full = \"lose\")"
    )]
    Deadlock { stations: String, at_s: f64, customers: u64 },
    #[error(
        "standstill: by {at_s:.3} s, {events} events have passed since a customer left; if breakdowns restart the service, \
         servers may break down before any service can end"
    )]
    Stalled { events: u64, at_s: f64 },
    #[error("the arrivals end after {ends_s} s, so that there is no steady state; ask for runs")]
    NoSteadyState { ends_s: f64 },
}

/// Runs a station in virtual time until the rule says stop.
///
/// The warm-up is cut by MSER-5, except from a trace, which is a run as a whole. Intervals of means are by batch
/// means, of quantiles by sectioning; of runs both are over the runs. An interrupted service is resumed where it stopped.
///
/// The simulation knows the true service time of every customer, which shortest-remaining is told at each arrival; a live
/// server under that discipline may know no more than a range. Gittins and cµ know the law of the class alone.
///
/// # Errors
/// Fails on an impossible station, on one that never settles, and on a trace that is too short.
pub fn simulate(station: &Station, stop: StopRule, seed: u64) -> Result<Answer, SimulationError> {
    if !station.conditions.are_none() || matches!(station.arrivals, Arrivals::Varying(_)) {
        return simulate_conditions(station, stop, seed).map(|answer| answer.overall);
    }
    station.validate()?;
    match stop {
        StopRule::Steady { max_customers, relative_half_width } => {
            steady(station, max_customers, relative_half_width, seed)
        }
        StopRule::Runs { customers, runs } => from_empty(station, customers, runs, seed),
    }
}

/// Independent runs of so many customers.
fn from_empty(station: &Station, customers: u64, runs: u64, seed: u64) -> Result<Answer, SimulationError> {
    let mut observer = Observer::of_runs(station);
    let jobs = events::jobs(station);
    for run in 0..runs.max(observer::FEWEST_SECTIONS as u64) {
        let arriving = Arriving::limited(station, derive(seed, Purpose::Trial, run), customers);
        match station.discipline {
            Discipline::ProcessorSharing => sharing::run(station, arriving, &mut observer),
            _ => events::run(station, &jobs, arriving, &mut observer),
        }
        observer.end_run();
    }
    observer.answer(station, seed)
}

/// One long run.
fn steady(
    station: &Station,
    max_customers: u64,
    relative_half_width: Option<f64>,
    seed: u64,
) -> Result<Answer, SimulationError> {
    let saturated = saturated(station);
    // What grows without bound is followed only until that shows.
    let (max_customers, relative_half_width) = match saturated {
        Some(_) => (max_customers.min(100_000), None),
        None => (max_customers, relative_half_width),
    };
    let arriving = Arriving::new(station, seed);
    let mut observer = Observer::new(station, max_customers, relative_half_width);
    let one_class = station.classes.is_empty();
    let open = !matches!(station.arrivals, Arrivals::Closed { .. });
    match station.discipline {
        Discipline::Fifo if one_class && open && station.capacity.is_none() && saturated.is_none() => {
            fifo::run(station, seed, &mut observer);
        }
        Discipline::ProcessorSharing => sharing::run(station, arriving, &mut observer),
        _ => events::run(station, &events::jobs(station), arriving, &mut observer),
    }
    if let Some(rho) = saturated {
        let (reached, growth_per_s) = observer.growth();
        return Err(SimulationError::Unstable {
            rho,
            growth_per_s,
            reached,
            customers: observer.customers(),
        });
    }
    observer.answer(station, seed)
}

/// A point in virtual time, ordered.
#[derive(Clone, Copy, Debug)]
struct Instant(f64);

impl Ord for Instant {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Instant {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Instant {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Instant {}

/// The utilisation of a station that has no steady state. A trace is finite and has none to reach.
fn saturated(station: &Station) -> Option<f64> {
    match (&station.arrivals, station.capacity) {
        (Arrivals::Open { .. }, None) => station.offered_utilisation().filter(|&rho| rho >= 1.0),
        _ => None,
    }
}
