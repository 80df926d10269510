//! Figures: each says what is seen, shows it, and has its data as a table.
//!
//! One way to tell the three ways apart, everywhere: the measurement is black, formulas are lines, simulations are
//! hollow markers; models differ by dash and shape, and by colour besides.

mod cores;
mod dots;
mod ecdf;
mod replay;
mod response;

pub(crate) use cores::cores;
pub use ecdf::ecdf;
pub use replay::replay;

use kendall_station::{Answer, Estimate};

use crate::finding::Way;
use crate::model::{Point, Report};
use crate::number::{NONE, TimeUnit, significant, time};
use crate::svg::{Marker, Svg};

/// The classes and colours of figures, for the page that holds them.
pub const STYLE: &str = include_str!("../templates/figure.css");

/// Mean response time, measured and modelled: along the first factor, or by category where that has categories.
pub fn response(report: &Report) -> Figure {
    if report.is_categorical() { dots::dots(report, dots::Shown::Response) } else { response::along(report) }
}

/// Weighted response by category, where there are categories and weights differ.
pub fn weighted(report: &Report) -> Option<Figure> {
    let shown = report.is_categorical() && report.is_weighted();
    shown.then(|| dots::dots(report, dots::Shown::Weighted))
}

/// A figure: panels that share a legend and a caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What is seen.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// What each mark means.
    pub legend: Vec<Key>,
    /// The drawings.
    pub panels: Vec<Panel>,
    /// The same numbers as text.
    pub table: Table,
}

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The mark, as SVG.
    pub svg: String,
    /// What it stands for.
    pub label: String,
}

/// One drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// What sets it apart from the other panels; empty for an only one.
    pub title: String,
    /// The drawing, as SVG.
    pub svg: String,
}

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The heads of the columns.
    pub head: Vec<String>,
    /// The rows, each as long as the head.
    pub rows: Vec<Vec<String>>,
}

/// Above this ratio between the largest and the least time, equal ratios are drawn as equal lengths.
const LOG_FROM: f64 = 20.0;

/// The styles by which models differ; a fifth model starts again.
const STYLES: usize = 4;

/// The marker of a model's simulation.
fn shape(model: usize) -> Marker {
    [Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross][model % STYLES]
}

/// The class of a model's formula line.
fn line_class(model: usize) -> String {
    format!("formula model{}", model % STYLES)
}

/// The class of a model's simulation markers.
fn marker_class(model: usize) -> String {
    format!("simulation model{}", model % STYLES)
}

/// A small drawing of one mark.
fn key(label: impl Into<String>, draw: impl Fn(&mut Svg)) -> Key {
    let label = label.into();
    let mut svg = Svg::new(34.0, 16.0, &label);
    draw(&mut svg);
    Key { svg: svg.finish(), label }
}

/// The keys of all models: formula, then simulation, each where some answer of it can be shown.
fn model_keys(report: &Report, can_show: impl Fn(&Answer) -> bool) -> Vec<Key> {
    let mut keys = Vec::new();
    for (model, notation) in report.notations().into_iter().enumerate() {
        let has = |way| report.points.iter().any(|point| answer(point, notation, way).is_some_and(&can_show));
        if has(Way::Formula) {
            let class = line_class(model);
            keys.push(key(format!("{notation} formula"), |svg| svg.line(&class, (1.0, 8.0), (33.0, 8.0))));
        }
        if has(Way::Simulation) {
            let class = marker_class(model);
            keys.push(key(format!("{notation} simulation"), |svg| {
                svg.marker(&class, shape(model), (17.0, 8.0))
            }));
        }
    }
    keys
}

/// What one way of one model says at a point.
fn answer<'a>(point: &'a Point, notation: &str, way: Way) -> Option<&'a Answer> {
    let model = point.model(notation)?;
    match way {
        Way::Formula => model.formula.answer(),
        Way::Simulation => model.simulation.answer(),
    }
}

/// The heads of the columns that name a point.
pub(crate) fn place_head(report: &Report) -> Vec<String> {
    let head = |factor: &crate::Factor| axis_title(&factor.name, &factor.unit);
    report.factors.iter().map(head).collect()
}

/// The cells that name a point.
pub(crate) fn place_cells(report: &Report, point: &Point) -> Vec<String> {
    report.factors.iter().map(|factor| point.setting(&factor.name).to_owned()).collect()
}

/// A name with its unit in brackets: "rate [1/s]".
fn axis_title(name: &str, unit: &str) -> String {
    match unit {
        "" => name.to_owned(),
        per if per.starts_with('/') => format!("{name} [1{per}]"),
        unit => format!("{name} [{unit}]"),
    }
}

/// A time and its half-width in one unit: "8.10 ± 0.90 ms".
pub(crate) fn time_cell(estimate: Option<Estimate>) -> String {
    let Some(estimate) = estimate else { return NONE.to_owned() };
    match estimate.interval {
        None => time(estimate.value),
        Some(_) => {
            let unit = TimeUnit::for_s(estimate.value);
            let (value, half) =
                (unit.number(estimate.value), significant(estimate.half_width() * unit.per_s(), 2));
            format!("{value} ± {half} {}", unit.symbol())
        }
    }
}
