//! Categories one below the other, each with its times: measured, by formula, by simulation. Names of any length fit
//! on the left, and rows to compare are neighbours.

use kendall_station::Estimate;

use super::models::{answer, line_class, marker_class, shape};
use super::response::{MEASURED, RISING_CAPTION, as_run_caption, overload_caption, table};
use super::{Figure, LOG_FROM, Shown};
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot};
use crate::svg::Marker;
use kendall_analysis::PredictedBy;
use kendall_analysis::report::factor::with_unit;
use kendall_analysis::{Point, Report};

const WIDTH: f64 = 720.0;
const ROW: f64 = 24.0;
/// Room for the axis below the rows, and above them.
const AXIS: f64 = 66.0;
/// A formula is a stroke of so much of a row, upwards and downwards.
const STROKE: f64 = 0.38;

/// One time for every point: a panel for each heading, whose rows differ in the last factor only, all to one scale.
pub(super) fn dots(report: &Report, shown: Shown) -> Figure {
    let factor = report.factors.last().map_or("", |factor| &factor.name);
    let mut caption = "Discs are measured, with bars for their 95 % intervals.".to_owned();
    if !report.notations().is_empty() {
        caption.push_str(" Upright strokes are formulas; hollow markers are simulations.");
    }
    if !report.points.iter().all(Point::is_steady) {
        caption.push_str(RISING_CAPTION);
    }
    caption.push_str(&overload_caption(report, "Where", "the mean is that of this many requests"));
    caption.push_str(as_run_caption(report));
    let x = axis(report, shown);
    let panel = |(heading, points): &(String, Vec<&Point>)| {
        (heading.clone(), plot(report, shown, heading, points, x.clone()))
    };
    Figure::of(
        format!("{} by {factor}", shown.title()),
        caption,
        report.headings().iter().map(panel).collect(),
        table(report, |answer| shown.of(answer)),
    )
}

fn label(report: &Report, point: &Point) -> String {
    report.factors.last().map_or(String::new(), |factor| with_unit(point.setting(&factor.name), &factor.unit))
}

/// The axis of times. Differences show best from nothing, ratios where times differ by orders of magnitude.
fn axis(report: &Report, shown: Shown) -> Axis {
    let measured = report.points.iter().filter_map(|point| shown.of(&point.measured)).flat_map(|estimate| {
        let (low, high) = estimate.interval.unwrap_or((estimate.value, estimate.value));
        [estimate.value, low.max(estimate.value / 2.0), high]
    });
    let models = report.points.iter().flat_map(|point| &point.models);
    let answers = models.flat_map(|model| [model.formula.answer(), model.simulation.answer()]).flatten();
    let modelled = answers.filter_map(|answer| Some(shown.of(answer)?.value));
    let finite = measured.chain(modelled).filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) =
        finite.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    let (law, range) = if high == 0.0 {
        (ScaleLaw::Linear, (0.0, 1.0))
    } else if high / low > LOG_FROM {
        (ScaleLaw::Log, (low / 1.4, high * 1.4))
    } else {
        (ScaleLaw::Linear, (0.0, high * 1.08))
    };
    Axis::times(shown.name(), law, range)
}

fn plot(report: &Report, shown: Shown, heading: &str, points: &[&Point], x: Axis) -> Plot {
    // The first row is the uppermost.
    let rows = || points.iter().enumerate().map(|(row, point)| (-(row as f64), *point));
    let count = points.len() as f64;
    let y = Axis {
        names: rows().map(|(y, point)| (y, label(report, point))).collect(),
        ..Axis::numbers("", ScaleLaw::Linear, (0.5 - count, 0.5))
    };
    let mut layers = Vec::new();
    for (model, notation) in report.notations().into_iter().enumerate() {
        let said = |way| {
            let of = move |(y, point)| Some((shown.of(answer(point, notation, way)?)?.value, y));
            rows().filter_map(of).collect::<Vec<(f64, f64)>>()
        };
        for (x, y) in said(PredictedBy::Formula) {
            let stroke = Marks::line([(x, y - STROKE), (x, y + STROKE)]);
            layers.push(Layer::new(
                format!("{notation} {}", PredictedBy::Formula),
                line_class(model),
                stroke,
            ));
        }
        let simulated = said(PredictedBy::Simulation);
        if !simulated.is_empty() {
            let markers = Marks::points(shape(model), simulated);
            layers.push(Layer::new(
                format!("{notation} {}", PredictedBy::Simulation),
                marker_class(model),
                markers,
            ));
        }
    }
    // A log axis has no place for the lower end of a wide interval: it is far out, then.
    let least = if x.law == ScaleLaw::Log { x.range.0 / 1e3 } else { f64::NEG_INFINITY };
    layers.extend(measured(
        least,
        rows().filter_map(|(y, point)| Some((y, point, shown.of(&point.measured)?))).collect(),
    ));
    let place = if heading.is_empty() { String::new() } else { format!(", {heading}") };
    let title = format!("{}{place}", shown.title());
    Plot { title, x, y, layers, size: (WIDTH, AXIS + ROW * count) }
}

/// What was measured in each row: a level bar for its interval, and a disc; a ring where it was not steady.
fn measured(least: f64, rows: Vec<(f64, &Point, Estimate)>) -> Vec<Layer> {
    let mut layers = Vec::new();
    for (y, _, estimate) in &rows {
        if let Some((low, high)) = estimate.interval {
            layers.push(Layer::new(MEASURED, "interval", Marks::line([(low.max(least), *y), (high, *y)])));
        }
    }
    let (steady, rising): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, point, _)| point.is_steady());
    let at = |(y, _, estimate): (f64, &Point, Estimate)| (estimate.value, y);
    layers.push(Layer::new(MEASURED, "measured", Marks::points(Marker::Disc, steady.into_iter().map(at))));
    if !rising.is_empty() {
        let rings = Marks::points(Marker::Ring, rising.into_iter().map(at));
        layers.push(Layer::new("measured, not steady", "measured rising", rings));
    }
    layers
}
