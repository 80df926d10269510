//! The slow requests: response time by quantile, and the share that takes longer than a time.

use super::Figure;
use super::models::{answer, shape};
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot};
use kendall_analysis::PredictedBy;
use kendall_analysis::Table;
use kendall_analysis::{Point, Report};
use kendall_stats::number::{NONE, time};

/// The styles of lines from the lightest load to the heaviest.
const STYLES: usize = 6;
/// The quantiles of the table.
const SHOWN: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];

/// Response times by quantile, a line for each point and a panel for each group, as far out as the number of requests supports.
pub fn quantiles(report: &Report) -> Option<Figure> {
    let plots = panels(report, |lines| {
        let last = lines.iter().flat_map(|line| line.tail()).map(|(p, _)| *p).fold(0.9, f64::max);
        Plot {
            title: "Response time by quantile".to_owned(),
            x: Axis::shares("share of the requests that took no longer", ScaleLaw::Tail, (0.0, last)),
            y: Axis::times("response time", ScaleLaw::Log, times(lines)),
            layers: layers(report, lines, |p, time_s| (p, time_s)),
            size: size(report),
        }
    })?;
    let caption = format!(
        "The further to the right, the fewer requests took longer: each step of the axis is a tenth of those of the step before. A \
         line ends where there are too few requests (299 requests show 99 %; 2,995 show 99.9 %).{}",
        beside(report)
    );
    Some(Figure::of("Response time by quantile", caption, plots, table(report)))
}

/// The share of requests that take longer than a time, both by ratio: straight where the law is a power.
pub fn slower(report: &Report) -> Option<Figure> {
    let plots = panels(report, |lines| {
        let least = lines.iter().flat_map(|line| line.tail()).map(|(p, _)| 1.0 - p).fold(0.1, f64::min);
        Plot {
            title: "Share of requests that take longer than a time".to_owned(),
            x: Axis::times("response time", ScaleLaw::Log, times(lines)),
            y: Axis::shares("requests that take longer (log scale)", ScaleLaw::Log, (least / 1.3, 1.0)),
            layers: layers(report, lines, |p, time_s| (time_s, 1.0 - p)),
            size: size(report),
        }
    })?;
    let caption = format!(
        "Both axes are logarithmic. A line that falls more and more steeply has an exponential tail or a shorter one; a straight line \
         is a power law, and then the mean of a short run cannot be trusted.{}",
        beside(report)
    );
    Some(Figure::of("Share of requests that take longer than a time", caption, plots, table(report)))
}

/// The part of the caption that explains the lines and markers.
fn beside(report: &Report) -> String {
    report.notations().first().map_or_else(String::new, |first| {
        format!(
            " Solid lines are measured. Dotted lines are the formula of the first model, {first}; hollow markers are its simulation, \
             at the quantiles that it has."
        )
    })
}

fn size(report: &Report) -> (f64, f64) {
    if report.groups().len() > 1 { (540.0, 340.0) } else { (720.0, 400.0) }
}

/// A point and the style of its line.
struct Line<'a> {
    name: String,
    point: &'a Point,
    style: usize,
}

impl Line<'_> {
    /// Share and time, of those that a log axis can show.
    fn tail(&self) -> impl Iterator<Item = &(f64, f64)> {
        self.point.tail_s.iter().filter(|(p, time_s)| *p < 1.0 && time_s.is_finite() && *time_s > 0.0)
    }
}

fn panels(report: &Report, plot: impl Fn(&[Line<'_>]) -> Plot) -> Option<Vec<(String, Plot)>> {
    let groups = if report.is_categorical() { report.headings() } else { report.groups() };
    let panel = |(title, points): &(String, Vec<&Point>)| {
        let with_tails: Vec<&&Point> = points.iter().filter(|point| !point.tail_s.is_empty()).collect();
        let last = with_tails.len().saturating_sub(1).max(1);
        let lines: Vec<Line<'_>> = with_tails
            .iter()
            .enumerate()
            .map(|(place, point)| Line {
                name: name(report, point),
                point,
                style: (place * (STYLES - 1)).div_ceil(last),
            })
            .collect();
        (!lines.is_empty()).then(|| (title.clone(), plot(&lines)))
    };
    let panels: Vec<(String, Plot)> = groups.iter().filter_map(panel).collect();
    (!panels.is_empty()).then_some(panels)
}

/// What sets a point apart from the others of its panel.
fn name(report: &Report, point: &Point) -> String {
    match report.factors.last() {
        Some(factor) if report.is_categorical() => point.setting(&factor.name).to_owned(),
        _ => report.place_in_group(point),
    }
}

fn times(lines: &[Line<'_>]) -> (f64, f64) {
    let all = lines.iter().flat_map(|line| line.tail()).map(|(_, time_s)| *time_s);
    let (low, high) =
        all.fold((f64::INFINITY, 0.0f64), |(low, high), time_s| (low.min(time_s), high.max(time_s)));
    if low < high { (low / 1.2, high * 1.2) } else { (1e-3, 1.0) }
}

/// The lines of all points, and those of the first model. `at` is where a share and its time are drawn.
fn layers(report: &Report, lines: &[Line<'_>], at: impl Fn(f64, f64) -> (f64, f64)) -> Vec<Layer> {
    let mut layers = Vec::new();
    if let Some(first) = report.notations().first() {
        for way in [PredictedBy::Formula, PredictedBy::Simulation] {
            for line in lines {
                let quantiles =
                    answer(line.point, first, way).map_or(&[][..], |answer| &answer.response.quantiles);
                let points = quantiles.iter().map(|quantile| at(quantile.p, quantile.value_s.value));
                let (class, marks) = match way {
                    PredictedBy::Formula => (format!("tail beside load{}", line.style), Marks::line(points)),
                    PredictedBy::Simulation => {
                        (format!("simulation load{}", line.style), Marks::points(shape(0), points))
                    }
                };
                if !quantiles.is_empty() {
                    layers.push(Layer::new(format!("{first} {way}"), class, marks));
                }
            }
        }
    }
    for line in lines {
        let points = line.tail().map(|&(p, time_s)| at(p, time_s));
        layers.push(Layer::new(line.name.clone(), format!("tail load{}", line.style), Marks::line(points)));
    }
    layers
}

fn table(report: &Report) -> Table {
    let with_tails = || report.points.iter().filter(|point| !point.tail_s.is_empty());
    let at = |point: &Point, p: f64| {
        let nearest = point.tail_s.iter().find(|(own, _)| (own - p).abs() < 1e-9);
        nearest.map(|(_, time_s)| *time_s)
    };
    let shown: Vec<f64> =
        SHOWN.into_iter().filter(|p| with_tails().any(|point| at(point, *p).is_some())).collect();
    let mut head = report.place_head();
    head.extend(shown.iter().map(|p| format!("p{}", (p * 1e7).round() / 1e5)));
    let row = |point: &Point| {
        let mut row = report.place_cells(point);
        row.extend(shown.iter().map(|p| at(point, *p).map_or_else(|| NONE.to_owned(), time)));
        row
    };
    Table { head, rows: with_tails().map(row).collect() }
}
