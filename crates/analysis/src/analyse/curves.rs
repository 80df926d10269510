//! The formulas' lines along the rate.

use crate::models::Observed;
use crate::report::point::Curve;
use crate::scaling::Populations;
use crate::thin::sorted;
use kendall_station::{Answer, Arrivals, Notation};

use super::Measurement;
use super::stations;
use crate::axis::Axis;
use kendall_experiment::Combination;
use kendall_experiment::RunFolder;

/// The later factors' values, and the points that have them.
type Group<'a> = (Vec<(String, String)>, Vec<&'a (&'a Combination, Measurement)>);

/// The formulas' lines along the rate, up to where they have no answer. For a group of points whose service
/// times differ a little, the line takes all of them together.
pub(super) fn curves(run: &RunFolder, axis: &Axis, measured: &[(&Combination, Measurement)]) -> Vec<Curve> {
    if !axis.is_rate() {
        return Vec::new();
    }
    let groups = groups(axis, measured);
    let curves_of = |(group, points): &Group<'_>| {
        let (combination, first) = points[0];
        let services_s = sorted(points.iter().flat_map(|(_, point)| point.services_s.iter().copied()));
        let delay_s = points.iter().map(|(_, point)| point.delay_s).sum::<f64>() / points.len() as f64;
        let observed = Observed { services_s: &services_s, delay_s, ..first.observed(run, combination) };
        let rates = points.iter().filter_map(|(_, point)| point.arrivals.rate_per_s());
        let most_per_s = 1.05 * rates.fold(0.0, f64::max);
        let curve = |notation: &Notation| {
            let answers = observed.curve(notation, most_per_s);
            let along = |of: &dyn Fn(&Answer) -> f64| {
                answers.iter().map(|(rate_per_s, answer)| (*rate_per_s, of(answer))).collect::<Vec<_>>()
            };
            let loses = answers.iter().any(|(_, answer)| answer.lost.value > 0.0);
            Curve {
                notation: observed.label(notation, stations::varied(run)),
                group: group.clone(),
                mean_response_s: along(&|answer| answer.response.mean_s.value),
                mean_waiting_s: along(&|answer| answer.waiting.mean_s.value),
                throughput_per_s: match loses {
                    true => along(&|answer| answer.throughput_per_s.value),
                    false => Vec::new(),
                },
            }
        };
        observed.notations(&stations::named(run)).iter().map(curve).collect::<Vec<_>>()
    };
    groups.iter().flat_map(curves_of).filter(|curve| !curve.mean_response_s.is_empty()).collect()
}

/// The points in groups that differ in the first factor only.
fn groups<'a>(axis: &Axis, measured: &'a [(&'a Combination, Measurement)]) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    for point in measured {
        let group = axis.settings(point.0).into_iter().skip(1).collect::<Vec<_>>();
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, points)) => points.push(point),
            None => groups.push((group, vec![point])),
        }
    }
    groups
}

/// The populations of each group and the throughput with each, where the load is one.
pub(super) fn populations(
    axis: &Axis,
    measured: &[(&Combination, Measurement)],
) -> Vec<(Vec<(String, String)>, Populations)> {
    let population = |(_, measurement): &&(&Combination, Measurement)| match measurement.arrivals {
        Arrivals::Closed { population, .. } => Some((population, measurement.answer.throughput_per_s.value)),
        _ => None,
    };
    let of_group = |(group, points): Group<'_>| (group, points.iter().map(population).collect());
    groups(axis, measured).into_iter().map(of_group).collect()
}
