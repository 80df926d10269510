//! Statistics of a running network, beyond the observers of the whole and of each node: how customers end, how often
//! they retry, the states of servers, and the response by phase of a period. In sections, for intervals.

use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

use crate::SimulationError;
use crate::observer::{Observer, Precision};
use kendall_stats as statistics;

/// Sections are merged when there are this many.
const MOST_SECTIONS: usize = 64;
/// A period is divided into this many phases.
pub(super) const PHASES: usize = 12;

/// The number of customers that arrived in a whole simulation, warm-up included, by their end. Each ends in exactly one
/// way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Customers from outside.
    pub arrived: u64,
    /// The number of customers that left served.
    pub served: u64,
    /// The number of customers that a full node rejected and that did not come back.
    pub turned_away: u64,
    /// The number of customers that lost their patience and did not come back.
    pub abandoned: u64,
    /// The number of customers that a breakdown drove out and that did not come back.
    pub broken: u64,
    /// The number of customers still there at the end.
    pub inside: u64,
    /// The number of retries of all customers.
    pub retries: u64,
}

/// The reason why a customer is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    TurnedAway,
    Abandoned,
    Broken,
}

pub(super) struct Watch {
    pub(super) overall: Observer,
    /// The precision of the whole at which a run ends early.
    pub(super) precision: Option<Precision>,
    pub(super) nodes: Vec<Observer>,
    pub(super) tally: Tally,
    pub(super) counts: Counts,
}

/// Sums over one section.
#[derive(Clone)]
pub(super) struct Totals {
    pub(super) span_s: f64,
    pub(super) ended: f64,
    pub(super) turned_away: f64,
    pub(super) abandoned: f64,
    pub(super) broken: f64,
    pub(super) retries: f64,
    /// Sum and number of the response times of those that arrived in each phase.
    pub(super) phases: [(f64, f64); PHASES],
    pub(super) nodes: Vec<Stands>,
}

/// Sums over one section at one node: integrals over time of the number of servers that are broken or being set up and
/// of blocked customers, and the number of visits begun.
#[derive(Clone, Copy, Default)]
pub(super) struct Stands {
    pub(super) down_s: f64,
    pub(super) setting_up_s: f64,
    pub(super) blocked_s: f64,
    pub(super) visits: f64,
}

pub(super) struct Tally {
    sections: Vec<Totals>,
    current: Totals,
    /// Customers of a full section, and those still to come in this one.
    unit: u64,
    left: u64,
    by_run: bool,
    began_s: f64,
}

impl Watch {
    /// Whether the precision is reached, now that the sections of the whole are full; if not, merges them to make space
    /// for as many again.
    pub(super) fn has_enough(&mut self) -> bool {
        if self.overall.is_stopped() {
            return true;
        }
        let precise = self.precision.is_some_and(|precision| precision.reached(&[&self.overall]));
        if self.overall.is_longest() || precise {
            return true;
        }
        self.overall.go_on();
        false
    }

    pub(super) fn end_run(&mut self, now_s: f64, customers: u64) {
        self.overall.end_run(customers);
        self.nodes.iter_mut().for_each(|node| node.end_run(0));
        self.tally.end_run(now_s);
    }

    /// The error for a network from which most customers never left.
    pub(super) fn unstable(&self, inside: u64) -> SimulationError {
        let arrived = self.counts.arrived;
        let (_, growth_per_s) = self.overall.growth();
        let rho = arrived as f64 / (arrived - inside.min(arrived - 1)) as f64;
        SimulationError::Unstable { rho, growth_per_s, reached: inside, customers: arrived }
    }
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.arrived += other.arrived;
        self.served += other.served;
        self.turned_away += other.turned_away;
        self.abandoned += other.abandoned;
        self.broken += other.broken;
        self.inside += other.inside;
        self.retries += other.retries;
    }
}

impl Totals {
    fn new(nodes: usize) -> Self {
        Self {
            span_s: 0.0,
            ended: 0.0,
            turned_away: 0.0,
            abandoned: 0.0,
            broken: 0.0,
            retries: 0.0,
            phases: [(0.0, 0.0); PHASES],
            nodes: vec![Stands::default(); nodes],
        }
    }

    fn absorb(&mut self, other: &Self) {
        self.span_s += other.span_s;
        self.ended += other.ended;
        self.turned_away += other.turned_away;
        self.abandoned += other.abandoned;
        self.broken += other.broken;
        self.retries += other.retries;
        for (mine, other) in self.phases.iter_mut().zip(&other.phases) {
            *mine = (mine.0 + other.0, mine.1 + other.1);
        }
        for (mine, other) in self.nodes.iter_mut().zip(&other.nodes) {
            mine.down_s += other.down_s;
            mine.setting_up_s += other.setting_up_s;
            mine.blocked_s += other.blocked_s;
            mine.visits += other.visits;
        }
    }
}

