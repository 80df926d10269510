//! The discrete-event simulator: any station, in virtual time, deterministic in its seed.
//!
//! One event loop serves every discipline through the same `Queue` that live servers use. Two cases have a faster method: FIFO with
//! unlimited capacity needs no events at all, and processor sharing has a separate loop in virtual time. Memory does not grow with
//! the length of the run. Service times are drawn in order of arrival, each from its purpose's stream, so that two disciplines
//! under one seed get the same customers.
//!
//! The stop rule alone, never the number of threads, determines how work is divided into independent runs, and their results are
//! combined in order: so a seed gives the same answer on one processor as on many.

mod arriving;
mod due;
mod events;
mod fifo;
mod network;
mod observer;
mod progress;
mod section;
mod settling;
mod sharing;
mod threads;
mod trace;

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

use kendall_station::{Answer, Arrivals, Discipline, Job, Network, NetworkError, Station, StationError};
use kendall_stats::random::{Purpose, derive};

use arriving::Arriving;
pub use network::{
    Counts, NetworkAnswer, NodeAnswer, PhaseAnswer, simulate_conditions, simulate_network,
    simulate_network_traced, simulate_network_watched,
};
use observer::{Figure, Observer, Often, Precision};
pub use progress::Progress;
use threads::on_each;
pub use threads::processors;
use trace::Sink;
pub use trace::{Fate, Traced};

/// When a simulation stops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StopRule {
    /// The steady state of the station: one long run, or several if each is long compared with the time in which the station
    /// settles, always with the warm-up cut.
    Steady {
        /// The most customers, warm-up included; at least 1000 are run.
        max_customers: u64,
        /// The run ends earlier once the 95 % interval of the mean response time is within this share of the mean. Checked each
        /// time the run has doubled, so that repeated checks do not bias the interval.
        relative_half_width: Option<f64>,
    },
    /// The steady state likewise, until a quantile of the response time is known to the given precision.
    Quantile {
        /// The share p of the quantile, strictly between 0 and 1.
        p: f64,
        /// The run ends once the 95 % interval of the quantile is within this share of it,
        relative_half_width: f64,
        /// and at the latest after this many customers.
        max_customers: u64,
    },
    /// Independent runs that begin and end with an empty station: the expected result of a trial of this many requests, whether or
    /// not the station has a steady state.
    Runs {
        /// Customers of each run.
        customers: u64,
        /// The number of runs; at least 10 are made.
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

    /// Stops after this many customers, whatever the precision.
    pub fn customers(max_customers: u64) -> Self {
        Self::Steady { max_customers, relative_half_width: None }
    }
}

/// The reason why a simulation has no answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum SimulationError {
    #[error("the station is not valid: {0}")]
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
    #[error("the network is not valid: {0}")]
    ImpossibleNetwork(#[from] NetworkError),
    #[error(
        "deadlock: at {at_s:.3} s, after {customers} arrivals, every server of {stations} is blocked by a customer that \
         waits for capacity at another; raise their capacity, or let a full station reject (when_full = \"lose\")"
    )]
    Deadlock { stations: String, at_s: f64, customers: u64 },
    #[error(
        "standstill: by {at_s:.3} s, {events} events have passed since a customer left; if breakdowns restart the service, \
         servers may break down before any service can end"
    )]
    Stalled { events: u64, at_s: f64 },
    #[error(
        "by {at_s:.3} s there are {inside} customers at once, which is more than the simulation keeps; lower the arrival rate, the size of \
         batches, the capacity, or the number of customers of a run"
    )]
    Crowded { inside: u64, at_s: f64 },
    #[error("the arrivals end after {ends_s} s, so there is no steady state; use independent runs")]
    NoSteadyState { ends_s: f64 },
    #[error("the simulation was stopped")]
    Stopped,
}

/// Runs a station in virtual time until the stop rule ends it, on all processors.
///
/// Cuts the warm-up by MSER-5, except for a trace, which is one run as a whole. Intervals of means are by batch means corrected for
/// skewness, of quantiles by sectioning; for independent runs both are over the runs. An interrupted service resumes where it
/// stopped.
///
/// The simulation knows the true service time of every customer, and shortest-remaining gets it at each arrival; a live server
/// under that discipline may only know a range. Gittins and cµ know the law of the class alone.
///
/// # Errors
/// Fails on an invalid station, on one that never settles, and on a trace that is too short.
pub fn simulate(station: &Station, stop: StopRule, seed: u64) -> Result<Answer, SimulationError> {
    simulate_on(processors(), station, stop, seed)
}

/// Runs a station like [`simulate`], on this many threads, with the same answer.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_on(
    threads: NonZeroUsize,
    station: &Station,
    stop: StopRule,
    seed: u64,
) -> Result<Answer, SimulationError> {
    run(station, stop, seed, Execution::Threads(threads))
}

