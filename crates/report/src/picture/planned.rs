//! The picture of a plan: what a precision costs at other utilisations.

use kendall_theory::{Plan, Target};

use super::{Axis, AxisKind, Mark, Picture, Plot, Series};

/// Draws the requests that a precise mean takes along the utilisation.
pub fn planned(title: String, here: &Plan, line: &[(f64, Plan)]) -> Picture {
    let along = |of: &dyn Fn(&Plan) -> Option<Target>| -> Vec<(f64, f64)> {
        line.iter().filter_map(|(utilisation, plan)| Some((*utilisation, of(plan)?.requests))).collect()
    };
    let at = |target: &Target| vec![(here.utilisation, target.requests)];
    let mut series = vec![
        Series::new("for the mean response time", Mark::Line(0), along(&|plan| Some(plan.response))),
        Series::new("for the mean waiting time", Mark::Line(1), along(&|plan| plan.waiting)),
        Series::new("asked for", Mark::Hollow(0), at(&here.response)),
    ];
    series.extend(here.waiting.iter().map(|waiting| Series::new("", Mark::Hollow(1), at(waiting))));
    let requests = format!("requests for ± {} (log scale)", kendall_stats::number::percent(here.precision));
    Picture {
        title,
        plots: vec![Plot {
            across: Axis::new("utilisation", AxisKind::Numbers).between(0.0, 1.0),
            upwards: Axis::new(requests, AxisKind::NumbersByRatio),
            series,
        }],
    }
}
