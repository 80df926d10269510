//! The distribution of response times: measured as a staircase, modelled by its quantiles.

use super::Figure;
use super::models::{answer, model_layers};
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot};
use kendall_analysis::PredictedBy;
use kendall_analysis::Table;
use kendall_analysis::table::time_cell;
use kendall_analysis::{Point, Report};

const SIZE: (f64, f64) = (360.0, 250.0);

/// The quantiles of the table.
const SHOWN: [f64; 5] = [0.50, 0.75, 0.90, 0.99, 0.999];

/// The share of requests answered within a time: a panel for each point, all to one scale.
pub fn ecdf(report: &Report) -> Figure {
    let steady = span(report.points.iter().filter(|point| point.is_steady()));
    // A queue that grows without bound would leave the others no room.
    let panel = |point: &Point| {
        let span = if point.is_steady() { steady } else { span(std::iter::once(point)) };
        (report.place(point), plot(report, point, span))
    };
    Figure::of(
        "Share of requests answered within a time",
        "The staircase shows the measured response times. Each model is drawn at the quantiles it has: formulas as lines through them, \
         simulations as hollow markers. Where a model lies to the right of the staircase it predicts longer times than were measured. \
         Times are on a log scale, the same in every panel except those of points that are not steady.",
        report.points.iter().filter(|point| !point.responses_s.is_empty()).map(panel).collect(),
        table(report),
    )
}

/// The least and the largest time to show, over some points. Half a thousandth is cut off at each end: single requests
/// would set the scale.
fn span<'a>(points: impl Iterator<Item = &'a Point>) -> (f64, f64) {
    let (mut low, mut high) = (f64::INFINITY, 0.0f64);
    for point in points {
        let sample: Vec<f64> = positive(point).collect();
        let Some(last) = sample.len().checked_sub(1) else { continue };
        let cut = sample.len() / 2000;
        let slowest =
            point.models.iter().flat_map(|model| [model.formula.answer(), model.simulation.answer()]);
        let modelled = slowest.flatten().filter_map(|answer| Some(answer.response.quantile(0.99)?.value));
        low = low.min(sample[cut]);
        high = modelled.filter(|time_s| time_s.is_finite()).fold(high.max(sample[last - cut]), f64::max);
    }
    if low < high { (low, high) } else { (1e-3, 1.0) }
}

/// The response times that a log axis can show.
fn positive(point: &Point) -> impl Iterator<Item = f64> {
    point.responses_s.iter().copied().filter(|time_s| time_s.is_finite() && *time_s > 0.0)
}

fn plot(report: &Report, point: &Point, (low, high): (f64, f64)) -> Plot {
    let range = (low / 1.15, high * 1.15);
    let quantiles = |notation: &str, way| {
        let quantiles = answer(point, notation, way).map_or(&[][..], |answer| &answer.response.quantiles);
        quantiles.iter().map(|quantile| (quantile.value_s.value, quantile.p)).collect()
    };
    let staircase = staircase(&positive(point).collect::<Vec<_>>(), range);
    let mut layers = vec![Layer::new("measured", "ecdf", Marks::step(staircase))];
    layers.extend(model_layers(report, quantiles));
    Plot {
        title: format!("Response times at {}", report.place(point)),
        x: Axis::times("response time", ScaleLaw::Log, range),
        y: Axis::shares("requests answered", ScaleLaw::Linear, (0.0, 1.0)),
        layers,
        size: SIZE,
    }
}

/// The share of the sorted sample up to each time, from one end to the other.
fn staircase(sample_s: &[f64], (from, to): (f64, f64)) -> Vec<(f64, f64)> {
    let all = sample_s.len() as f64;
    let step = |(before, time_s): (usize, &f64)| (*time_s, (before + 1) as f64 / all);
    let first = (from.min(sample_s.first().copied().unwrap_or(from)), 0.0);
    let last = (to.max(sample_s.last().copied().unwrap_or(to)), 1.0);
    std::iter::once(first).chain(sample_s.iter().enumerate().map(step)).chain([last]).collect()
}

fn table(report: &Report) -> Table {
    let mut head = report.place_head();
    head.push("who".to_owned());
    head.extend(SHOWN.map(|p| format!("p{}", (p * 1000.0).round() / 10.0)));
    let mut rows = Vec::new();
    for point in &report.points {
        let mut answers = vec![("measured".to_owned(), &point.measured)];
        for notation in report.notations() {
            for way in [PredictedBy::Formula, PredictedBy::Simulation] {
                answers
                    .extend(answer(point, notation, way).map(|answer| (format!("{notation} {way}"), answer)));
            }
        }
        for (who, answer) in answers {
            let mut row = report.place_cells(point);
            row.push(who);
            row.extend(SHOWN.map(|p| time_cell(answer.response.quantile(p))));
            rows.push(row);
        }
    }
    Table { head, rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_staircase_climbs_from_none_to_all() {
        let sample: Vec<f64> = (0..1000).map(|i| 2e-3 * 200f64.powf(f64::from(i) / 1e3)).collect();
        let steps = staircase(&sample, (1e-3, 1.0));
        assert_eq!((steps[0], steps[steps.len() - 1]), ((1e-3, 0.0), (1.0, 1.0)));
        assert!(steps.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 <= pair[1].1));
        for (place, time_s) in sample.iter().enumerate() {
            let at = steps.iter().rfind(|step| step.0 <= *time_s).expect("starts before all");
            assert_eq!(at.1, (place + 1) as f64 / 1e3);
        }
    }
}
