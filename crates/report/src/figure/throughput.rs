//! The scaling of a system: its response time against its throughput, and its throughput against its users.

use kendall_analysis::Table;
use kendall_analysis::table::time_cell;
use kendall_evidence::expect::{Expectation, Measure, Side};
use kendall_station::{Answer, Estimate};

use super::models::{answer, model_layers};
use super::response::{MEASURED, as_run_caption, capacity_x};
use super::{Figure, LOG_FROM};
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot, Which};
use crate::svg::Marker;
use kendall_analysis::PredictedBy;
use kendall_analysis::{FactorKind, Point, Report};
use kendall_analysis::{Scaling, UslSeen};
use kendall_stats::number::{NONE, significant};

/// The least ratio between throughputs that are worth an axis.
const SPREAD: f64 = 1.3;
/// The fewest points of a curve.
const FEWEST: usize = 3;

/// What triangles are called in the legend.
const P99: &str = "measured, 99 % of requests";

/// Mean response time, and that of 99 % of the requests, against throughput: a panel for each group. `None` unless the load
/// was varied.
pub fn throughput(report: &Report) -> Option<Figure> {
    let groups: Vec<(String, Vec<&Point>)> =
        report.groups().into_iter().filter(|(_, points)| is_along_load(report, points)).collect();
    if groups.is_empty() {
        return None;
    }
    let size = if groups.len() > 1 { (540.0, 330.0) } else { (720.0, 430.0) };
    let panels: Vec<Panel<'_>> =
        groups.iter().map(|(title, points)| Panel { report, title, points }).collect();
    // One scale of time for all, so that they can be compared by eye.
    let spans = panels.iter().map(Panel::span);
    let (low, high) = spans.fold((f64::INFINITY, 0.0f64), |all, one| (all.0.min(one.0), all.1.max(one.1)));
    let plots = panels.iter().map(|panel| (panel.title.to_owned(), panel.plot(size, (low, high)))).collect();
    Some(Figure::of("Response time against throughput", caption(report), plots, table(report, &groups)))
}

/// Throughput against users, where a scalability law could be fitted.
pub fn users(report: &Report) -> Option<Figure> {
    let fitted: Vec<(&Scaling, &UslSeen)> =
        report.scaling.iter().filter_map(|scaling| Some((scaling, scaling.usl.as_ref()?))).collect();
    if fitted.is_empty() {
        return None;
    }
    let groups = report.groups();
    let panel = |(scaling, usl): &(&Scaling, &UslSeen)| {
        let name = report.group_name(&scaling.group);
        let points =
            groups.iter().find(|(title, _)| *title == name).map_or(&[][..], |(_, points)| points.as_slice());
        let plot = users_plot(points, usl);
        (name, plot)
    };
    let laws: Vec<&str> = fitted.iter().map(|(_, usl)| usl.words.as_str()).collect();
    Some(Figure::of(
        "Throughput against users",
        format!(
            "Discs are measured, with bars for their 95 % intervals. The line is the universal scalability law through them \
             (Gunther 2007): {}. In brackets are 95 % intervals.",
            laws.join("; ")
        ),
        fitted.iter().map(panel).collect(),
        users_table(report),
    ))
}

/// Whether the points differ in their load, so that they make a curve.
fn is_along_load(report: &Report, points: &[&Point]) -> bool {
    let numbers = report.factors.first().is_some_and(|factor| factor.kind == FactorKind::Number);
    let rates = || points.iter().map(|point| per_s(&point.measured)).filter(|rate| *rate > 0.0);
    let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    // Offered more, a server does more, until it can do no more.
    let offered = || points.iter().map(|point| point.offered_per_s.unwrap_or(point.x));
    let varied = offered().fold(0.0, f64::max) > SPREAD * offered().fold(f64::INFINITY, f64::min);
    numbers && varied && points.len() >= FEWEST && high > SPREAD * low
}

fn per_s(answer: &Answer) -> f64 {
    answer.throughput_per_s.value
}

fn caption(report: &Report) -> String {
    let mut caption =
        "The x axis shows the requests answered per second, the y axis how long they took; one point for each load, joined in order of \
         load. Discs are measured means, with bars for their 95 % intervals; triangles are what 99 % of the requests stayed below."
            .to_owned();
    if !report.notations().is_empty() {
        caption.push_str(" Lines are formulas and hollow markers simulations of the mean.");
    }
    if report.scaling.iter().any(|scaling| scaling.knee.is_some()) {
        caption.push_str(" The knee is where the first model has the highest ratio of throughput to response time (Kleinrock 1979).");
    }
    caption.push_str(as_run_caption(report));
    caption
}

