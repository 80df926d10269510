//! The statistics of a running simulation, and the answer computed from them.
//!
//! Each run is divided into sections of equal numbers of customers. When there are 64 (or fewer, where several runs share
//! the work), neighbours are merged, so memory stays constant. The warm-up is cut in whole sections, from each run
//! separately; the remaining sections are the batches and the sections behind every interval.

use std::ops::ControlFlow;
use std::sync::Arc;

use kendall_station::{Answer, Arrivals, By, ClassAnswer, Estimate, Station};

use super::SimulationError;
use super::progress::Progress;
use super::section::{FINE, Ledger, Section, Total, estimate};
use super::settling::{first_section, settling_customers, warm_up_bounds};
use kendall_stats as statistics;

/// Sections of one run are merged when there are this many.
pub(super) const MOST_SECTIONS: usize = 64;
/// An answer needs this many sections, or it has no interval.
pub(super) const FEWEST_SECTIONS: usize = 10;
/// Where several runs share the work each must be this many times as long: the bias from its empty start does not average
/// out over the runs, while their interval grows narrower.
const SHARED: u64 = 5;

/// A customer that leaves the station served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) class: usize,
    pub(super) response_s: f64,
    pub(super) waiting_s: f64,
    /// Whether the customer found all servers busy.
    pub(super) delayed: bool,
}

/// Customers that leave one after the other, each on arrival or in another fixed order, and all served.
pub(super) struct Row<'a> {
    pub(super) response_s: &'a [f64],
    pub(super) waiting_s: &'a [f64],
    pub(super) service_s: &'a [f64],
    /// Empty without classes.
    pub(super) class: &'a [u32],
}

/// Departures that are not in their section yet. Adding several at once is faster than one after the other.
struct Pending {
    response_s: Vec<f64>,
    waiting_s: Vec<f64>,
    /// Empty without classes.
    class: Vec<u32>,
}

impl Pending {
    const MOST: usize = 128;

    fn new() -> Self {
        let times = || Vec::with_capacity(Self::MOST);
        Self { response_s: times(), waiting_s: times(), class: Vec::new() }
    }

    fn len(&self) -> usize {
        self.response_s.len()
    }

    fn clear(&mut self) {
        self.response_s.clear();
        self.waiting_s.clear();
        self.class.clear();
    }
}

pub(super) struct Observer {
    max_customers: u64,
    looks: Looks,
    kind: RunKind,
    most_sections: usize,
    sections: Vec<Section>,
    current: Section,
    pending: Pending,
    /// Customers of a full section, and of a fine batch in it.
    section_customers: u64,
    batch_customers: u64,
    /// Customers still to come in the current fine batch.
    batch_left: u64,
    /// Times below this count as zero.
    least_s: f64,
    /// The weight of each class; one entry without classes.
    weights: Vec<f64>,
    classes: usize,
    /// Customers that a run needs to settle.
    settling: u64,
    /// The shortest and the longest warm-up that is accepted, in customers.
    warm_up: (u64, u64),
    /// Runs that have ended, how many of them are in the current section, and how many fill one.
    runs: u64,
    runs_in_section: u64,
    section_runs: u64,
    /// When the current run began: runs are put one behind the other.
    began_s: f64,
    /// Where another thread follows.
    progress: Option<Arc<Progress>>,
}

/// Whether the run has a steady state to wait for, or is measured as a whole.
#[derive(Clone, Copy, PartialEq)]
enum RunKind {
    Endless,
    Trace,
    Runs,
}

/// What happens once the sections are full.
#[derive(Clone, Copy, PartialEq)]
enum Looks {
    /// The run ends if it is long enough, or has reached this precision.
    Alone { relative_half_width: Option<f64> },
    /// The run pauses: the caller, which sees all runs, decides.
    Together,
}

impl Observer {
    /// For one long run: its greatest length, and the precision at which it ends early.
    pub(super) fn new(station: &Station, max_customers: u64, relative_half_width: Option<f64>) -> Self {
        let (kind, customers) = match &station.arrivals {
            Arrivals::Trace { instants_s } => (RunKind::Trace, instants_s.len() as u64),
            _ => (RunKind::Endless, max_customers.max(1000)),
        };
        let looks = Looks::Alone { relative_half_width };
        let section_customers = first_section(customers, MOST_SECTIONS, relative_half_width.is_some());
        Self { max_customers, looks, ..Self::with_sections(station, kind, section_customers) }
    }

