//! The picture of one station: its answers under other loads, and the distribution of its response times.

use kendall_station::{Answer, Estimate};
use kendall_theory::{Along, Line, NetworkFormula};

use super::{Axis, AxisKind, Mark, Picture, Plot, Series};

/// Draws a station: left the response time under other loads, right the share of requests that take longer than a time.
pub fn station(
    title: String,
    line: Option<&Line<Answer>>,
    formula: Option<&Answer>,
    simulation: Option<&Answer>,
) -> Picture {
    let plots = line.map(|line| loads(line, simulation)).into_iter().chain([tails(formula, simulation)]);
    Picture { title, plots: plots.filter(|plot| !plot.series.is_empty()).collect() }
}

/// Draws a network: the time from coming to leaving, and what each station has of it, under other loads.
pub fn network(title: String, line: &Line<NetworkFormula>, simulation: Option<&Answer>) -> Picture {
    let along = |of: &dyn Fn(&NetworkFormula) -> f64| -> Vec<(f64, f64)> {
        line.points.iter().map(|(load, answer)| (*load, of(answer))).collect()
    };
    let mut series =
        vec![Series::new("all stations, by formula", Mark::Line(0), along(&|answer| answer.response_s))];
    let names = line.points.first().map_or(&[][..], |(_, answer)| &answer.nodes);
    for (place, node) in names.iter().enumerate() {
        let spent = along(&|answer| answer.nodes[place].visits * answer.nodes[place].response_s);
        series.push(Series::new(format!("{}, all visits", node.name), Mark::Line(place + 1), spent));
    }
    series.extend(
        simulation.map(|answer| dot("all stations, by simulation", 0, line.here, answer.response.mean_s)),
    );
    let rate = along(&|answer| answer.throughput_per_s);
    let mut plots = vec![over(line.along, "mean time (log scale)", AxisKind::TimesByRatio, series)];
    if line.along == Along::Users {
        let throughput = vec![Series::new("by formula", Mark::Line(0), rate)];
        plots.push(over(line.along, "throughput [1/s]", AxisKind::Numbers, throughput));
    }
    Picture { title, plots }
}

fn loads(line: &Line<Answer>, simulation: Option<&Answer>) -> Plot {
    let p99 = |answer: &Answer| answer.response.quantile(0.99);
    let along = |of: &dyn Fn(&Answer) -> Option<f64>| -> Vec<(f64, f64)> {
        line.points.iter().filter_map(|(load, answer)| Some((*load, of(answer)?))).collect()
    };
    let mut series = vec![
        Series::new("mean, by formula", Mark::Line(0), along(&|answer| Some(answer.response.mean_s.value))),
        Series::new("99th percentile, by formula", Mark::Line(1), along(&|answer| Some(p99(answer)?.value))),
    ];
    if let Some(simulation) = simulation {
        series.push(dot("mean, by simulation", 0, line.here, simulation.response.mean_s));
        series.extend(p99(simulation).map(|time| dot("99th percentile, by simulation", 1, line.here, time)));
    }
    series.retain(|series| !series.points.is_empty());
    over(line.along, "response time (log scale)", AxisKind::TimesByRatio, series)
}

/// What the simulation found at one load.
fn dot(label: &str, style: usize, load: f64, estimate: Estimate) -> Series {
    let intervals = estimate.interval.map(|(from, to)| (load, from, to)).into_iter().collect();
    Series { intervals, ..Series::new(label, Mark::Hollow(style), vec![(load, estimate.value)]) }
}

fn over(along: Along, title: &str, kind: AxisKind, series: Vec<Series>) -> Plot {
    let across = match along {
        Along::Rate => "arrival rate [1/s]",
        Along::Users => "users",
    };
    Plot { across: Axis::new(across, AxisKind::Numbers), upwards: Axis::new(title, kind), series }
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
