//! The picture of a fit: measured points and the models that predict them best.

use kendall_evidence::fit::{Candidate, Fit, Load, Observation};

use super::{Axis, AxisKind, Mark, Picture, Plot, Series};

/// Models that are drawn.
const SHOWN: usize = 3;
/// Places on a line.
const STEPS: u32 = 120;

/// Draws measured response time and, for a closed population, throughput, with the best models through them. A dashed line
/// marks the end of the loads that the models were fitted on to be ranked.
pub fn fitted(title: String, fit: &Fit) -> Picture {
    let closed = matches!(fit.points.first().map(|point| point.load), Some(Load::Closed { .. }));
    let across = if closed { "users" } else { "arrival rate [1/s]" };
    let plot = |title: &str, kind, of: Of, seen: MeasuredValue| Plot {
        across: Axis::new(across, AxisKind::Numbers),
        upwards: Axis::new(title, kind),
        series: series(fit, of, seen),
    };
    let mut plots = vec![plot(
        "mean response time",
        AxisKind::Times,
        |candidate, load| candidate.model.response_s(load),
        |point| (point.response_s, point.response_half_width_s),
    )];
    if closed {
        plots.push(plot(
            "throughput [1/s]",
            AxisKind::Numbers,
            |candidate, load| candidate.model.throughput_per_s(load),
            |point| (point.throughput_per_s, point.throughput_half_width_per_s),
        ));
    }
    plots.retain(|plot| plot.series.iter().any(|series| series.mark == Mark::Disc));
    Picture { title, plots }
}

type Of = fn(&Candidate, &Load) -> Option<f64>;
type MeasuredValue = fn(&Observation) -> (Option<f64>, Option<f64>);

fn series(fit: &Fit, of: Of, seen: MeasuredValue) -> Vec<Series> {
    let measured = fit.points.iter().filter_map(|point| Some((point.load.size(), seen(point).0?)));
    let intervals = fit.points.iter().filter_map(|point| match seen(point) {
        (Some(value), Some(half)) => Some((point.load.size(), value - half, value + half)),
        _ => None,
    });
    let mut measured = Series::new("measured", Mark::Disc, measured.collect());
    measured.intervals = intervals.collect();
    let Some(last) = fit.points.last() else { return Vec::new() };
    if measured.points.is_empty() {
        return Vec::new();
    }
    let line = |(style, candidate): (usize, &Candidate)| {
        let at = |step: u32| {
            let load = scaled(&last.load, f64::from(step) / f64::from(STEPS));
            Some((load.size(), of(candidate, &load)?))
        };
        Series::new(candidate.name.clone(), Mark::Line(style), (1..=STEPS).filter_map(at).collect())
    };
    let mut all: Vec<Series> = fit.candidates.iter().take(SHOWN).enumerate().map(line).collect();
    all.push(measured);
    if let Some(split) = &fit.split {
        let end = vec![(split.up_to.size(), 0.0)];
        all.push(Series::new("fitted up to here for the ranking", Mark::Upright, end));
    }
    all
}

/// A share of a load; of users at least one.
fn scaled(load: &Load, share: f64) -> Load {
    match *load {
        Load::Open { rate_per_s } => Load::Open { rate_per_s: rate_per_s * share },
        Load::Closed { users, think_s } => {
            Load::Closed { users: ((f64::from(users) * share).round() as u32).max(1), think_s }
        }
    }
}