    /// For one of several runs of at most this many customers, each of which pauses when its sections are full, so that
    /// the caller checks all together. `often` says whether the caller may stop them early.
    pub(super) fn of_one_among(station: &Station, runs: usize, max_customers: u64, often: Often) -> Self {
        let alone = Self::new(station, max_customers, None);
        if alone.kind != RunKind::Endless {
            return alone;
        }
        let most_sections = (2 * MOST_SECTIONS / runs).clamp(MOST_SECTIONS / 4, MOST_SECTIONS);
        let section_customers =
            first_section(max_customers.max(1000), most_sections, often == Often::UntilPrecise);
        Self {
            max_customers,
            looks: Looks::Together,
            most_sections,
            ..Self::with_sections(station, RunKind::Endless, section_customers)
        }
    }

    /// For runs, each ended by [`Self::end_run`], this many to a section.
    pub(super) fn of_runs(station: &Station, section_runs: u64) -> Self {
        Self { section_runs, ..Self::with_sections(station, RunKind::Runs, u64::MAX) }
    }

    fn with_sections(station: &Station, kind: RunKind, section_customers: u64) -> Self {
        let batch_customers = section_customers.div_ceil(FINE as u64);
        let classes = station.classes.len();
        let weights = match station.classes.as_slice() {
            [] => vec![1.0],
            classes => classes.iter().map(|class| class.weight).collect(),
        };
        // A tenth of the resolution of quantiles, relative to the mean service time.
        let least_s = 1e-4 * station.service_overall().mean_s();
        Self {
            max_customers: u64::MAX,
            looks: Looks::Alone { relative_half_width: None },
            kind,
            most_sections: MOST_SECTIONS,
            sections: Vec::with_capacity(MOST_SECTIONS),
            current: Section::new(classes, least_s, 0.0),
            pending: Pending::new(),
            section_customers,
            batch_customers,
            batch_left: batch_customers,
            least_s,
            weights,
            classes,
            settling: settling_customers(station),
            warm_up: warm_up_bounds(station),
            runs: 0,
            runs_in_section: 0,
            section_runs: 1,
            began_s: 0.0,
            progress: None,
        }
    }

