//! The figure that matters: mean response time against the first factor, measured and modelled.

use kendall_station::{Answer, Estimate};

use super::{
    Figure, Key, LOG_FROM, Panel, Table, answer, axis_title, key, line_class, marker_class, model_keys, shape,
};
use super::{place_cells, place_head, time_cell};
use crate::chart::{Frame, Quantity, Scale, ScaleLaw, Tick, clipped};
use crate::finding::Way;
use crate::model::{Point, Report};
use crate::number::time;
use crate::svg::{Anchor, Marker, Svg};

/// Above this ratio between the ends of the first factor, equal ratios are drawn as equal lengths.
const LOG_X_FROM: f64 = 50.0;

/// What rings with an arrow mean.
pub(super) const RISING_CAPTION: &str =
    " Rings with an arrow were not steady: a longer trial would have measured more.";

/// How trials of so many requests were simulated, where they were.
pub(super) fn as_run_caption(report: &Report) -> &'static str {
    if report.points.iter().any(Point::is_simulated_as_run) {
        " Trials of so many requests were simulated as such: as many requests from an empty server, many times over."
    } else {
        ""
    }
}

/// Mean response time against the first factor: a panel for each group, all to one scale.
pub(super) fn along(report: &Report) -> Figure {
    let groups = report.groups();
    let size = if groups.len() > 1 { (540.0, 330.0) } else { (720.0, 430.0) };
    let span = span(report);
    let panel = |(title, points): &(String, Vec<&Point>)| {
        let svg = Drawing::new(report, title, points, size, span).draw();
        Panel { title: title.clone(), svg }
    };
    let factor = report.factors.first().map_or("the first factor", |factor| &factor.name);
    Figure {
        title: format!("Mean response time against {factor}"),
        caption: caption(report),
        legend: legend(report, |answer| answer.response.mean_s.value.is_finite()),
        panels: groups.iter().map(panel).collect(),
        table: table(report, |answer| Some(answer.response.mean_s)),
    }
}

fn caption(report: &Report) -> String {
    let mut caption = "Discs are measured means, with bars for their 95 % intervals.".to_owned();
    if !report.notations().is_empty() {
        caption.push_str(" Lines are formulas; hollow markers are simulations.");
    }
    if report.points.iter().any(is_over) {
        caption.push_str(
            " Beyond the dashed upright line more work comes than the servers can do, so no mean exists.",
        );
    }
    if !report.points.iter().all(Point::is_steady) {
        caption.push_str(RISING_CAPTION);
    }
    caption.push_str(as_run_caption(report));
    caption
}

pub(super) fn legend(report: &Report, can_show: impl Fn(&Answer) -> bool) -> Vec<Key> {
    let mut keys = vec![key("measured, 95 % interval", |svg| {
        interval_bar(svg, "interval", 17.0, (1.0, 15.0));
        svg.marker("measured", Marker::Disc, (17.0, 8.0));
    })];
    keys.extend(model_keys(report, can_show));
    keys
}

/// Whether more work is offered than the servers can do.
pub(super) fn is_over(point: &Point) -> bool {
    point.utilisation_offered.is_some_and(|utilisation| utilisation >= 1.0)
}

/// The least and the largest time to show. Points that are not steady have no mean to compare: they set the scale
/// only where there are no others.
fn span(report: &Report) -> (f64, f64) {
    let any_steady = report.points.iter().any(Point::is_steady);
    let shown = || report.points.iter().filter(|point| !any_steady || point.is_steady());
    let measured = shown().flat_map(|point| {
        let mean_s = point.measured.response.mean_s;
        let (low, high) = mean_s.interval.unwrap_or((mean_s.value, mean_s.value));
        [low, mean_s.value, high]
    });
    let modelled = shown().flat_map(|point| &point.models).flat_map(|model| {
        let answers = [model.formula.answer(), model.simulation.answer()];
        answers.into_iter().flatten().map(|answer| answer.response.mean_s.value)
    });
    let finite = measured.chain(modelled).filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) =
        finite.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if high > 0.0 { (low, high) } else { (0.1, 1.0) }
}

/// One panel being drawn.
struct Drawing<'a> {
    report: &'a Report,
    title: &'a str,
    points: &'a [&'a Point],
    frame: Frame,
    size: (f64, f64),
    ticks: Vec<Tick>,
    capacity_x: Option<f64>,
}

