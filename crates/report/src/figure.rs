//! Figures: each has a title, a drawing, and its data as a table.
//!
//! One convention everywhere: the measurement is black, formulas are lines, simulations are hollow markers; models differ by dash and
//! shape, and by colour besides.

mod cores;
mod dots;
mod ecdf;
mod effects;
mod models;
mod replay;
mod response;
mod services;
mod shown;
mod tails;
mod throughput;
pub mod traffic;
pub(crate) mod validation;

pub use crate::plot::Key;
pub(crate) use cores::cores;
pub use ecdf::ecdf;
pub use effects::effects;
pub use replay::replay;
pub use services::services;
pub use tails::{quantiles, slower};
pub use throughput::{throughput, users};

use kendall_evidence::expect::Measure;

use shown::Shown;

use crate::plot::{Plot, keys};
use kendall_analysis::{Report, Table};

/// The classes and colours of figures, for the page that holds them.
pub const STYLE: &str = include_str!("../templates/figure.css");

/// Mean response time, measured and modelled: along the first factor, or by category where that has categories.
pub fn response(report: &Report) -> Figure {
    if report.is_categorical() {
        dots::dots(report, Shown::Response)
    } else {
        response::along(report, Shown::Response)
    }
}

/// Weighted response by category, where there are categories and weights differ.
pub fn weighted(report: &Report) -> Option<Figure> {
    let shown = report.is_categorical() && report.is_weighted();
    shown.then(|| dots::dots(report, Shown::Weighted))
}

/// Mean waiting time, as [`response`] shows the response time, where anything waited.
pub fn waiting(report: &Report) -> Option<Figure> {
    let shown = report.points.iter().any(|point| point.measured.waiting.mean_s.value > 0.0);
    shown.then(|| match report.is_categorical() {
        true => dots::dots(report, Shown::Waiting),
        false => response::along(report, Shown::Waiting),
    })
}

/// A figure and its name in files and classes.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// The name in one word: "throughput".
    pub name: &'static str,
    /// The figure.
    pub figure: Figure,
    /// The number of columns of the table that are words.
    pub left: usize,
}

/// The figures that a report has something to show in, in the order in which a page shows them.
pub fn all(report: &Report) -> Vec<Named> {
    let place = report.factors.len();
    let figures = [
        ("response", Some(response(report)), place),
        ("throughput", throughput(report), place),
        ("users", users(report), place),
        ("replay", replay(report), place),
        ("waiting", waiting(report), place),
        ("weighted", weighted(report), place),
        ("effects", effects(report), 1),
        ("quantiles", quantiles(report), place),
        ("slower", slower(report), place),
        ("ecdf", Some(ecdf(report)).filter(|figure| !figure.panels.is_empty()), place + 1),
        ("services", services(report), place),
    ];
    let named = |(name, figure, left): (_, Option<Figure>, _)| Some(Named { name, figure: figure?, left });
    figures.into_iter().filter_map(named).collect()
}

/// The name of the one figure that answers the question. Where times are expected of a load that varies, it is how they grow
/// with what is served, for there the limit and the knee stand in one picture. Of a single combination there is no curve, and
/// the replay shows each of its requests. Else it is the response time against what was varied.
pub fn that_matters(report: &Report) -> &'static str {
    let is_of_time = |measure| matches!(measure, Measure::Mean | Measure::Quantile(_));
    if report.expected.iter().any(|at| is_of_time(at.judged.expected.measure)) && throughput(report).is_some()
    {
        "throughput"
    } else if report.points.len() == 1 && replay(report).is_some() {
        "replay"
    } else {
        "response"
    }
}

/// A figure: panels that share a legend and a caption.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// The title of the figure.
    pub title: String,
    /// The explanation of how to read the figure.
    pub caption: String,
    /// The meaning of each mark.
    pub legend: Vec<Key>,
    /// The drawings.
    pub panels: Vec<Panel>,
    /// The numbers of the figure as a table.
    pub table: Table,
}

/// One panel of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// The title that distinguishes the panel from the others; empty for a single one.
    pub title: String,
    /// The drawing, as SVG.
    pub svg: String,
    /// The plot as JSON, for the script of the page; empty if the panel is only a drawing.
    pub data: String,
}

impl Figure {
    /// A figure of plots, each under its title; the legend is made from their layers.
    pub(crate) fn of(
        title: impl Into<String>,
        caption: impl Into<String>,
        plots: Vec<(String, Plot)>,
        table: Table,
    ) -> Self {
        let legend = keys(plots.iter().map(|(_, plot)| plot));
        let panels = plots.into_iter().map(|(title, plot)| Panel::of(title, &plot)).collect();
        Self { title: title.into(), caption: caption.into(), legend, panels, table }
    }
}

impl Panel {
    /// A plot with its drawing and its data.
    pub(crate) fn of(title: impl Into<String>, plot: &Plot) -> Self {
        Self { title: title.into(), svg: plot.svg(), data: plot.json() }
    }
}

/// Above this ratio between the largest and the least time, equal ratios are drawn as equal lengths.
const LOG_FROM: f64 = 20.0;