    /// Reports its customers there, and ends the run once it is asked to stop.
    pub(super) fn watched_by(self, progress: Option<Arc<Progress>>) -> Self {
        Self { progress, ..self }
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.is_stopped())
    }

    fn report(&self, customers: u64) {
        if let Some(progress) = &self.progress {
            progress.add(customers);
        }
    }

    /// Advances the time, with `present` customers in the station and `busy` servers.
    pub(super) fn pass(&mut self, time_s: f64, present: f64, busy: f64) {
        self.add_stay(time_s * present, time_s * busy);
    }

    /// Adds to the integrals over time of the number present and of the number of busy servers.
    #[inline]
    pub(super) fn add_stay(&mut self, present_s: f64, busy_s: f64) {
        self.current.present_s += present_s;
        self.current.busy_s += busy_s;
    }

    /// Records a customer that leaves served. Breaks once there is enough.
    #[inline]
    pub(super) fn departed(&mut self, now_s: f64, customer: Departure) -> ControlFlow<()> {
        self.pending.response_s.push(customer.response_s);
        self.pending.waiting_s.push(customer.waiting_s);
        if self.classes > 0 {
            self.pending.class.push(customer.class as u32);
        }
        self.current.delayed += u64::from(customer.delayed);
        if self.pending.len() == Pending::MOST {
            self.gather();
        }
        self.count(now_s, 1)
    }

    /// The most customers that may leave in a [`Row`].
    pub(super) fn longest_row(&self) -> u64 {
        self.batch_left
    }

    /// Records customers that leave served, the last of them at this instant; each contributes its whole stay and its
    /// whole service: over a long run these sums are the integrals over time (Little's law in its sample-path form,
    /// Stidham 1974). Breaks once there is enough.
    pub(super) fn departed_in_a_row(&mut self, now_s: f64, row: &Row<'_>) -> ControlFlow<()> {
        debug_assert_eq!(self.pending.len(), 0, "customers leave in rows, or one by one");
        let (responses, waits) =
            self.current.add_all(row.response_s, row.waiting_s, row.class, &self.weights);
        self.current.present_s += responses.sum_s;
        self.current.busy_s += Total::of(row.service_s).sum_s;
        self.current.delayed += waits.positive;
        self.count(now_s, row.response_s.len() as u64)
    }

    /// Adds what is pending to its section.
    fn gather(&mut self) {
        let Pending { response_s, waiting_s, class } = &self.pending;
        self.current.add_all(response_s, waiting_s, class, &self.weights);
        self.pending.clear();
    }

    /// Records a rejected customer. Breaks once there is enough.
    pub(super) fn turned_away(&mut self, now_s: f64) -> ControlFlow<()> {
        self.current.lost += 1;
        self.count(now_s, 1)
    }

    /// The number of customers that have left, served or not.
    pub(super) fn customers(&self) -> u64 {
        let gathered: u64 = self.sections.iter().chain([&self.current]).map(Section::customers).sum();
        gathered + self.pending.len() as u64
    }

    /// The mean number present at the end, and its growth per second.
    pub(super) fn growth(&self) -> (u64, f64) {
        let (Some(first), Some(last)) = (self.sections.first(), self.sections.last()) else {
            return (0, 0.0);
        };
        let between_s = (last.start_s + last.end_s - first.start_s - first.end_s) / 2.0;
        let reached = last.present_s / last.span_s();
        let growth =
            if between_s > 0.0 { (reached - first.present_s / first.span_s()) / between_s } else { 0.0 };
        (reached as u64, growth)
    }

    #[inline]
    fn count(&mut self, now_s: f64, customers: u64) -> ControlFlow<()> {
        self.current.end_s = self.began_s + now_s;
        self.batch_left -= customers;
        if self.batch_left > 0 {
            return ControlFlow::Continue(());
        }
        self.gather();
        self.report(self.batch_customers);
        self.batch_left = self.batch_customers;
        self.current.close_batch();
        if self.is_stopped() {
            return ControlFlow::Break(());
        }
        if self.current.customers() < self.section_customers {
            ControlFlow::Continue(())
        } else {
            self.close()
        }
    }

    /// Ends a run with an empty station.
    pub(super) fn end_run(&mut self, customers: u64) {
        self.gather();
        self.report(customers);
        self.began_s = self.current.end_s;
        self.runs += 1;
        self.runs_in_section += 1;
        if self.runs_in_section < self.section_runs {
            return;
        }
        self.runs_in_section = 0;
        self.push_current();
    }

    fn push_current(&mut self) {
        let next = Section::new(self.classes, self.least_s, self.current.end_s);
        self.sections.push(std::mem::replace(&mut self.current, next));
    }

    fn close(&mut self) -> ControlFlow<()> {
        self.push_current();
        if self.sections.len() < self.most_sections {
            return ControlFlow::Continue(());
        }
        if self.kind == RunKind::Endless {
            let enough = match self.looks {
                Looks::Together => true,
                Looks::Alone { relative_half_width } => {
                    let wanted = relative_half_width
                        .map(|relative_half_width| Precision { of: Figure::Mean, relative_half_width });
                    self.is_longest() || wanted.is_some_and(|wanted| wanted.reached(&[self]))
                }
            };
            if enough {
                return ControlFlow::Break(());
            }
        }
        self.go_on();
        ControlFlow::Continue(())
    }

    /// Whether twice as many customers would be too many.
    pub(super) fn is_longest(&self) -> bool {
        2 * self.customers() > self.max_customers
    }

    /// Merges sections to make space for twice as many customers.
    pub(super) fn go_on(&mut self) {
        self.merge();
        self.section_customers *= 2;
        self.batch_customers *= 2;
        self.batch_left = self.batch_customers;
    }

    /// Merges every two neighbours into one section.
    fn merge(&mut self) {
        let mut merged = Vec::with_capacity(self.most_sections);
        let mut old = std::mem::take(&mut self.sections).into_iter();
        while let (Some(first), Some(second)) = (old.next(), old.next()) {
            merged.push(first.merged(second));
        }
        self.sections = merged;
    }

    /// The sections after the warm-up.
    fn steady(&self) -> &[Section] {
        if self.kind != RunKind::Endless {
            return &self.sections;
        }
        let fine: Vec<f64> = self.sections.iter().flat_map(Section::batch_means).collect();
        let cut = statistics::mser(&fine, 5).map_or(0, |cut| cut.batches * 5);
        let per_section = fine.len().div_ceil(self.sections.len().max(1)).max(1);
        let (shortest, longest) = self.warm_up;
        let half = self.section_customers / 2;
        let shortest = (shortest.saturating_add(half) / self.section_customers) as usize;
        let longest = longest.div_ceil(self.section_customers) as usize;
        let cut = cut.div_ceil(per_section).clamp(shortest, longest.max(shortest));
        &self.sections[cut.min(self.sections.len() / 2)..]
    }

    /// An incomplete last section counts where the run is measured as a whole.
    fn finish(&mut self) {
        self.gather();
        if self.kind != RunKind::Endless && self.current.customers() > 0 {
            self.current.close_batch();
            self.push_current();
        }
    }
}

