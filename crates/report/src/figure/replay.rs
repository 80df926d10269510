//! The replay of each point: every request's response as predicted over what was measured.

use kendall_solve::{Candidates, Pair};

use super::{Figure, Panel, Table, key, place_cells, place_head};
use crate::chart::{Frame, Quantity, Scale, ScaleLaw};
use crate::model::{Point, Report};
use crate::number::{NONE, percent};
use crate::replay;
use crate::svg::Svg;

const SIZE: (f64, f64) = (330.0, 300.0);
/// Dots nearer to each other than so many pixels are one to the eye.
const APART: f64 = 1.5;

/// Predicted over measured response, a panel for each point that was replayed; `None` if none was.
pub fn replay(report: &Report) -> Option<Figure> {
    let replayed = || report.points.iter().filter_map(|point| Some((point, point.replay.as_ref()?)));
    let panel = |(point, candidates): (&Point, &Candidates)| {
        let title = format!("{} · {}", report.place(point), replay::best_name(candidates));
        Panel { title, svg: draw(report, point, &candidates.best.pairs) }
    };
    let panels: Vec<Panel> = replayed().map(panel).collect();
    (!panels.is_empty()).then(|| Figure {
        title: "Each request, replayed".to_owned(),
        caption: format!(
            "A dot is a request: to the right what was measured, upwards what the replay predicts, both on log scales. On the \
             line the prediction is right; above it, it is too long. Each panel shows the candidate that explains its point \
             best. {}",
            replay::caption(report).unwrap_or_default()
        ),
        legend: vec![
            key("a request", |svg| svg.dots("replayed", &[(8.0, 9.0), (17.0, 6.0), (26.0, 10.0)])),
            key("predicted = measured", |svg| svg.line("diagonal", (1.0, 15.0), (33.0, 1.0))),
        ],
        panels,
        table: table(report, replayed()),
    })
}

fn draw(report: &Report, point: &Point, pairs: &[Pair]) -> String {
    let mut svg =
        Svg::new(SIZE.0, SIZE.1, &format!("Predicted and measured responses at {}", report.place(point)));
    let is_drawn = |pair: &&Pair| {
        [pair.measured_s, pair.predicted_s].iter().all(|time_s| time_s.is_finite() && *time_s > 0.0)
    };
    let drawn = || pairs.iter().filter(is_drawn).map(|pair| (pair.measured_s, pair.predicted_s));
    let span =
        drawn().fold((f64::INFINITY, 0.0f64), |(low, high), (x, y)| (low.min(x).min(y), high.max(x).max(y)));
    let (low, high) = if span.0 < span.1 { (span.0 / 1.1, span.1 * 1.1) } else { (1e-3, 1.0) };
    let frame = Frame {
        x: Scale::new(ScaleLaw::Log, (low, high), (56.0, SIZE.0 - 14.0)),
        y: Scale::new(ScaleLaw::Log, (low, high), (SIZE.1 - 48.0, 30.0)),
    };
    let ticks = frame.x.ticks(Quantity::Time);
    frame.draw_axes(&mut svg, &ticks, &ticks, ("measured response", "predicted response"));
    svg.line("diagonal", frame.at(low, low), frame.at(high, high));
    svg.dots("replayed", &apart(drawn().map(|(x, y)| frame.at(x, y))));
    svg.finish()
}

/// One of those dots that fall together.
fn apart(dots: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut seen = std::collections::BTreeSet::new();
    dots.filter(|&(x, y)| seen.insert(((x / APART) as i64, (y / APART) as i64))).collect()
}

fn table<'a>(report: &Report, replayed: impl Iterator<Item = (&'a Point, &'a Candidates)>) -> Table {
    let mut head = place_head(report);
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
        let mut row = place_cells(report, point);
        row.extend([
            best.compared.to_string(),
            replay::best_name(candidates),
            percent(best.fit.relative_error),
            percent(best.fit.mean_error.abs()),
            best.fit.correlation.map_or_else(|| NONE.to_owned(), |value| format!("{value:.3}")),
            if own.told_apart { "told apart".to_owned() } else { "not told apart".to_owned() },
            percent(own.fit.relative_error),
        ]);
        row
    };
    Table { head, rows: replayed.map(row).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_that_fall_together_are_drawn_once_and_no_place_is_lost() {
        let dots: Vec<(f64, f64)> =
            (0..5000).map(|i| (f64::from(i % 100), f64::from(i % 70) / 7.0)).collect();
        let kept = apart(dots.iter().copied());
        assert!(kept.len() < 700, "{}", kept.len());
        assert!(
            dots.iter()
                .all(|a| kept.iter().any(|b| (a.0 - b.0).abs() <= APART && (a.1 - b.1).abs() <= APART))
        );
    }
}
