//! What all probes together say: the chance to pass falls with the rate, and where it crosses one half is the answer.

use kendall_station::Estimate;

use super::{Outcome, Probe};

/// Rates that passed, some or all, in ascending order, with the chance to pass there.
struct Step {
    from_per_s: f64,
    to_per_s: f64,
    pass: f64,
    weight: f64,
}

/// The rate at which the chance to pass falls below one half, with the range in which it is neither one nor nought. `None` unless some
/// probe passed and the chance falls: probes that could not decide do not show that any rate meets the objective.
pub(super) fn crossing(probes: &[Probe]) -> Option<Estimate> {
    if probes.iter().all(|probe| probe.outcome != Outcome::Pass) {
        return None;
    }
    let steps = isotonic(probes);
    let above = steps.iter().rev().find(|step| step.pass > 0.5);
    let below = steps.iter().find(|step| step.pass < 0.5);
    let half: Vec<&Step> = steps.iter().filter(|step| step.pass == 0.5).collect();
    let (low, high) = match (half.first(), half.last()) {
        (Some(first), Some(last)) => (first.from_per_s, last.to_per_s),
        _ => (above?.to_per_s, below?.from_per_s),
    };
    let sure = steps.iter().rev().find(|step| step.pass == 1.0).map_or(0.0, |step| step.to_per_s);
    let never = steps.iter().find(|step| step.pass == 0.0).map_or(f64::INFINITY, |step| step.from_per_s);
    let value = (low * high).sqrt();
    Some(Estimate { value, interval: Some((sure.min(value), never.max(value))) })
}

/// The non-increasing chance to pass that is nearest to what was seen, by pooling neighbours that are out of order (Ayer et
/// al. 1955). A grey probe counts half; a longer one more.
fn isotonic(probes: &[Probe]) -> Vec<Step> {
    // Of a rate that was tried again for longer, the longer one counts: it saw all that the shorter did, and more.
    let is_replaced = |index: usize| {
        probes[index].outcome == Outcome::Grey
            && probes.get(index + 1).is_some_and(|next| next.ask.rate_per_s == probes[index].ask.rate_per_s)
    };
    let mut sorted: Vec<&Probe> =
        probes.iter().enumerate().filter(|(index, _)| !is_replaced(*index)).map(|(_, probe)| probe).collect();
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
        while let Some(before) = steps.pop_if(|before| before.pass < step.pass) {
            let weight = before.weight + step.weight;
            let pass = (before.pass * before.weight + step.pass * step.weight) / weight;
            step = Step { from_per_s: before.from_per_s, pass, weight, ..step };
        }
        steps.push(step);
    }
    steps
}
