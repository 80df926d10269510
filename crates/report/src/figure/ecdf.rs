//! The distribution of response times: measured as a staircase, modelled by its quantiles.

use super::time_cell;
use super::{
    Figure, Panel, Table, answer, key, line_class, marker_class, model_keys, place_cells, place_head, shape,
};
use crate::chart::{Frame, Quantity, Scale, ScaleLaw, Tick};
use crate::finding::Way;
use crate::model::{Point, Report};
use crate::svg::Svg;

const SIZE: (f64, f64) = (360.0, 250.0);

/// The quantiles of the table.
const SHOWN: [f64; 5] = [0.50, 0.75, 0.90, 0.99, 0.999];

/// The share of requests answered within a time: a panel for each point, all to one scale.
pub fn ecdf(report: &Report) -> Figure {
    let steady = span(report.points.iter().filter(|point| point.is_steady()));
    // A queue that grows without bound would leave the others no room.
    let panel = |point: &Point| {
        let span = if point.is_steady() { steady } else { span(std::iter::once(point)) };
        Panel { title: report.place(point), svg: draw(report, point, span) }
    };
    let mut legend = vec![key("measured", |svg| {
        svg.polyline("ecdf", &[(1.0, 14.0), (12.0, 14.0), (12.0, 8.0), (22.0, 8.0), (22.0, 2.0), (33.0, 2.0)])
    })];
    legend.extend(model_keys(report, |answer| !answer.response.quantiles.is_empty()));
    Figure {
        title: "Share of requests answered within a time".to_owned(),
        caption: "The staircase counts measured response times. Each model is drawn at the quantiles it has: formulas as \
                  lines through them, simulations as hollow markers. Where a model lies to the right of the staircase it \
                  predicts longer times than were measured. Times are on a log scale, the same in every panel but those of \
                  points that are not steady."
            .to_owned(),
        legend,
        panels: report.points.iter().filter(|point| !point.responses_s.is_empty()).map(panel).collect(),
        table: table(report),
    }
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

fn draw(report: &Report, point: &Point, (low, high): (f64, f64)) -> String {
    let mut svg = Svg::new(SIZE.0, SIZE.1, &format!("Response times at {}", report.place(point)));
    let frame = Frame {
        x: Scale::new(ScaleLaw::Log, (low / 1.15, high * 1.15), (46.0, SIZE.0 - 14.0)),
        y: Scale::new(ScaleLaw::Linear, (0.0, 1.0), (SIZE.1 - 48.0, 30.0)),
    };
    let tick = |percent: u32| Tick { value: f64::from(percent) / 100.0, label: Some(format!("{percent} %")) };
    let upwards: Vec<Tick> = [0, 25, 50, 75, 100].into_iter().map(tick).collect();
    let titles = ("response time (log scale)", "requests answered");
    frame.draw_axes(&mut svg, &frame.x.ticks(Quantity::Time), &upwards, titles);
    svg.polyline("ecdf", &staircase(&positive(point).collect::<Vec<_>>(), &frame));
    for (model, notation) in report.notations().into_iter().enumerate() {
        let pixels = |way| {
            let quantiles = answer(point, notation, way).map_or(&[][..], |answer| &answer.response.quantiles);
            let inside = quantiles.iter().filter(|quantile| frame.x.contains(quantile.value_s.value));
            inside.map(|quantile| frame.at(quantile.value_s.value, quantile.p)).collect::<Vec<_>>()
        };
        svg.polyline(&line_class(model), &pixels(Way::Formula));
        for pixel in pixels(Way::Simulation) {
            svg.marker(&marker_class(model), shape(model), pixel);
        }
    }
    svg.finish()
}

/// The empirical distribution in pixels, exact to a pixel: of the steps in one column only the last is kept.
fn staircase(sample_s: &[f64], frame: &Frame) -> Vec<(f64, f64)> {
    let (left, right) = frame.x.pixels();
    let mut steps = vec![(left, frame.y.at(0.0))];
    for (before, time_s) in sample_s.iter().enumerate() {
        let x = frame.x.at(*time_s).clamp(left, right);
        let (share, last) = ((before + 1) as f64 / sample_s.len() as f64, steps.len() - 1);
        let y = frame.y.at(share);
        if x - steps[last].0 < 0.5 && last > 0 {
            steps[last].1 = y;
        } else {
            steps.extend([(x, steps[last].1), (x, y)]);
        }
    }
    let end = steps[steps.len() - 1].1;
    steps.push((right, end));
    steps
}

fn table(report: &Report) -> Table {
    let mut head = place_head(report);
    head.push("who".to_owned());
    head.extend(SHOWN.map(|p| format!("p{}", (p * 1000.0).round() / 10.0)));
    let mut rows = Vec::new();
    for point in &report.points {
        let mut answers = vec![("measured".to_owned(), &point.measured)];
        for notation in report.notations() {
            for way in [Way::Formula, Way::Simulation] {
                answers
                    .extend(answer(point, notation, way).map(|answer| (format!("{notation} {way}"), answer)));
            }
        }
        for (who, answer) in answers {
            let mut row = place_cells(report, point);
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
    fn the_staircase_climbs_from_none_to_all_and_keeps_every_column() {
        let frame = Frame {
            x: Scale::new(ScaleLaw::Log, (1e-3, 1.0), (0.0, 300.0)),
            y: Scale::new(ScaleLaw::Linear, (0.0, 1.0), (100.0, 0.0)),
        };
        let sample: Vec<f64> = (0..10_000).map(|i| 2e-3 * 200f64.powf(f64::from(i) / 1e4)).collect();
        let steps = staircase(&sample, &frame);
        assert!(steps.len() < 1300, "{} steps", steps.len());
        assert_eq!((steps[0].1, steps[steps.len() - 1]), (100.0, (300.0, 0.0)));
        assert!(steps.windows(2).all(|pair| pair[0].0 <= pair[1].0 && pair[0].1 >= pair[1].1));
        for p in [0.1, 0.5, 0.9] {
            let x = frame.x.at(sample[(p * 1e4) as usize]);
            let below = steps.iter().rev().find(|step| step.0 <= x).expect("starts at the left");
            assert!((below.1 - frame.y.at(p)).abs() < 0.5, "{p}: {below:?}");
        }
    }
}
