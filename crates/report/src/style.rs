//! The styles of pages and plots of kendall.

/// The style of pages and of figures.
pub const STYLE: &str =
    concat!(include_str!("../templates/page.css"), include_str!("../templates/figure.css"));
/// The script of uPlot, a library that plots on a canvas, as its authors released it.
pub const UPLOT_JS: &str = include_str!("../vendor/uplot/uPlot.iife.min.js");
/// The style of uPlot.
pub const UPLOT_CSS: &str = include_str!("../vendor/uplot/uPlot.min.css");