impl<'a> Drawing<'a> {
    fn new(
        report: &'a Report,
        title: &'a str,
        points: &'a [&'a Point],
        size: (f64, f64),
        (low, high): (f64, f64),
    ) -> Self {
        let (left, right, top, bottom) = (62.0, size.0 - 16.0, 36.0, size.1 - 52.0);
        let y = match high / low > LOG_FROM {
            true => Scale::new(ScaleLaw::Log, (low / 1.4, high * 1.4), (bottom, top)),
            false => Scale::new(ScaleLaw::Linear, (0.0, high * 1.12), (bottom, top)),
        };
        let capacity_x = capacity_x(points);
        let x = x_scale(report, capacity_x, (left, right));
        let ticks = x_ticks(report, &x);
        Self { report, title, points, frame: Frame { x, y }, size, ticks, capacity_x }
    }

    fn draw(&self) -> String {
        let group = if self.title.is_empty() { String::new() } else { format!(", {}", self.title) };
        let mut svg = Svg::new(self.size.0, self.size.1, &format!("Mean response time{group}"));
        let upwards = self.frame.y.ticks(Quantity::Time);
        let y_title = match self.frame.y.unit(Quantity::Time) {
            Some(unit) => format!("mean response time [{}]", unit.symbol()),
            None => "mean response time (log scale)".to_owned(),
        };
        let x_title = self
            .report
            .factors
            .first()
            .map_or(String::new(), |factor| axis_title(&factor.name, &factor.unit));
        self.overload(&mut svg);
        self.frame.draw_axes(&mut svg, &self.ticks, &upwards, (&x_title, &y_title));
        for (model, notation) in self.report.notations().into_iter().enumerate() {
            self.formula(&mut svg, model, notation);
        }
        for (model, notation) in self.report.notations().into_iter().enumerate() {
            self.simulation(&mut svg, model, notation);
        }
        self.measurement(&mut svg);
        svg.finish()
    }

    /// The region where utilisation is 1 or more.
    fn overload(&self, svg: &mut Svg) {
        let Some(x) = self.capacity_x.filter(|&x| self.frame.x.contains(x)).map(|x| self.frame.x.at(x))
        else {
            return;
        };
        let ((_, right), (bottom, top)) = (self.frame.x.pixels(), self.frame.y.pixels());
        svg.rectangle("overload", (x, top), right - x, bottom - top);
        svg.line("capacity", (x, bottom), (x, top));
        // Beside the line on the side that has room; at its foot, since the formulas rise along it.
        let (anchor, beside) = if right - x > 110.0 { (Anchor::Start, 6.0) } else { (Anchor::End, -6.0) };
        svg.text("label", (x + beside, bottom - 8.0), anchor, "utilisation ≥ 1");
    }

    fn formula(&self, svg: &mut Svg, model: usize, notation: &str) {
        let line = self.formula_line(notation);
        let pixels: Vec<_> =
            clipped(&line, &self.frame.y).iter().map(|&(x, y)| self.frame.at(x, y)).collect();
        match pixels.as_slice() {
            [] => {}
            // A single answer has no line to show it.
            &[(x, y)] => svg.line(&line_class(model), (x - 12.0, y), (x + 12.0, y)),
            pixels => svg.polyline(&line_class(model), pixels),
        }
    }

    /// The smooth line where the report has one; else the answers at the points.
    fn formula_line(&self, notation: &str) -> Vec<(f64, f64)> {
        let ours = |curve: &&crate::Curve| {
            curve.notation == notation && self.report.group_name(&curve.group) == self.title
        };
        if let Some(curve) = self.report.curves.iter().find(ours) {
            let inside = |&&(x, y): &&(f64, f64)| y.is_finite() && y > 0.0 && self.frame.x.contains(x);
            return curve.mean_response_s.iter().filter(inside).copied().collect();
        }
        let at =
            |point: &&Point| Some((point.x, answer(point, notation, Way::Formula)?.response.mean_s.value));
        self.points.iter().filter_map(at).collect()
    }

    fn simulation(&self, svg: &mut Svg, model: usize, notation: &str) {
        for point in self.points {
            let Some(answer) = answer(point, notation, Way::Simulation) else { continue };
            let mean_s = answer.response.mean_s.value;
            if self.frame.y.contains(mean_s) {
                svg.marker(&marker_class(model), shape(model), self.frame.at(point.x, mean_s));
            }
        }
    }

    fn measurement(&self, svg: &mut Svg) {
        for point in self.points {
            let mean_s = point.measured.response.mean_s;
            let (x, y) = self.frame.at(point.x, mean_s.value);
            if mean_s.value > self.frame.y.values().1 {
                self.above(svg, x, mean_s.value);
                continue;
            }
            if let Some((low, high)) = mean_s.interval {
                let low = low.max(self.frame.y.values().0);
                interval_bar(svg, "interval", x, (self.frame.y.at(high), self.frame.y.at(low)));
            }
            match point.is_steady() {
                false => rising(svg, (x, y)),
                true => svg.marker("measured", Marker::Disc, (x, y)),
            }
        }
    }

    /// A measurement beyond the scale: at its upper end, with its value.
    fn above(&self, svg: &mut Svg, x: f64, value_s: f64) {
        let y = self.frame.y.pixels().1 + 22.0;
        rising(svg, (x, y));
        let (anchor, beside) =
            if x > self.size.0 - 70.0 { (Anchor::End, 8.0) } else { (Anchor::Middle, 0.0) };
        svg.text("value", (x + beside, y + 18.0), anchor, &time(value_s));
    }
}