impl Tally {
    /// The tally of one long run.
    pub(super) fn new(nodes: usize) -> Self {
        const FIRST: u64 = 64;
        Self {
            sections: Vec::with_capacity(MOST_SECTIONS),
            current: Totals::new(nodes),
            unit: FIRST,
            left: FIRST,
            by_run: false,
            began_s: 0.0,
        }
    }

    /// The tally of runs that make one section together, each ended by [`Self::end_run`].
    pub(super) fn of_runs(nodes: usize) -> Self {
        Self { by_run: true, ..Self::new(nodes) }
    }

    pub(super) fn stands(&mut self, node: usize, down_s: f64, setting_up_s: f64, blocked_s: f64) {
        let stands = &mut self.current.nodes[node];
        stands.down_s += down_s;
        stands.setting_up_s += setting_up_s;
        stands.blocked_s += blocked_s;
    }

    pub(super) fn visited(&mut self, node: usize) {
        self.current.nodes[node].visits += 1.0;
    }

    pub(super) fn retried(&mut self) {
        self.current.retries += 1.0;
    }

    /// Records a customer that was served and had arrived in this phase, from 0 to 1, of the period.
    pub(super) fn served(&mut self, now_s: f64, response_s: f64, phase: Option<f64>) {
        if let Some(phase) = phase {
            let at = ((phase * PHASES as f64) as usize).min(PHASES - 1);
            self.current.phases[at].0 += response_s;
            self.current.phases[at].1 += 1.0;
        }
        self.ended(now_s);
    }

    pub(super) fn failed(&mut self, now_s: f64, failure: Failure) {
        match failure {
            Failure::TurnedAway => self.current.turned_away += 1.0,
            Failure::Abandoned => self.current.abandoned += 1.0,
            Failure::Broken => self.current.broken += 1.0,
        }
        self.ended(now_s);
    }

    fn ended(&mut self, now_s: f64) {
        self.current.ended += 1.0;
        if !self.by_run {
            self.count(now_s);
        }
    }

    /// A run has ended.
    fn end_run(&mut self, now_s: f64) {
        self.close(now_s);
        self.began_s = 0.0;
        self.merge(MOST_SECTIONS);
    }

    fn count(&mut self, now_s: f64) {
        self.left -= 1;
        if self.left > 0 {
            return;
        }
        self.close(now_s);
        if self.sections.len() == MOST_SECTIONS {
            self.merge(2);
            self.unit *= 2;
        }
        self.left = self.unit;
    }

    /// Merges this many neighbours into one section.
    fn merge(&mut self, neighbours: usize) {
        let merged = self.sections.chunks(neighbours).map(|chunk| {
            let mut sum = chunk[0].clone();
            chunk[1..].iter().for_each(|other| sum.absorb(other));
            sum
        });
        self.sections = merged.collect();
    }

    /// Where there are few sections, the remainder at the end is one too.
    fn close(&mut self, now_s: f64) {
        self.current.span_s += now_s - self.began_s;
        self.began_s = now_s;
        let next = Totals::new(self.current.nodes.len());
        self.sections.push(std::mem::replace(&mut self.current, next));
    }

    /// The last share of the sections, at least one.
    pub(super) fn last(&self, share: f64) -> &[Totals] {
        let kept = (self.sections.len() as f64 * share.clamp(0.0, 1.0)).ceil() as usize;
        &self.sections[self.sections.len() - kept.max(1).min(self.sections.len())..]
    }

    /// Ends the last section of a run too short to fill one.
    pub(super) fn finish(&mut self, now_s: f64) {
        if self.current.ended > 0.0 && self.sections.is_empty() {
            self.close(now_s);
        }
    }
}

/// A ratio of totals, with the interval of the ratios of the sections.
pub(super) fn ratio(
    sections: &[&Totals],
    of: impl Fn(&Totals) -> f64,
    among: impl Fn(&Totals) -> f64,
) -> Estimate {
    let whole = sections.iter().map(|s| among(s)).sum::<f64>();
    if whole <= 0.0 {
        return Estimate::exact(0.0);
    }
    let value = sections.iter().map(|s| of(s)).sum::<f64>() / whole;
    let each: Vec<f64> = sections.iter().map(|s| of(s) / among(s)).filter(|x| x.is_finite()).collect();
    match statistics::batch_means(&each) {
        Some(found) => Estimate::within(value, found.half_width),
        None => Estimate::exact(value),
    }
}
