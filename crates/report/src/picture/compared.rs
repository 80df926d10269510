//! The picture of several stations while one quantity grows.

use kendall_station::Estimate;

use super::{Axis, AxisKind, Mark, Picture, Plot, Series};

/// The answers of one station along the range.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compared {
    /// The name in the legend.
    pub label: String,
    /// The mean response time by formula: where across, seconds.
    pub mean: Vec<(f64, f64)>,
    /// The 99th percentile by formula, where one is known.
    pub p99: Vec<(f64, f64)>,
    /// The mean by simulation, where no formula answers.
    pub simulated_mean: Vec<(f64, Estimate)>,
    /// The 99th percentile by simulation.
    pub simulated_p99: Vec<(f64, Estimate)>,
}

/// Draws stations: left the mean response time, right the 99th percentile of those of which it is known. `across` names the
/// quantity that grows, with its unit.
pub fn compared(title: String, across: &str, stations: &[Compared]) -> Picture {
    let mean = plot(across, "mean response time (log scale)", stations, |station| {
        (&station.mean, &station.simulated_mean)
    });
    let p99 = plot(across, "99th percentile of it (log scale)", stations, |station| {
        (&station.p99, &station.simulated_p99)
    });
    let plots = [mean, p99].into_iter().filter(|plot| !plot.series.is_empty());
    Picture { title, plots: plots.collect() }
}

type Ways<'s> = (&'s Vec<(f64, f64)>, &'s Vec<(f64, Estimate)>);

fn plot<'s>(
    across: &str,
    title: &str,
    stations: &'s [Compared],
    of: impl Fn(&'s Compared) -> Ways<'s>,
) -> Plot {
    let mut series = Vec::new();
    for (style, station) in stations.iter().enumerate() {
        let (formula, simulation) = of(station);
        if !formula.is_empty() {
            series.push(Series::new(&station.label, Mark::Line(style), formula.clone()));
        }
        if !simulation.is_empty() {
            let points = simulation.iter().map(|(x, estimate)| (*x, estimate.value)).collect();
            let bar = |(x, estimate): &(f64, Estimate)| estimate.interval.map(|(from, to)| (*x, from, to));
            let intervals = simulation.iter().filter_map(bar).collect();
            let label = format!("{}, by simulation", station.label);
            series.push(Series { intervals, ..Series::new(label, Mark::Hollow(style), points) });
        }
    }
    Plot {
        across: Axis::new(across, AxisKind::Numbers),
        upwards: Axis::new(title, AxisKind::TimesByRatio),
        series,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;

    /// Colour and dashes together distinguish eight lines.
    #[test]
    fn eight_stations_have_eight_styles() {
        let station = |label: usize| Compared {
            label: format!("station {label}"),
            mean: vec![(0.1, 1.0), (0.9, 10.0)],
            ..Compared::default()
        };
        let stations: Vec<Compared> = (0..8).map(station).collect();
        let picture = compared("eight".into(), "utilisation", &stations);
        assert_eq!(picture.plots.len(), 1, "no station has a 99th percentile");
        for style in [Style::Screen, Style::Paper, Style::Slides] {
            let svg = picture.svg(style);
            let lines: std::collections::BTreeSet<&str> =
                svg.split("<polyline class=\"").skip(1).map(|rest| rest.split_once('"').unwrap().0).collect();
            assert_eq!(lines.len(), 8, "{lines:?}");
            assert_eq!(style == Style::Screen, svg.contains("var("), "{style:?}");
        }
    }
}