/// One panel of the figure.
struct Panel<'a> {
    report: &'a Report,
    title: &'a str,
    points: &'a [&'a Point],
}

impl Panel<'_> {
    fn plot(&self, size: (f64, f64), (low, high): (f64, f64)) -> Plot {
        let (law, range) = match high / low > LOG_FROM {
            true => (ScaleLaw::Log, (low / 1.4, high * 1.4)),
            false => (ScaleLaw::Linear, (0.0, high * 1.12)),
        };
        let most = self.points.iter().map(|point| per_s(&point.measured)).fold(0.0, f64::max);
        // Where service times differ between loads, so does the capacity: it is drawn only beyond the measured throughput.
        let capacity = capacity_x(self.points).filter(|at| (0.97 * most..1.25 * most).contains(at));
        let end = 1.06 * capacity.unwrap_or(most).max(most);
        let mut layers = self.rules(capacity);
        layers.extend(model_layers(self.report, |notation, way| self.modelled(notation, way, end)));
        layers.extend(self.measurement());
        let group = if self.title.is_empty() { String::new() } else { format!(", {}", self.title) };
        Plot {
            title: format!("Response time against throughput{group}"),
            x: Axis::numbers("throughput [1/s]", ScaleLaw::Linear, (0.0, end)),
            y: Axis::times("response time", law, range),
            layers,
            size,
        }
    }

    /// The least and the largest time to show; what models say of overload is no scale for what was measured.
    fn span(&self) -> (f64, f64) {
        let times = self.points.iter().flat_map(|point| {
            let response = &point.measured.response;
            [Some(response.mean_s.value), response.quantile(0.99).map(|p99| p99.value)]
        });
        let objectives = self.objectives().map(|expected| Some(expected.limit));
        let finite = times.chain(objectives).flatten().filter(|time_s| time_s.is_finite() && *time_s > 0.0);
        let (low, high) =
            finite.fold((f64::INFINITY, 0.0f64), |(low, high), time_s| (low.min(time_s), high.max(time_s)));
        if high > 0.0 { (low, high) } else { (0.1, 1.0) }
    }

    /// What was expected of the times at some point of this panel, each once.
    fn objectives(&self) -> impl Iterator<Item = Expectation> {
        let mut known: Vec<Expectation> = Vec::new();
        for expected in &self.report.expected {
            let here = self.report.group_name(&expected.settings) == self.title;
            let expected = expected.judged.expected;
            let is_time = matches!(expected.measure, Measure::Mean | Measure::Quantile(_));
            if here && is_time && expected.side == Side::Below && !known.contains(&expected) {
                known.push(expected);
            }
        }
        known.into_iter()
    }

    fn rules(&self, capacity: Option<f64>) -> Vec<Layer> {
        let rule = |axis, at, note: String| Layer::unnamed("capacity", Marks::Rule { axis, at, note });
        let group = |scaling: &&Scaling| self.report.group_name(&scaling.group) == self.title;
        let scaling = self.report.scaling.iter().find(group);
        let knee = scaling.and_then(|scaling| scaling.knee.as_ref()).map(|knee| {
            rule(
                Which::X,
                knee.throughput_per_s,
                format!("knee, {}/s", significant(knee.throughput_per_s, 2)),
            )
        });
        let capacity = capacity.map(|at| rule(Which::X, at, "all servers busy".to_owned()));
        let objectives = self.objectives().map(|expected| {
            Layer::unnamed(
                "objective",
                Marks::Rule { axis: Which::Y, at: expected.limit, note: format!("expected: {expected}") },
            )
        });
        knee.into_iter().chain(capacity).chain(objectives).collect()
    }

    /// Throughput and mean response: along the formula's curve, or at the points.
    fn modelled(&self, notation: &str, way: PredictedBy, end: f64) -> Vec<(f64, f64)> {
        let ours = |curve: &&kendall_analysis::Curve| {
            curve.notation == notation && self.report.group_name(&curve.group) == self.title
        };
        let curve = self.report.curves.iter().find(ours).filter(|_| way == PredictedBy::Formula);
        if let Some(curve) = curve.filter(|curve| !curve.mean_response_s.is_empty()) {
            let inside = |(throughput_per_s, _): &(f64, f64)| *throughput_per_s <= end;
            return curve.by_throughput().into_iter().filter(inside).collect();
        }
        let at = |point: &&Point| {
            let answer = answer(point, notation, way)?;
            Some((per_s(answer), answer.response.mean_s.value))
        };
        self.points.iter().filter_map(at).collect()
    }

    fn measurement(&self) -> Vec<Layer> {
        let at = |point: &&Point| (per_s(&point.measured), point.measured.response.mean_s.value);
        let p99 =
            |point: &&Point| Some((per_s(&point.measured), point.measured.response.quantile(0.99)?.value));
        let bar = |point: &&Point| {
            let (low, high) = point.measured.response.mean_s.interval?;
            Some((per_s(&point.measured), low, high))
        };
        let points = || self.points.iter();
        let mut layers = trail(MEASURED, points().map(at).collect());
        layers.extend(trail(P99, points().filter_map(p99).collect()));
        layers.extend([
            Layer::new(P99, "measured", Marks::points(Marker::Triangle, points().filter_map(p99))),
            Layer::new(MEASURED, "interval", Marks::intervals(points().filter_map(bar))),
            Layer::new(MEASURED, "measured", Marks::points(Marker::Disc, points().map(at))),
        ]);
        layers
    }
}

