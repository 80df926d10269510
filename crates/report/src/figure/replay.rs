//! The replay of each point: the predicted response of every request over the measured one.

use kendall_analysis::Table;
use kendall_evidence::{Candidates, Pair};

use super::Figure;
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot};
use crate::svg::Marker;
use kendall_analysis::replay;
use kendall_analysis::{Point, Report};
use kendall_stats::number::{NONE, percent};

const SIZE: (f64, f64) = (330.0, 300.0);

/// Predicted over measured response, a panel for each point that was replayed; `None` if none was.
pub fn replay(report: &Report) -> Option<Figure> {
    let replayed = || report.points.iter().filter_map(|point| Some((point, point.replay.as_ref()?)));
    let panel = |(point, candidates): (&Point, &Candidates)| {
        let title = format!("{} · {}", report.place(point), replay::best_name(candidates));
        (title, plot(report, point, &candidates.best.pairs))
    };
    let plots: Vec<(String, Plot)> = replayed().map(panel).collect();
    (!plots.is_empty()).then(|| {
        let caption = format!(
            "Each dot is a request: measured response time on the x axis, predicted by the replay on the y axis, both on log scales. \
             On the line the prediction is exact; above it, the replay overestimates. Each panel shows the candidate that explains its \
             point best. {}",
            replay::caption(report).unwrap_or_default()
        );
        Figure::of("Each request, replayed", caption, plots, table(report, replayed()))
    })
}

fn plot(report: &Report, point: &Point, pairs: &[Pair]) -> Plot {
    let is_drawn = |pair: &&Pair| {
        [pair.measured_s, pair.predicted_s].iter().all(|time_s| time_s.is_finite() && *time_s > 0.0)
    };
    let drawn = || pairs.iter().filter(is_drawn).map(|pair| (pair.measured_s, pair.predicted_s));
    let span =
        drawn().fold((f64::INFINITY, 0.0f64), |(low, high), (x, y)| (low.min(x).min(y), high.max(x).max(y)));
    let (low, high) = if span.0 < span.1 { (span.0 / 1.1, span.1 * 1.1) } else { (1e-3, 1.0) };
    let axis = |title| Axis::times(title, ScaleLaw::Log, (low, high));
    Plot {
        title: format!("Predicted and measured responses at {}", report.place(point)),
        x: axis("measured response"),
        y: axis("predicted response"),
        layers: vec![
            Layer::new("predicted = measured", "diagonal", Marks::line([(low, low), (high, high)])),
            Layer::new("a request", "replayed", Marks::points(Marker::Dot, drawn())),
        ],
        size: SIZE,
    }
}

fn table<'a>(report: &Report, replayed: impl Iterator<Item = (&'a Point, &'a Candidates)>) -> Table {
    let mut head = report.place_head();
    let own = [
        "requests",
        "explained best by",
        "error of each",
        "of the mean",
        "correlation",
        "system's own",
        "its error",
    ];
    head.extend(own.map(str::to_owned));
    let row = |(point, candidates): (&Point, &Candidates)| {
        let (best, own) = (&candidates.best, &candidates.ranked[candidates.own]);
        let mut row = report.place_cells(point);
        row.extend([
            best.compared.to_string(),
            replay::best_name(candidates),
            percent(best.fit.relative_error),
            percent(best.fit.mean_error.abs()),
            best.fit.correlation.map_or_else(|| NONE.to_owned(), |value| format!("{value:.3}")),
            if own.told_apart { "distinguishable".to_owned() } else { "not distinguishable".to_owned() },
            percent(own.fit.relative_error),
        ]);
        row
    };
    Table { head, rows: replayed.map(row).collect() }
}
