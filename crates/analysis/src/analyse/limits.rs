//! The machine's limits, and the parts of them that trials used.

use kendall_record::Outcome;

use super::{Sample, Tried};
use crate::machine_limits::{LimitDemand, MeasuredLimit, MeasuredValue};
use crate::report::Report;
use crate::report::limits::{LimitUnit, LimitUse, LimitsUsed};
use crate::trial_result::{Measured, TrialResult};

/// What the best trial of a point used; `None` where none has an answer.
pub(super) fn used(
    point: usize,
    sample: &Sample,
    limits: Option<&[MeasuredLimit]>,
    cores: usize,
) -> Option<LimitsUsed> {
    let limits = limits?;
    let throughput_per_s = |tried: &Tried| match &tried.result.measured {
        Measured::Answer(answer) => Some(answer.throughput_per_s.value),
        Measured::NoAnswer(_) => None,
    };
    let all = sample.trials.iter().filter_map(|tried| Some((tried, throughput_per_s(tried)?)));
    let (best, throughput_per_s) = all.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let (mut uses, mut missing) = (Vec::new(), Vec::new());
    for limit in limits {
        match of_limit(limit, &best.result, cores as f64) {
            Ok(one) => uses.push(one),
            Err(why) => {
                missing.push(format!("There is no figure for {}: {}.", limit.name, why.trim_end_matches('.')))
            }
        }
    }
    uses.extend(processors(&best.result, cores as f64));
    Some(LimitsUsed { point, trial: best.id.clone(), throughput_per_s, uses, missing })
}

/// Of points that differ in the first factor only, the one with the highest throughput.
pub(super) fn best(report: &Report, all: Vec<LimitsUsed>) -> Vec<LimitsUsed> {
    let group = |used: &LimitsUsed| report.group_name(&report.points[used.point].settings);
    let mut best: Vec<(String, LimitsUsed)> = Vec::new();
    for used in all {
        let group = group(&used);
        match best.iter_mut().find(|(known, _)| *known == group) {
            Some((_, known)) if known.throughput_per_s >= used.throughput_per_s => {}
            Some((_, known)) => *known = used,
            None => best.push((group, used)),
        }
    }
    best.into_iter().map(|(_, used)| used).collect()
}

/// What requests of a trial used of a limit, or why that is not known.
fn of_limit(limit: &MeasuredLimit, trial: &TrialResult, cores: f64) -> Result<LimitUse, String> {
    let value = match &limit.value {
        MeasuredValue::Value(value) => *value,
        MeasuredValue::NotMeasured(why) => return Err(why.clone()),
    };
    let per_answer = |count: u64| count as f64 / trial.run.count(Outcome::Answered).max(1) as f64;
    let (unit, allowed, per_request) = match &limit.demand {
        LimitDemand::Connections => (LimitUnit::PerSecond, value, per_answer(trial.run.connections_opened)),
        LimitDemand::Counted(name) => {
            let count =
                trial.counted.get(name).ok_or_else(|| format!("the server did not count its {name}"))?;
            (LimitUnit::PerSecond, value, per_answer(*count))
        }
        LimitDemand::Processors => (LimitUnit::Cores, cores, value),
    };
    let name = limit.name.clone();
    Ok(LimitUse { name, unit, allowed, per_request, others: 0.0, is_whole_machine: false })
}

/// The processors, which server, generator and other programs share; `None` where the server's time is not known.
fn processors(trial: &TrialResult, cores: f64) -> Option<LimitUse> {
    let answered = trial.run.count(Outcome::Answered).max(1) as f64;
    Some(LimitUse {
        name: "processors".to_owned(),
        unit: LimitUnit::Cores,
        allowed: cores,
        per_request: (trial.server?.cpu_s + trial.run.generator_cpu_s) / answered,
        others: trial.disturbance.map_or(0.0, |seen| seen.share() * cores),
        is_whole_machine: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disturbance::Disturbance;
    use crate::trial_result::ServerUsage;

    /// A trial whose 100 requests were answered, over 20 connections.
    fn trial() -> TrialResult {
        let mut trial: TrialResult =
            serde_json::from_str(include_str!("../../testdata/answer-of-trial.json")).unwrap();
        trial.run.ended = [0; 5];
        trial.run.ended[Outcome::Answered as usize] = 100;
        trial.run.connections_opened = 20;
        trial.run.generator_cpu_s = 0.01;
        trial.server = Some(ServerUsage { cpu_s: 0.04, peak_memory_bytes: 0 });
        trial.disturbance = Some(Disturbance { foreign_share: 0.1, steal_share: 0.1, resolution_share: 0.0 });
        trial.counted = [("transactions".to_owned(), 5)].into();
        trial
    }

    fn of(demand: LimitDemand, value: f64) -> Result<(f64, f64), String> {
        let limit = MeasuredLimit { name: "it".to_owned(), demand, value: MeasuredValue::Value(value) };
        of_limit(&limit, &trial(), 2.0).map(|one| (one.allowed, one.per_request))
    }

    #[test]
    fn a_request_uses_what_the_trial_used_for_each_answer() {
        assert_eq!(of(LimitDemand::Connections, 9000.0), Ok((9000.0, 0.2)));
        assert_eq!(of(LimitDemand::Counted("transactions".to_owned()), 300.0), Ok((300.0, 0.05)));
        assert_eq!(of(LimitDemand::Processors, 1e-3), Ok((2.0, 1e-3)));
        let all = processors(&trial(), 2.0).unwrap();
        assert!((all.per_request - 5e-4).abs() < 1e-12 && (all.others - 0.4).abs() < 1e-12, "{all:?}");
        assert_eq!(processors(&TrialResult { server: None, ..trial() }, 2.0), None);
    }

    #[test]
    fn what_was_not_counted_or_not_measured_is_missing_with_the_reason() {
        let why = of(LimitDemand::Counted("flights".to_owned()), 300.0).unwrap_err();
        assert_eq!(why, "the server did not count its flights");
        let value = MeasuredValue::NotMeasured("no space".to_owned());
        let limit = MeasuredLimit { name: "it".to_owned(), demand: LimitDemand::Connections, value };
        assert_eq!(of_limit(&limit, &trial(), 2.0), Err("no space".to_owned()));
    }
}
