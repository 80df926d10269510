//! The result of all probes together: the probability to pass falls with the rate, and the answer is the rate where it crosses one half.

use kendall_station::Estimate;
use kendall_stats::student_t;

use super::{Curve, Outcome, Probe};
use crate::fit::Slo;

/// The answer is no further above the highest rate at which a probe passed: as far as a confirmation is below what was found.
pub(super) const BEYOND: f64 = 1.06;
/// Probes that saw at most twice the limit, or half of it, say where the limit is met.
const NEAR: f64 = std::f64::consts::LN_2;
/// With fewer probes near the limit than this, how far another search would end from this one is not known.
const FEWEST: usize = 3;
/// The rates that are tried are as far apart as confirmations are, so another search ends at another of them.
const GRAIN: f64 = 0.05;

/// Rates that passed, some or all, in ascending order, with the chance to pass there.
struct Step {
    from_per_s: f64,
    to_per_s: f64,
    pass: f64,
    weight: f64,
}

/// The rate at which the chance to pass falls below one half, with the range in which another search ends in 95 of 100 cases; where too
/// few probes were near the limit to say that, with the range in which the chance is neither one nor nought. `None` unless some probe
/// passed and the chance falls: probes that could not decide do not show that any rate meets the objective.
pub(super) fn crossing(probes: &[Probe], curve: &Curve, slo: Slo) -> Option<Estimate> {
    let highest_per_s = highest_passed(probes)?;
    let believed = believed(probes);
    let steps = isotonic(&believed);
    let crossing = half(&steps)?;
    let value = crossing.min(BEYOND * highest_per_s);
    let interval = match half_width(&believed, curve, slo) {
        Some(half_width) => {
            let apart = libm::exp(half_width);
            let rates = |outcome| {
                believed
                    .iter()
                    .filter(move |probe| probe.outcome == outcome)
                    .map(|probe| probe.ask.rate_per_s)
            };
            // A pass above or a failure below widens it: there the chance is neither one nor nought.
            let (low, high) = (value / apart, crossing * apart);
            (rates(Outcome::Fail).fold(low, f64::min), rates(Outcome::Pass).fold(high, f64::max))
        }
        None => {
            let sure = steps.iter().rev().find(|step| step.pass == 1.0).map_or(0.0, |step| step.to_per_s);
            let never =
                steps.iter().find(|step| step.pass == 0.0).map_or(f64::INFINITY, |step| step.from_per_s);
            (sure.min(value), never.max(value))
        }
    };
    Some(Estimate { value, interval: Some(interval) })
}

/// The same before it is held to the highest rate that passed.
pub(super) fn crossing_alone(probes: &[Probe]) -> Option<f64> {
    half(&isotonic(&believed(probes)))
}

/// The highest rate at which a probe passed.
pub(super) fn highest_passed(probes: &[Probe]) -> Option<f64> {
    let passed = probes.iter().filter(|probe| probe.outcome == Outcome::Pass);
    passed.map(|probe| probe.ask.rate_per_s).reduce(f64::max)
}

/// Where the chance to pass crosses one half.
fn half(steps: &[Step]) -> Option<f64> {
    let above = steps.iter().rev().find(|step| step.pass > 0.5);
    let below = steps.iter().find(|step| step.pass < 0.5);
    let half: Vec<&Step> = steps.iter().filter(|step| step.pass == 0.5).collect();
    let (low, high) = match (half.first(), half.last()) {
        (Some(first), Some(last)) => (first.from_per_s, last.to_per_s),
        _ => (above?.to_per_s, below?.from_per_s),
    };
    Some((low * high).sqrt())
}

/// The probes that count. Of a rate that was tried again, for longer or because it was disturbed, the last one does: it saw all that the
/// others did, and more.
pub(super) fn believed(probes: &[Probe]) -> Vec<&Probe> {
    let is_replaced = |index: usize| {
        let (probe, next) = (&probes[index], probes.get(index + 1));
        let is_open = probe.outcome == Outcome::Grey || !probe.is_believed();
        is_open && next.is_some_and(|next| next.ask.rate_per_s == probe.ask.rate_per_s)
    };
    (0..probes.len()).filter(|&index| !is_replaced(index)).map(|index| &probes[index]).collect()
}