/// Runs a station like [`simulate`], with the same answer, while another thread watches its progress and may stop it.
///
/// # Errors
/// As [`simulate`], and [`SimulationError::Stopped`] once stopped.
pub fn simulate_watched(
    station: &Station,
    stop: StopRule,
    seed: u64,
    progress: &Arc<Progress>,
) -> Result<Answer, SimulationError> {
    run(station, stop, seed, Execution::Watched(progress))
}

/// Runs a station like [`simulate`], on this thread, and reports every customer as it leaves, warm-up included. The answer is that
/// of [`simulate`].
///
/// Customers of one run come in the order in which the simulation completes them: by departure, or by arrival where it needs no
/// events. Where there are several runs, parts of them alternate.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_traced(
    station: &Station,
    stop: StopRule,
    seed: u64,
    sink: &mut dyn FnMut(&Traced),
) -> Result<Answer, SimulationError> {
    run(station, stop, seed, Execution::Traced(sink))
}

/// A run that can be paused.
trait Engine: Send {
    /// Runs until the observer has enough, and resumes from there when called again. Continues if there are no more arrivals.
    fn run(&mut self, run: u64, observer: &mut Observer, sink: Sink<'_>) -> ControlFlow<()>;
}

/// How the runs are executed: on several threads, on all processors under the eyes of another thread, or on this one with a trace.
enum Execution<'a> {
    Threads(NonZeroUsize),
    Watched(&'a Arc<Progress>),
    Traced(&'a mut dyn FnMut(&Traced)),
}

impl Execution<'_> {
    fn progress(&self) -> Option<Arc<Progress>> {
        match self {
            Self::Watched(progress) => Some(Arc::clone(progress)),
            Self::Threads(_) | Self::Traced(_) => None,
        }
    }

    /// # Errors
    /// Fails once the simulation is asked to stop.
    fn go_on(&self) -> Result<(), SimulationError> {
        match self {
            Self::Watched(progress) if progress.is_stopped() => Err(SimulationError::Stopped),
            _ => Ok(()),
        }
    }

    /// Applies the work to each item.
    fn each<T: Send>(&mut self, items: &mut [T], work: impl Fn(&mut T, Sink<'_>) + Sync) {
        match self {
            Self::Threads(threads) => on_each(*threads, items, |item| work(item, None)),
            Self::Watched(_) => on_each(processors(), items, |item| work(item, None)),
            Self::Traced(sink) => items.iter_mut().for_each(|item| work(item, Some(*sink))),
        }
    }
}

fn run(
    station: &Station,
    stop: StopRule,
    seed: u64,
    execution: Execution<'_>,
) -> Result<Answer, SimulationError> {
    station.validate()?;
    if !station.conditions.are_none() || matches!(station.arrivals, Arrivals::Varying(_)) {
        return network::run(&Network::from(station), stop, seed, execution).map(|answer| answer.overall);
    }
    let jobs = events::jobs(station);
    if let (Arrivals::Attended(users), StopRule::Steady { .. } | StopRule::Quantile { .. }) =
        (&station.arrivals, stop)
    {
        return Err(SimulationError::NoSteadyState { ends_s: users.ends_s() });
    }
    match stop {
        StopRule::Steady { max_customers, relative_half_width } => {
            let mean = |relative_half_width| Precision { of: Figure::Mean, relative_half_width };
            steady(station, &jobs, max_customers, relative_half_width.map(mean), seed, execution)
        }
        StopRule::Quantile { p, relative_half_width, max_customers } => {
            let precision = Precision { of: Figure::Quantile(p), relative_half_width };
            steady(station, &jobs, max_customers, Some(precision), seed, execution)
        }
        StopRule::Runs { customers, runs } => from_empty(station, &jobs, customers, runs, seed, execution),
    }
}

/// Independent runs of this many customers, several to a section.
fn from_empty(
    station: &Station,
    jobs: &[Job],
    customers: u64,
    runs: u64,
    seed: u64,
    mut execution: Execution<'_>,
) -> Result<Answer, SimulationError> {
    if let (Some(rho), Some(rate_per_s)) = (saturated(station), station.arrivals.rate_per_s()) {
        let inside = (customers as f64 * (1.0 - 1.0 / rho)) as u64;
        if inside > MOST_INSIDE {
            return Err(SimulationError::Crowded { inside, at_s: customers as f64 / rate_per_s });
        }
    }
    let runs = runs.max(observer::FEWEST_SECTIONS as u64);
    let in_section = runs.div_ceil(observer::MOST_SECTIONS as u64);
    let sections = (0..runs).step_by(in_section as usize).map(|first| first..(first + in_section).min(runs));
    let progress = execution.progress();
    let observer = || Observer::of_runs(station, in_section).watched_by(progress.clone());
    let mut sections: Vec<_> = sections.map(|runs| (runs, observer())).collect();
    execution.each(&mut sections, |(runs, observer), mut sink| {
        for run in runs {
            if observer.is_stopped() {
                return;
            }
            let arriving = Arriving::limited(station, derive(seed, Purpose::Trial, run), customers);
            let mut engine: Box<dyn Engine> = match station.discipline.shares() {
                true => Box::new(sharing::Sharing::new(station, arriving)),
                false => Box::new(events::EventLoop::new(station, jobs, arriving)),
            };
            let sink: Sink<'_> = match &mut sink {
                Some(sink) => Some(&mut **sink),
                None => None,
            };
            let _ = engine.run(run, observer, sink);
            observer.end_run(customers);
        }
    });
    execution.go_on()?;
    observer::answer(sections.into_iter().map(|(_, observer)| observer).collect(), station, seed)
}

/// One long run, or several.
fn steady(
    station: &Station,
    jobs: &[Job],
    max_customers: u64,
    precision: Option<Precision>,
    seed: u64,
    mut execution: Execution<'_>,
) -> Result<Answer, SimulationError> {
    let saturated = saturated(station);
    // A station that grows without bound is only followed until the growth is evident.
    let (max_customers, precision) = match saturated {
        Some(_) => (max_customers.min(100_000), None),
        None => (max_customers, precision),
    };
    let runs = if saturated.is_some() { 1 } else { runs(station, max_customers) };
    let often = if precision.is_some() { Often::UntilPrecise } else { Often::AtTheEnd };
    let open = !matches!(station.arrivals, Arrivals::Closed { .. } | Arrivals::Sessions(_));
    let progress = execution.progress();
    let begun = |run: u64| {
        let seed = if runs == 1 { seed } else { derive(seed, Purpose::Trial, run) };
        let arriving = match saturated {
            Some(_) => Arriving::limited(station, seed, MOST_ARRIVING),
            None => Arriving::new(station, seed),
        };
        let is_plain = station.discipline == Discipline::Fifo && open && station.capacity.is_none();
        let engine: Box<dyn Engine + '_> = if is_plain && saturated.is_none() {
            Box::new(fifo::NextFree::new(station, arriving))
        } else if station.discipline.shares() {
            Box::new(sharing::Sharing::new(station, arriving))
        } else {
            Box::new(events::EventLoop::new(station, jobs, arriving))
        };
        let observer = Observer::of_one_among(station, runs as usize, max_customers / runs, often)
            .watched_by(progress.clone());
        Run { number: run, engine, observer, ended: false }
    };
    let mut all: Vec<Run<'_>> = (0..runs).map(begun).collect();
    loop {
        execution.each(&mut all, |run, sink| {
            run.ended = run.engine.run(run.number, &mut run.observer, sink).is_continue();
        });
        execution.go_on()?;
        let observers: Vec<&Observer> = all.iter().map(|run| &run.observer).collect();
        let long = all.iter().any(|run| run.ended || run.observer.is_longest());
        if long || precision.is_some_and(|precision| precision.reached(&observers)) {
            break;
        }
        all.iter_mut().for_each(|run| run.observer.go_on());
    }
    if let Some(rho) = saturated {
        let (mut reached, mut growth_per_s) = all[0].observer.growth();
        let customers = all[0].observer.customers();
        // So slow a station receives all the customers first, and loses them later.
        if rho * customers as f64 >= MOST_ARRIVING as f64
            && let Some(rate_per_s) = station.arrivals.rate_per_s()
        {
            (reached, growth_per_s) = (MOST_ARRIVING - customers, rate_per_s * (1.0 - 1.0 / rho));
        }
        return Err(SimulationError::Unstable { rho, growth_per_s, reached, customers });
    }
    observer::answer(all.into_iter().map(|run| run.observer).collect(), station, seed)
}