/// A thin line from point to point in the order of load. More load may get less done, so each part is a separate line.
fn trail(label: &str, points: Vec<(f64, f64)>) -> Vec<Layer> {
    let part = |pair: &[(f64, f64)]| {
        let (from, to) = if pair[0].0 <= pair[1].0 { (pair[0], pair[1]) } else { (pair[1], pair[0]) };
        Layer::new(label, "trail", Marks::line([from, to]))
    };
    points.windows(2).map(part).collect()
}

fn table(report: &Report, groups: &[(String, Vec<&Point>)]) -> Table {
    let mut head = report.place_head();
    head.extend(["throughput [1/s]", "mean response", "p99 response"].map(str::to_owned));
    let row = |point: &&Point| {
        let mut row = report.place_cells(point);
        row.push(number_cell(point.measured.throughput_per_s));
        row.push(time_cell(Some(point.measured.response.mean_s)));
        row.push(time_cell(point.measured.response.quantile(0.99)));
        row
    };
    Table { head, rows: groups.iter().flat_map(|(_, points)| points.iter().map(row)).collect() }
}

fn number_cell(estimate: Estimate) -> String {
    match estimate.interval {
        _ if !estimate.value.is_finite() => NONE.to_owned(),
        None => significant(estimate.value, 3),
        Some(_) => format!("{} ± {}", significant(estimate.value, 3), significant(estimate.half_width(), 2)),
    }
}

fn users_plot(points: &[&Point], usl: &UslSeen) -> Plot {
    let end = usl.line.last().map_or(1.0, |(users, _)| *users);
    let bars = points.iter().filter_map(|point| {
        let (low, high) = point.measured.throughput_per_s.interval?;
        Some((point.x, low, high))
    });
    let discs = points.iter().map(|point| (point.x, per_s(&point.measured)));
    let most = discs.clone().chain(usl.line.iter().copied()).map(|(_, rate)| rate).fold(0.0, f64::max);
    let mut layers = vec![
        Layer::new("universal scalability law", "formula model0", Marks::line(usl.line.iter().copied())),
        Layer::new(MEASURED, "interval", Marks::intervals(bars)),
        Layer::new(MEASURED, "measured", Marks::points(Marker::Disc, discs)),
    ];
    if let Some((users, rate_per_s)) = usl.peak {
        let note = format!("most, {}/s", significant(rate_per_s, 2));
        layers.insert(0, Layer::unnamed("capacity", Marks::Rule { axis: Which::X, at: users, note }));
    }
    Plot {
        title: "Throughput against users".to_owned(),
        x: Axis::numbers("users", ScaleLaw::Linear, (0.0, end)),
        y: Axis::numbers("throughput [1/s]", ScaleLaw::Linear, (0.0, 1.12 * most)),
        layers,
        size: (720.0, 380.0),
    }
}

fn users_table(report: &Report) -> Table {
    let mut head = report.place_head();
    head.push("throughput [1/s]".to_owned());
    let row = |point: &Point| {
        let mut row = report.place_cells(point);
        row.push(number_cell(point.measured.throughput_per_s));
        row
    };
    Table { head, rows: report.points.iter().map(row).collect() }
}