/// How far another search ends from this one in 95 of 100 cases, as the logarithm of the ratio: each probe near the limit alone says
/// where the limit is met, by the model, and these scatter as the system and the machine do from one probe to the next. Both searches
/// have such a mean, so the half-width is that of a difference.
fn half_width(probes: &[&Probe], curve: &Curve, slo: Slo) -> Option<f64> {
    let near = |probe: &&&Probe| probe.sighting.value_s.is_some_and(|value| value.value.is_finite());
    let alone = |probe: &&Probe| {
        let (rate_per_s, distance) = curve.highest_by(probe, slo)?;
        (distance <= NEAR).then(|| (libm::log(rate_per_s), f64::from(probe.ask.length)))
    };
    let found: Vec<(f64, f64)> = probes.iter().filter(near).filter_map(alone).collect();
    let n = found.len() as f64;
    if found.len() < FEWEST {
        return None;
    }
    let weights: f64 = found.iter().map(|(_, weight)| weight).sum();
    let mean = found.iter().map(|(rate, weight)| rate * weight).sum::<f64>() / weights;
    let squares = found.iter().map(|(rate, weight)| weight * (rate - mean).powi(2)).sum::<f64>() / weights;
    let variance = squares * n / (n - 1.0);
    let scatter = student_t(n - 1.0, 0.975) * (2.0 * variance / n).sqrt();
    Some(libm::hypot(scatter, GRAIN))
}

/// The non-increasing chance to pass that is nearest to what was seen, by pooling neighbours that are out of order (Ayer et
/// al. 1955). A grey probe counts half; a longer one more.
fn isotonic(probes: &[&Probe]) -> Vec<Step> {
    let mut sorted: Vec<&Probe> = probes.to_vec();
    sorted.sort_by(|a, b| a.ask.rate_per_s.total_cmp(&b.ask.rate_per_s));
    let mut steps: Vec<Step> = Vec::new();
    for probe in sorted {
        let pass = match probe.outcome {
            Outcome::Pass => 1.0,
            Outcome::Grey => 0.5,
            Outcome::Fail => 0.0,
        };
        let rate_per_s = probe.ask.rate_per_s;
        let mut step =
            Step { from_per_s: rate_per_s, to_per_s: rate_per_s, pass, weight: f64::from(probe.ask.length) };
        // Probes of one rate are one step, whichever way they went.
        while let Some(before) =
            steps.pop_if(|before| before.pass < step.pass || before.to_per_s == step.from_per_s)
        {
            let weight = before.weight + step.weight;
            let pass = (before.pass * before.weight + step.pass * step.weight) / weight;
            step = Step { from_per_s: before.from_per_s, pass, weight, ..step };
        }
        steps.push(step);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::super::{Ask, Sighting, Why};
    use super::*;

    /// A rate that passed once and failed twice is no sure limit: the range goes on to what passed or failed alone.
    #[test]
    fn a_rate_that_passed_and_failed_has_a_range_around_it() {
        let probe = |(rate_per_s, outcome)| Probe {
            ask: Ask { rate_per_s, length: 1, why: Why::Search },
            sighting: Sighting {
                achieved_share: 1.0,
                value_s: None,
                errors: Estimate::exact(0.0),
                grows: false,
                disturbed: false,
            },
            outcome,
        };
        let seen = [
            (22_554.0, Outcome::Pass),
            (23_741.0, Outcome::Pass),
            (24_928.0, Outcome::Fail),
            (23_741.0, Outcome::Fail),
            (23_741.0, Outcome::Fail),
        ];
        let probes: Vec<Probe> = seen.map(probe).to_vec();
        let slo = "p99<50ms".parse().unwrap();
        let found = crossing(&probes, &Curve::new(1, 1e-4, 0.0), slo).unwrap();
        assert_eq!(found.interval, Some((22_554.0, 24_928.0)));
        assert!(found.contains(found.value), "{found:?}");
    }
}
