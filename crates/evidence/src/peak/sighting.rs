//! The measurement of one probe, and its outcome.

use kendall_record::{Outcome as Ended, RequestRow};
use kendall_station::Estimate;
use serde::Serialize;

use super::Aim;
use crate::expect::{Expectation, ExpectationVerdict, Figure, Measure, Side};
use crate::fit::{Slo, SloMeasure};
use crate::measured::{Trial, client_side, trend};
use kendall_stats::{batch_means, minimum_samples, quantile_rank, quantile_ranks, share_interval, student_t};

/// Below this share of what was due a system is overloaded; above the other it keeps up.
const ACHIEVED: (f64, f64) = (0.97, 0.99);
/// The most and the fewest sections into which the requests of a probe are divided for the interval of a quantile.
const SECTIONS: (usize, usize) = (10, 5);

/// The measurement of one probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sighting {
    /// Completed over due, while the load lasted.
    pub achieved_share: f64,
    /// The measured value of the objective, in seconds; `None` with too few requests. A mean is that of the answered requests.
    pub value_s: Option<Estimate>,
    /// The share of requests without a right answer.
    pub errors: Estimate,
    /// Whether the number of requests in the system grew.
    pub grows: bool,
    /// Whether other programs used the machine during the probe, as the caller reports: a disturbed probe counts only if it
    /// passes.
    pub disturbed: bool,
}

/// The outcome of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The objective is met, and the system keeps up.
    Pass,
    /// The system does not meet the objective, or does not keep up.
    Fail,
    /// The limit lies within the interval.
    Grey,
}

/// The number of requests of a probe that can decide an objective.
pub fn requests_needed(slo: Slo) -> u64 {
    match slo.measure {
        SloMeasure::Mean => 500,
        SloMeasure::Quantile(p) => 500.max(SECTIONS.1 as u64 * minimum_samples(p)),
    }
}

impl Sighting {
    /// The measurement of a probe from its rows, without its warm-up. Requests of one run depend on each other, so the interval of
    /// a quantile is by sections of the run and that of the mean by batches.
    pub fn of(trial: &Trial<'_>, slo: Slo) -> Self {
        let mut rows: Vec<&RequestRow> =
            trial.rows.iter().filter(|row| row.scheduled >= trial.warmup_ns).collect();
        rows.sort_by_key(|row| row.scheduled);
        // A request without an answer took longer than any that has one, and a quantile counts it so. A mean would be infinite: it is that
        // of the answered requests, and the share of errors limits the others.
        let without_answer_s = match slo.measure {
            SloMeasure::Mean => None,
            SloMeasure::Quantile(_) => Some(f64::INFINITY),
        };
        let response_s = |row: &&RequestRow| row.response_ns().map(|ns| ns as f64 / 1e9).or(without_answer_s);
        let responses_s: Vec<f64> = rows.iter().filter_map(response_s).collect();
        let failed = rows.iter().filter(|row| row.outcome != Ended::Answered).count() as u64;
        let due = rows.len() as u64;
        let span_s = match (rows.first(), rows.last()) {
            (Some(first), Some(last)) => (last.scheduled - first.scheduled) as f64 / 1e9,
            _ => 0.0,
        };
        let seen = client_side(std::slice::from_ref(trial)).ok();
        let due_per_s = due.saturating_sub(1) as f64 / span_s;
        let achieved = seen.map_or(0.0, |seen| seen.throughput_per_s.value / due_per_s);
        Self {
            achieved_share: if achieved.is_finite() { achieved } else { 0.0 },
            value_s: value(&responses_s, slo),
            errors: Estimate {
                value: if due > 0 { failed as f64 / due as f64 } else { 1.0 },
                interval: Some(share_interval(failed, due)),
            },
            grows: trend(trial.rows, trial.warmup_ns).is_some_and(|trend| trend.grows),
            disturbed: false,
        }
    }

    /// Whether the system did not keep up.
    pub fn is_overloaded(&self) -> bool {
        self.achieved_share < ACHIEVED.0
    }

    /// The outcome of the probe.
    pub fn outcome(&self, aim: &Aim) -> Outcome {
        let measure = match aim.slo.measure {
            SloMeasure::Mean => Measure::Mean,
            SloMeasure::Quantile(p) => Measure::Quantile(p),
        };
        let expected = Expectation { measure, side: Side::Below, limit: aim.slo.at_most_s };
        let figure =
            self.value_s.map_or_else(|| Figure::Unknown { why: String::new(), least: None }, Figure::Known);
        let verdict = expected.judge(figure).verdict;
        let least_errors = self.errors.interval.map_or(self.errors.value, |(low, _)| low);
        if self.grows
            || self.is_overloaded()
            || verdict == ExpectationVerdict::Failed
            || least_errors > aim.errors_at_most
        {
            return Outcome::Fail;
        }
        let keeps_up = self.achieved_share >= ACHIEVED.1 && self.errors.value <= aim.errors_at_most;
        if keeps_up && verdict == ExpectationVerdict::Met { Outcome::Pass } else { Outcome::Grey }
    }
}

/// The mean by batch means, or a quantile by sectioning (Asmussen and Glynn 2007, section III.5a): the quantiles of
/// contiguous sections scatter around that of all as the latter does around the true one, √k times as widely.
fn value(responses_s: &[f64], slo: Slo) -> Option<Estimate> {
    let p = match slo.measure {
        SloMeasure::Mean => {
            let found = batch_means(responses_s)?;
            return Some(Estimate { value: found.mean, interval: Some(found.interval) });
        }
        SloMeasure::Quantile(p) => p,
    };
    let of = |sample: &[f64]| {
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted[quantile_rank(sorted.len() as u64, p) as usize - 1]
    };
    let least = minimum_samples(p) as usize;
    if responses_s.len() < least {
        return None;
    }
    let whole = of(responses_s);
    let sections = (responses_s.len() / least).min(SECTIONS.0);
    if sections < SECTIONS.1 {
        // As if independent; that is better than nothing to correct the guess by.
        let (low, high) = quantile_ranks(responses_s.len() as u64, p)?;
        let mut sorted = responses_s.to_vec();
        sorted.sort_by(f64::total_cmp);
        let interval = Some((sorted[low as usize - 1], sorted[high as usize - 1]));
        return Some(Estimate { value: whole, interval });
    }
    let each = responses_s.chunks_exact(responses_s.len() / sections).take(sections).map(of);
    let k = sections as f64;
    let squares: f64 = each.map(|one| (one - whole).powi(2)).sum();
    let half_width = student_t(k - 1.0, 0.975) * (squares / (k * (k - 1.0))).sqrt();
    if half_width.is_nan() {
        return Some(Estimate { value: whole, interval: Some((whole, f64::INFINITY)) });
    }
    Some(Estimate { value: whole, interval: Some(((whole - half_width).max(0.0), whole + half_width)) })
}
