//! Categories one below the other, each with its times: measured, by formula, by simulation. Names of any length have
//! room on the left, and what is to be compared stands in neighbouring rows.

use super::response::{MEASURED, RISING_CAPTION, as_run_caption, is_over, table};
use super::{Figure, Key, LOG_FROM, Panel, Shown, answer, line_class, marker_class, shape};
use crate::chart::{Quantity, Scale, ScaleLaw};
use crate::finding::Way;
use crate::model::{Point, Report, with_unit};
use crate::svg::{Anchor, Marker, Svg};

const WIDTH: f64 = 720.0;
const ROW: f64 = 24.0;
const HEADING: f64 = 30.0;
/// A letter of a label is about so wide.
const LETTER: f64 = 6.7;

/// One time for every point, under headings that differ in the last factor only.
pub(super) fn dots(report: &Report, shown: Shown) -> Figure {
    let factor = report.factors.last().map_or("", |factor| &factor.name);
    let mut caption = "Discs are measured, with bars for their 95 % intervals.".to_owned();
    if !report.notations().is_empty() {
        caption.push_str(" Upright strokes are formulas; hollow markers are simulations.");
    }
    if !report.points.iter().all(Point::is_steady) {
        caption.push_str(RISING_CAPTION);
    }
    if report.points.iter().any(is_over) {
        caption.push_str(
            " Where more work comes than the servers can do, the mean is that of this many requests.",
        );
    }
    caption.push_str(as_run_caption(report));
    Figure {
        title: format!("{} by {factor}", shown.title()),
        caption,
        legend: legend(report, shown),
        panels: vec![Panel::drawn("", draw(report, shown))],
        table: table(report, |answer| shown.of(answer)),
    }
}

fn legend(report: &Report, shown: Shown) -> Vec<Key> {
    let mut keys = vec![key(MEASURED, |svg| {
        svg.line("interval", (3.0, 8.0), (31.0, 8.0));
        svg.marker("measured", Marker::Disc, (17.0, 8.0));
    })];
    for (model, notation) in report.notations().into_iter().enumerate() {
        let has = |way| {
            let shows =
                |point: &Point| answer(point, notation, way).and_then(|answer| shown.of(answer)).is_some();
            report.points.iter().any(shows)
        };
        if has(Way::Formula) {
            let class = line_class(model);
            keys.push(key(format!("{notation} formula"), |svg| svg.line(&class, (17.0, 1.0), (17.0, 15.0))));
        }
        if has(Way::Simulation) {
            let class = marker_class(model);
            keys.push(key(format!("{notation} simulation"), |svg| {
                svg.marker(&class, shape(model), (17.0, 8.0));
            }));
        }
    }
    keys
}

/// A small drawing of one mark.
fn key(label: impl Into<String>, draw: impl Fn(&mut Svg)) -> Key {
    let label = label.into();
    let mut svg = Svg::new(34.0, 16.0, &label);
    draw(&mut svg);
    Key { svg: svg.finish(), label }
}

fn draw(report: &Report, shown: Shown) -> String {
    let headings = report.headings();
    let rows: usize = headings.iter().map(|(_, points)| points.len()).sum();
    let named = headings.iter().filter(|(heading, _)| !heading.is_empty()).count();
    let (top, left) = (14.0, label_width(report));
    let bottom = top + HEADING * named as f64 + ROW * rows as f64;
    let scale = scale(report, shown, (left, WIDTH - 18.0));
    let mut svg = Svg::new(WIDTH, bottom + 52.0, &format!("The {} by category", shown.name()));
    axis(&mut svg, &scale, shown, (top, bottom));
    let mut y = top;
    for (heading, points) in &headings {
        if !heading.is_empty() {
            svg.text("title", (4.0, y + 20.0), Anchor::Start, heading);
            y += HEADING;
        }
        for point in points {
            row(&mut svg, report, point, shown, &scale, y + ROW / 2.0);
            y += ROW;
        }
    }
    svg.finish()
}

/// Room for the longest name of the last factor's values, within reason.
fn label_width(report: &Report) -> f64 {
    let longest = report.points.iter().map(|point| label(report, point).chars().count()).max().unwrap_or(0);
    (longest as f64 * LETTER + 26.0).clamp(70.0, 280.0)
}

fn label(report: &Report, point: &Point) -> String {
    report.factors.last().map_or(String::new(), |factor| with_unit(point.setting(&factor.name), &factor.unit))
}

/// The scale of times. Differences show best from nothing, ratios where times differ by orders of magnitude.
fn scale(report: &Report, shown: Shown, pixels: (f64, f64)) -> Scale {
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
    if high == 0.0 {
        Scale::new(ScaleLaw::Linear, (0.0, 1.0), pixels)
    } else if high / low > LOG_FROM {
        Scale::new(ScaleLaw::Log, (low / 1.4, high * 1.4), pixels)
    } else {
        Scale::new(ScaleLaw::Linear, (0.0, high * 1.08), pixels)
    }
}

fn axis(svg: &mut Svg, scale: &Scale, shown: Shown, (top, bottom): (f64, f64)) {
    for tick in scale.ticks(Quantity::Time) {
        let x = scale.at(tick.value);
        if let Some(label) = &tick.label {
            svg.line("grid", (x, top), (x, bottom));
            svg.text("tick", (x, bottom + 18.0), Anchor::Middle, label);
        }
    }
    let (left, right) = scale.pixels();
    svg.line("axis", (left, bottom), (right, bottom));
    let title = match scale.unit(Quantity::Time) {
        Some(unit) => format!("{} [{}]", shown.name(), unit.symbol()),
        None => format!("{} (log scale)", shown.name()),
    };
    svg.text("title", ((left + right) / 2.0, bottom + 40.0), Anchor::Middle, &title);
}

/// One point: what it is, and each way's time.
fn row(svg: &mut Svg, report: &Report, point: &Point, shown: Shown, scale: &Scale, y: f64) {
    svg.text("tick", (scale.pixels().0 - 10.0, y + 4.0), Anchor::End, &label(report, point));
    for (model, notation) in report.notations().into_iter().enumerate() {
        let at = |way| {
            let value_s = shown.of(answer(point, notation, way)?)?.value;
            scale.contains(value_s).then(|| scale.at(value_s))
        };
        if let Some(x) = at(Way::Formula) {
            svg.line(&line_class(model), (x, y - 9.0), (x, y + 9.0));
        }
        if let Some(x) = at(Way::Simulation) {
            svg.marker(&marker_class(model), shape(model), (x, y));
        }
    }
    let Some(measured) = shown.of(&point.measured) else { return };
    let x = scale.at(measured.value);
    if let Some((low, high)) = measured.interval {
        let (low, high) = (scale.at(low.max(scale.values().0)), scale.at(high));
        svg.line("interval", (low, y), (high, y));
        svg.line("interval", (low, y - 4.0), (low, y + 4.0));
        svg.line("interval", (high, y - 4.0), (high, y + 4.0));
    }
    match point.is_steady() {
        true => svg.marker("measured", Marker::Disc, (x, y)),
        false => {
            svg.polyline("rising-arrow", &[(x + 4.0, y - 9.0), (x + 18.0, y - 9.0)]);
            svg.polyline("rising-arrow", &[(x + 13.0, y - 12.5), (x + 18.0, y - 9.0), (x + 13.0, y - 5.5)]);
            svg.marker("measured rising", Marker::Ring, (x, y));
        }
    }
}
