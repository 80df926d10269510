//! The picture of one station: what it answers under other loads, and how its response times spread.

use kendall_station::{Answer, Arrivals, Station};

use super::{Axis, AxisKind, Mark, Picture, Plot, Series};

/// Draws a station: left the response time under other loads, right the share of requests that take longer than a time.
/// `line` is the formula's answer along the load (arrival rate in 1/s, or users), as [`kendall_solve::sweep`] has it.
pub fn station(
    station: &Station,
    line: &[(f64, Answer)],
    formula: Option<&Answer>,
    simulation: Option<&Answer>,
) -> Picture {
    let (load, title) = match &station.arrivals {
        Arrivals::Closed { population, .. } => (f64::from(*population), "users"),
        open => (open.rate_per_s().unwrap_or(0.0), "arrival rate [1/s]"),
    };
    let plots = vec![loads(load, title, line, simulation), tails(formula, simulation)];
    Picture {
        title: station.to_string(),
        plots: plots.into_iter().filter(|plot| !plot.series.is_empty()).collect(),
    }
}

fn loads(load: f64, title: &str, line: &[(f64, Answer)], simulation: Option<&Answer>) -> Plot {
    let p99 = |answer: &Answer| answer.response.quantile(0.99);
    let along = |of: &dyn Fn(&Answer) -> Option<f64>| -> Vec<(f64, f64)> {
        line.iter().filter_map(|(load, answer)| Some((*load, of(answer)?))).collect()
    };
    let mut series = vec![
        Series::new("mean, by formula", Mark::Line(0), along(&|answer| Some(answer.response.mean_s.value))),
        Series::new("99th percentile, by formula", Mark::Line(1), along(&|answer| Some(p99(answer)?.value))),
    ];
    if let Some(simulation) = simulation {
        let estimates = [Some(simulation.response.mean_s), p99(simulation)];
        let labels = ["mean, by simulation", "99th percentile, by simulation"];
        for (style, (label, estimate)) in labels.into_iter().zip(estimates).enumerate() {
            let Some(estimate) = estimate else { continue };
            let intervals = estimate.interval.map(|(from, to)| (load, from, to));
            let dot = Series::new(label, Mark::Hollow(style), vec![(load, estimate.value)]);
            series.push(Series { intervals: intervals.into_iter().collect(), ..dot });
        }
    }
    series.retain(|series| !series.points.is_empty());
    let across = Axis::new(title, AxisKind::Numbers);
    Plot { across, upwards: Axis::new("response time (log scale)", AxisKind::TimesByRatio), series }
}

fn tails(formula: Option<&Answer>, simulation: Option<&Answer>) -> Plot {
    let points = |answer: Option<&Answer>| -> Vec<(f64, f64)> {
        let quantiles = answer.map_or(&[][..], |answer| &answer.response.quantiles);
        quantiles.iter().map(|quantile| (quantile.value_s.value, 1.0 - quantile.p)).collect()
    };
    let mut series = vec![
        Series::new("by formula", Mark::Line(0), points(formula)),
        Series::new("by simulation", Mark::Hollow(0), points(simulation)),
    ];
    series.retain(|series| !series.points.is_empty());
    Plot {
        across: Axis::new("response time", AxisKind::Times),
        upwards: Axis::new("share of requests that take longer (log scale)", AxisKind::NumbersByRatio),
        series,
    }
}
