//! Reads the points that a model is fitted to from records.

use std::path::Path;

use kendall_evidence::fit::{Load, Observation, Stamped};
use kendall_station::{Arrivals, By, Law};

use super::{Measurement, Sample};
use crate::attempts::{done, usual};
use crate::axis::Axis;
use kendall_experiment::{Combination, RunError, RunFolder};
use kendall_system::System;

/// The points of a run that differ in their load only.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The values of the other factors, as "length 3, workers 2"; empty where only the load varies.
    pub group: String,
    /// The measured points.
    pub points: Vec<Observation>,
    /// Conditions of the load that the models ignore.
    pub doubts: Vec<String>,
}

/// The factors that are the load of a point, and not another system.
const LOADS: [&str; 3] = ["rate", "gap", "users"];

/// Reads the trials of a run that are done.
///
/// # Errors
/// Fails where the folder holds no run.
pub fn observe(folder: &Path, systems: &'static [System]) -> Result<Vec<Points>, RunError> {
    let run = RunFolder::open(folder, systems)?;
    let capacities = run.capacities()?;
    let axis = Axis::of(&run, &capacities);
    let usual = usual(&run, &done(&run)?);
    let mut all: Vec<Points> = Vec::new();
    for (index, combination) in axis.in_order(&run) {
        let sample = Sample::read(&run, index, &usual);
        if sample.trials.is_empty() {
            continue;
        }
        let group = group_of(&axis, combination);
        let place = all.iter().position(|known| known.group == group).unwrap_or_else(|| {
            all.push(Points { group, points: Vec::new(), doubts: Vec::new() });
            all.len() - 1
        });
        match Measurement::of(&run, index, &capacities, &sample) {
            Err(why) => all[place].doubts.push(why),
            Ok(measurement) => {
                let servers = (run.experiment().system.station)(&combination.server).servers.get();
                all[place].doubts.extend(doubt(&measurement.arrivals));
                all[place].points.extend(point(&measurement, &sample, servers));
            }
        }
    }
    for observed in &mut all {
        observed.doubts.sort();
        observed.doubts.dedup();
    }
    Ok(all)
}

/// The values of the factors that are not the load, as text.
pub(crate) fn group_of(axis: &Axis, combination: &Combination) -> String {
    let settings = axis.settings(combination).into_iter();
    let others = settings.filter(|(name, _)| !LOADS.contains(&name.as_str()));
    others.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
}

fn point(measurement: &Measurement, sample: &Sample, servers: u32) -> Option<Observation> {
    let load = match &measurement.arrivals {
        Arrivals::Closed { population, think } => {
            Load::Closed { users: *population, think_s: think.mean_s() }
        }
        open => Load::Open { rate_per_s: open.rate_per_s()? },
    };
    let answer = &measurement.answer;
    let half_width = |estimate: kendall_station::Estimate| estimate.interval.map(|_| estimate.half_width());
    let grows = sample.growth().map(|growth| {
        format!(
            "its response times grew from {:.3} s in the first half of the trials to {:.3} s in the second, so there is no steady \
             state and their mean depends on the length of the trial",
            growth.first_half_s, growth.second_half_s
        )
    });
    let By::Measurement { requests, .. } = answer.by else { return None };
    Some(Observation {
        response_s: Some(answer.response.mean_s.value),
        response_half_width_s: half_width(answer.response.mean_s),
        quantiles_s: answer.response.quantiles.iter().map(|q| (q.p, q.value_s.value)).collect(),
        throughput_per_s: matches!(load, Load::Closed { .. }).then_some(answer.throughput_per_s.value),
        throughput_half_width_per_s: half_width(answer.throughput_per_s),
        cpu_cores: sample.server_cpu_cores(),
        service: stamped(&measurement.services_s),
        servers: Some(servers),
        delay_s: (!measurement.services_s.is_empty()).then_some(measurement.delay_s),
        lost: Some(answer.lost.value),
        requests: Some(requests as f64),
        unsteady: grows,
        ..Observation::at(sample.trials[0].id.clone(), load)
    })
}

fn stamped(services_s: &[f64]) -> Option<Stamped> {
    let law = Law::empirical(services_s.to_vec()).ok()?;
    let mean_s = law.mean_s();
    let scv = law.moment(2) / (mean_s * mean_s) - 1.0;
    Some(Stamped { mean_s, scv: Some(scv.max(0.0)), n: Some(services_s.len() as f64) })
}

/// What of the arrivals the models do not take into account.
fn doubt(arrivals: &Arrivals) -> Option<String> {
    let other = match arrivals {
        Arrivals::Open { gap: Law::Exponential { .. } } | Arrivals::Closed { .. } => return None,
        Arrivals::Open { gap } => gap.name(),
        Arrivals::Sessions(_) => "those of sessions",
        Arrivals::Attended(_) => "those of sessions that start and end",
        _ => "recorded, or of a rate that changes",
    };
    Some(format!("the gaps between arrivals are {other}; the models assume exponential gaps"))
}