/// A ring with an arrow: a mean that was still rising.
fn rising(svg: &mut Svg, (x, y): (f64, f64)) {
    svg.line("rising-arrow", (x, y - 4.0), (x, y - 18.0));
    svg.polyline("rising-arrow", &[(x - 3.5, y - 13.0), (x, y - 18.0), (x + 3.5, y - 13.0)]);
    svg.marker("measured rising", Marker::Ring, (x, y));
}

/// An upright bar with a foot at each end.
fn interval_bar(svg: &mut Svg, class: &str, x: f64, (top, bottom): (f64, f64)) {
    svg.line(class, (x, top), (x, bottom));
    svg.line(class, (x - 4.0, top), (x + 4.0, top));
    svg.line(class, (x - 4.0, bottom), (x + 4.0, bottom));
}

/// Where the first factor brings utilisation to 1, if it is an arrival rate: utilisation is then proportional to it.
fn capacity_x(points: &[&Point]) -> Option<f64> {
    let most = points.iter().max_by(|a, b| a.x.total_cmp(&b.x))?;
    let is_rate = |point: &&Point| {
        point.offered_per_s.is_some_and(|rate_per_s| (rate_per_s / point.x - 1.0).abs() < 0.25)
    };
    let utilisation = most.utilisation_offered.filter(|&utilisation| utilisation > 0.0)?;
    points.iter().all(is_rate).then(|| most.offered_per_s.unwrap_or(most.x) / utilisation)
}

/// The scale of the first factor, with room for the line of capacity if it is near.
fn x_scale(report: &Report, capacity_x: Option<f64>, pixels: (f64, f64)) -> Scale {
    let xs = || report.points.iter().map(|point| point.x).filter(|x| x.is_finite());
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return Scale::new(ScaleLaw::Linear, (0.0, 1.0), pixels);
    }
    let far = capacity_x.filter(|&x| x > high && x < 1.25 * high).unwrap_or(high);
    if low > 0.0 && high / low > LOG_X_FROM {
        return Scale::new(ScaleLaw::Log, (low / 1.2, far * 1.2), pixels);
    }
    let from =
        if low > 0.0 && low < 0.5 * high && is_numeric(report) { 0.0 } else { low - 0.08 * (high - low) };
    Scale::new(ScaleLaw::Linear, (from, far + 0.06 * (far - from)), pixels)
}

/// Whether every value of the first factor is a number.
fn is_numeric(report: &Report) -> bool {
    let values = report.factors.first().map_or(&[] as &[String], |factor| &factor.values);
    values.iter().all(|value| value.parse::<f64>().is_ok())
}

/// Round numbers; each value by its name where values are no numbers.
fn x_ticks(report: &Report, scale: &Scale) -> Vec<Tick> {
    if is_numeric(report) {
        return scale.ticks(Quantity::Number);
    }
    let mut ticks: Vec<Tick> = Vec::new();
    for point in &report.points {
        if !ticks.iter().any(|tick| tick.value == point.x) {
            let label = report.factors.first().map(|factor| point.setting(&factor.name).to_owned());
            ticks.push(Tick { value: point.x, label });
        }
    }
    ticks
}

/// What each way says of one time at each point.
pub(super) fn table(report: &Report, time_of: impl Fn(&Answer) -> Option<Estimate>) -> Table {
    let mut head = place_head(report);
    head.push("measured".to_owned());
    for notation in report.notations() {
        head.extend([format!("{notation} formula"), format!("{notation} simulation")]);
    }
    let row = |point: &Point| {
        let mut row = place_cells(report, point);
        row.push(time_cell(time_of(&point.measured)));
        for notation in report.notations() {
            for way in [Way::Formula, Way::Simulation] {
                row.push(time_cell(answer(point, notation, way).and_then(&time_of)));
            }
        }
        row
    };
    Table { head, rows: report.points.iter().map(row).collect() }
}