/// One of the runs towards a steady state.
struct Run<'a> {
    number: u64,
    engine: Box<dyn Engine + 'a>,
    observer: Observer,
    /// Whether there are no more arrivals.
    ended: bool,
}

/// The number of runs into which the work is divided: the most at which each is long enough that its warm-up is negligible, up to 8.
/// Near saturation that is one.
fn runs(station: &Station, max_customers: u64) -> u64 {
    if matches!(station.arrivals, Arrivals::Trace { .. }) {
        return 1;
    }
    let long = settling::settling_customers(station).saturating_mul(50).max(LONG);
    let runs = (max_customers / long).clamp(1, MOST_RUNS);
    1 << runs.ilog2()
}

/// The most customers that arrive at a station whose number grows without bound. Where a service takes years, few leave.
const MOST_ARRIVING: u64 = 2_000_000;
/// The most customers in a station or a network at once: each takes some 200 bytes.
const MOST_INSIDE: u64 = 4_000_000;
/// A shorter run is not worth a thread.
const LONG: u64 = 100_000;
/// The most runs towards a steady state.
const MOST_RUNS: u64 = 8;

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

/// The utilisation of a station that has no steady state. A trace is finite and never reaches one.
fn saturated(station: &Station) -> Option<f64> {
    match (&station.arrivals, station.capacity) {
        (Arrivals::Open { .. } | Arrivals::Sessions(_), None) => {
            station.offered_utilisation().filter(|&rho| rho >= 1.0)
        }
        _ => None,
    }
}
