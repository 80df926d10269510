//! The figure that matters: a mean time against the first factor, measured and modelled.

use kendall_analysis::Table;
use kendall_analysis::table::time_cell;
use kendall_station::{Answer, Estimate};

use super::models::{answer, model_layers};
use super::{Figure, LOG_FROM, Shown};

use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot, Which};
use crate::svg::Marker;
use kendall_analysis::PredictedBy;
use kendall_analysis::{Point, Report};

/// Above this ratio between the ends of the first factor, equal ratios are drawn as equal lengths.
const LOG_X_FROM: f64 = 50.0;

/// What measurements are called in legends.
pub(super) const MEASURED: &str = "measured, 95 % interval";

/// What rings with an arrow mean.
pub(super) const RISING_CAPTION: &str =
    " Rings mark points that were not steady: a longer trial measures a longer mean.";

/// How trials with a fixed number of requests were simulated, if there were such trials.
pub(super) fn as_run_caption(report: &Report) -> &'static str {
    if report.points.iter().any(Point::is_simulated_as_run) {
        " Trials with a fixed number of requests were simulated as they ran: the same number of requests on an empty server, many \
        times over."
    } else {
        ""
    }
}

/// A mean time against the first factor: a panel for each group, all to one scale.
pub(super) fn along(report: &Report, shown: Shown) -> Figure {
    let groups = report.groups();
    let size = if groups.len() > 1 { (540.0, 330.0) } else { (720.0, 430.0) };
    let span = span(report, shown);
    let panel = |(title, points): &(String, Vec<&Point>)| {
        (title.clone(), Panel { report, shown, title, points }.plot(size, span))
    };
    let factor = report.factors.first().map_or("the first factor", |factor| &factor.name);
    Figure::of(
        format!("{} against {factor}", shown.title()),
        caption(report),
        groups.iter().map(panel).collect(),
        table(report, |answer| shown.of(answer)),
    )
}

fn caption(report: &Report) -> String {
    let mut caption = "Discs are measured means, with bars for their 95 % intervals.".to_owned();
    if !report.notations().is_empty() {
        caption.push_str(" Lines are formulas; hollow markers are simulations.");
    }
    caption.push_str(&overload_caption(report, "Beyond the dashed vertical line", "so there is no mean"));
    if !report.points.iter().all(Point::is_steady) {
        caption.push_str(RISING_CAPTION);
    }
    caption.push_str(as_run_caption(report));
    caption
}

/// What more work than the servers can do means at this place: for stations whose queue has no limit, and for those that reject.
pub(super) fn overload_caption(report: &Report, place: &str, unlimited: &str) -> String {
    let is_any = |limited| {
        report.points.iter().any(|point| point.is_overloaded() && point.capacity.is_some() == limited)
    };
    let over = format!(" {place} more work arrives than the servers can do");
    let rejects = "a full station rejects requests, and the mean is that of the others";
    match [false, true].map(is_any) {
        [false, false] => String::new(),
        [true, false] => format!("{over}, {unlimited}."),
        [false, true] => format!("{over}: {rejects}."),
        [true, true] => format!("{over}, {unlimited}; with a limited capacity, {rejects}."),
    }
}

/// The least and the largest time to show. Points that are not steady have no mean to compare: they set the scale
/// only where there are no others.
fn span(report: &Report, shown: Shown) -> (f64, f64) {
    let any_steady = report.points.iter().any(Point::is_steady);
    let drawn = || report.points.iter().filter(|point| !any_steady || point.is_steady());
    let measured = drawn().filter_map(|point| shown.of(&point.measured)).flat_map(|mean_s| {
        let (low, high) = mean_s.interval.unwrap_or((mean_s.value, mean_s.value));
        [low, mean_s.value, high]
    });
    let models = drawn().flat_map(|point| &point.models);
    let answers = models.flat_map(|model| [model.formula.answer(), model.simulation.answer()]).flatten();
    let modelled = answers.filter_map(|answer| Some(shown.of(answer)?.value));
    let finite = measured.chain(modelled).filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) =
        finite.fold((f64::INFINITY, 0.0f64), |(low, high), value| (low.min(value), high.max(value)));
    if high > 0.0 { (low, high) } else { (0.1, 1.0) }
}

/// One panel of the figure.
struct Panel<'a> {
    report: &'a Report,
    shown: Shown,
    title: &'a str,
    points: &'a [&'a Point],
}