/// Whether a run is checked before its end.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Often {
    AtTheEnd,
    UntilPrecise,
}

/// A figure and the precision that it must reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Precision {
    pub(super) of: Figure,
    /// Half the 95 % interval over the figure.
    pub(super) relative_half_width: f64,
}

/// A figure of the response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Figure {
    Mean,
    Quantile(f64),
}

impl Precision {
    /// Whether these runs together reach the precision. They must have settled.
    pub(super) fn reached(&self, runs: &[&Observer]) -> bool {
        let settling =
            |run: &Observer| if runs.len() == 1 { run.settling } else { run.settling.saturating_mul(SHARED) };
        if runs.iter().any(|run| run.customers() < settling(run)) {
            return false;
        }
        let sections: Vec<&Section> = runs.iter().flat_map(|run| run.steady()).collect();
        let found = match self.of {
            Figure::Mean => Some(estimate(&sections, |s| s.all.response.sum_s, |s| s.all.count as f64)),
            Figure::Quantile(p) => Ledger::response_quantile(&sections, p),
        };
        found.is_some_and(|found| {
            found.interval.is_some() && found.half_width() <= self.relative_half_width * found.value
        })
    }
}

/// The answer of one run of a station, or of several independent ones.
pub(super) fn answer(
    mut observers: Vec<Observer>,
    station: &Station,
    seed: u64,
) -> Result<Answer, SimulationError> {
    observers.iter_mut().for_each(Observer::finish);
    let all: Vec<&Section> = observers.iter().flat_map(|run| run.steady()).collect();
    let sections = all.as_slice();
    let customers: u64 = sections.iter().map(|section| section.all.count).sum();
    if sections.len() < FEWEST_SECTIONS || customers == 0 {
        return Err(SimulationError::TooShort { customers, needed: FEWEST_SECTIONS as u64 });
    }
    let servers = f64::from(station.servers.get());
    let per_second = |of: fn(&Section) -> f64| estimate(sections, of, Section::span_s);
    let share = |of: fn(&Section) -> f64, among: fn(&Section) -> f64| {
        estimate(sections, of, among).within_bounds(0.0, 1.0)
    };
    let runs = observers.iter().map(|run| run.runs).sum();
    let runs = Some(runs).filter(|_| observers.iter().all(|run| run.kind == RunKind::Runs));
    let unsettled = |run: &Observer| run.kind == RunKind::Endless && run.customers() < run.settling;
    let settling = observers.iter().fold(0u64, |sum, run| sum.saturating_add(run.settling));
    let needed = Some(settling).filter(|_| observers.iter().any(unsettled));
    let classes = station.classes.iter().enumerate().map(|(i, class)| ClassAnswer {
        name: class.name.clone(),
        response: Ledger::summary(sections, |s| &s.classes[i], |l| &l.response),
        waiting: Ledger::summary(sections, |s| &s.classes[i], |l| &l.waiting),
        throughput_per_s: estimate(sections, |s| s.classes[i].count as f64, Section::span_s),
    });
    Ok(Answer {
        by: By::Simulation { customers, runs, seed, needed },
        response: Ledger::summary(sections, |s| &s.all, |l| &l.response),
        waiting: Ledger::summary(sections, |s| &s.all, |l| &l.waiting),
        p_wait: share(|s| s.delayed as f64, |s| s.all.count as f64),
        throughput_per_s: per_second(|s| s.all.count as f64),
        utilisation: scaled(per_second(|s| s.busy_s), 1.0 / servers).within_bounds(0.0, 1.0),
        in_system: per_second(|s| s.present_s),
        lost: share(|s| s.lost as f64, |s| s.customers() as f64),
        weighted_response_s: Some(estimate(sections, |s| s.weighted_s, |s| s.all.count as f64)),
        classes: classes.collect(),
    })
}

fn scaled(estimate: Estimate, by: f64) -> Estimate {
    Estimate {
        value: estimate.value * by,
        interval: estimate.interval.map(|(low, high)| (low * by, high * by)),
    }
}