impl Panel<'_> {
    fn plot(&self, size: (f64, f64), (low, high): (f64, f64)) -> Plot {
        let group = if self.title.is_empty() { String::new() } else { format!(", {}", self.title) };
        let (law, range) = match high / low > LOG_FROM {
            true => (ScaleLaw::Log, (low / 1.4, high * 1.4)),
            false => (ScaleLaw::Linear, (0.0, high * 1.12)),
        };
        let capacity_x = capacity_x(self.points);
        let x = x_axis(self.report, capacity_x);
        let is_limited = self.points.iter().any(|point| point.capacity.is_some());
        let mut layers =
            overload(capacity_x, &x, if is_limited { "rate ≥ capacity" } else { "utilisation ≥ 1" });
        layers.extend(model_layers(self.report, |notation, way| match way {
            PredictedBy::Formula => self.formula_line(notation, x.range),
            PredictedBy::Simulation => self.at_points(notation, way),
        }));
        layers.extend(self.measurement(range.1));
        Plot {
            title: format!("{}{group}", self.shown.title()),
            x,
            y: Axis::times(self.shown.name(), law, range),
            layers,
            size,
        }
    }

    /// The smooth line where the report has one; else the answers at the points.
    fn formula_line(&self, notation: &str, (from, to): (f64, f64)) -> Vec<(f64, f64)> {
        let ours = |curve: &&kendall_analysis::Curve| {
            curve.notation == notation && self.report.group_name(&curve.group) == self.title
        };
        let curve = self.report.curves.iter().find(ours).map(|curve| self.shown.along(curve));
        if let Some(curve) = curve.filter(|curve| !curve.is_empty()) {
            let inside = |&&(x, y): &&(f64, f64)| y.is_finite() && (from..=to).contains(&x);
            return curve.iter().filter(inside).copied().collect();
        }
        self.at_points(notation, PredictedBy::Formula)
    }

    fn at_points(&self, notation: &str, way: PredictedBy) -> Vec<(f64, f64)> {
        let at = |point: &&Point| Some((point.x, self.shown.of(answer(point, notation, way)?)?.value));
        self.points.iter().filter_map(at).collect()
    }

    /// The measured points; a point above `most` shows only its value.
    fn measurement(&self, most: f64) -> Vec<Layer> {
        let seen = || self.points.iter().filter_map(|point| Some((*point, self.shown.of(&point.measured)?)));
        let bar = |(point, mean_s): (&Point, Estimate)| {
            let (low, high) = mean_s.interval.filter(|_| mean_s.value <= most)?;
            Some((point.x, low, high))
        };
        let at = |(point, mean_s): (&Point, Estimate)| (point.x, mean_s.value);
        let (steady, rising): (Vec<_>, Vec<_>) = seen().partition(|(point, _)| point.is_steady());
        let mut layers = vec![
            Layer::new(MEASURED, "interval", Marks::intervals(seen().filter_map(bar))),
            Layer::new(MEASURED, "measured", Marks::points(Marker::Disc, steady.into_iter().map(at))),
        ];
        if !rising.is_empty() {
            let rising = Marks::points(Marker::Rising, rising.into_iter().map(at));
            layers.push(Layer::new("measured, not steady", "measured rising", rising));
        }
        layers
    }
}

/// The region where more work arrives than the servers can do.
fn overload(capacity_x: Option<f64>, x: &Axis, note: &str) -> Vec<Layer> {
    let Some(from) = capacity_x.filter(|at| (x.range.0..=x.range.1).contains(at)) else { return Vec::new() };
    let beyond = Marks::Area { from, to: x.range.1, note: String::new() };
    let edge = Marks::Rule { axis: Which::X, at: from, note: note.to_owned() };
    vec![Layer::unnamed("overload", beyond), Layer::unnamed("capacity", edge)]
}

/// Where the first factor brings utilisation to 1, if it is an arrival rate: utilisation is then proportional to it.
pub(super) fn capacity_x(points: &[&Point]) -> Option<f64> {
    let most = points.iter().max_by(|a, b| a.x.total_cmp(&b.x))?;
    let is_rate = |point: &&Point| {
        point.offered_per_s.is_some_and(|rate_per_s| (rate_per_s / point.x - 1.0).abs() < 0.25)
    };
    let utilisation = most.utilisation_offered.filter(|&utilisation| utilisation > 0.0)?;
    points.iter().all(is_rate).then(|| most.offered_per_s.unwrap_or(most.x) / utilisation)
}

/// The axis of the first factor, with room for the line of capacity if it is near.
fn x_axis(report: &Report, capacity_x: Option<f64>) -> Axis {
    let title = report.factors.first().map_or(String::new(), |factor| factor.title());
    let axis = |law, range| Axis { names: names(report), ..Axis::numbers(title, law, range) };
    let xs = || report.points.iter().map(|point| point.x).filter(|x| x.is_finite());
    let (low, high) = (xs().fold(f64::INFINITY, f64::min), xs().fold(f64::NEG_INFINITY, f64::max));
    if low > high {
        return axis(ScaleLaw::Linear, (0.0, 1.0));
    }
    let far = capacity_x.filter(|&x| x > high && x < 1.25 * high).unwrap_or(high);
    if low > 0.0 && high / low > LOG_X_FROM {
        return axis(ScaleLaw::Log, (low / 1.2, far * 1.2));
    }
    let from =
        if low > 0.0 && low < 0.5 * high && is_numeric(report) { 0.0 } else { low - 0.08 * (high - low) };
    axis(ScaleLaw::Linear, (from, far + 0.06 * (far - from)))
}

/// Whether every value of the first factor is a number.
fn is_numeric(report: &Report) -> bool {
    let values = report.factors.first().map_or(&[] as &[String], |factor| &factor.values);
    values.iter().all(|value| value.parse::<f64>().is_ok())
}

/// Each value of the first factor by its name, where values are not numbers.
fn names(report: &Report) -> Vec<(f64, String)> {
    let Some(factor) = report.factors.first().filter(|_| !is_numeric(report)) else { return Vec::new() };
    let mut names: Vec<(f64, String)> = Vec::new();
    for point in report.points.iter().filter(|point| point.x.is_finite()) {
        if !names.iter().any(|(x, _)| *x == point.x) {
            names.push((point.x, point.setting(&factor.name).to_owned()));
        }
    }
    names
}

/// What each way says of one time at each point.
pub(super) fn table(report: &Report, time_of: impl Fn(&Answer) -> Option<Estimate>) -> Table {
    let mut head = report.place_head();
    head.push("measured".to_owned());
    for notation in report.notations() {
        head.extend([format!("{notation} formula"), format!("{notation} simulation")]);
    }
    let row = |point: &Point| {
        let mut row = report.place_cells(point);
        row.push(time_cell(time_of(&point.measured)));
        for notation in report.notations() {
            for way in [PredictedBy::Formula, PredictedBy::Simulation] {
                row.push(time_cell(answer(point, notation, way).and_then(&time_of)));
            }
        }
        row
    };
    Table { head, rows: report.points.iter().map(row).collect() }
}
