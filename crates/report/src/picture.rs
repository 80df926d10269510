//! A self-contained figure, made of plots side by side, in the style of its medium.
//!
//! Pictures for the command line. The figures of a report are in [`crate::figure`]; marks mean the same there and here: lines are
//! formulas, hollow markers are simulations, discs are measurements.

mod compared;
mod fitted;
mod planned;
mod station;

pub use compared::{Compared, compared};
pub use fitted::fitted;
pub use planned::planned;
pub use station::{network, station};

use crate::chart::{Frame, Quantity, Scale, ScaleLaw, clipped};
use crate::figure::STYLE;
use crate::paper;
use crate::svg::{Anchor, Marker, Svg};

/// The medium of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A screen, light or dark as its owner likes it.
    #[default]
    Screen,
    /// Print: on white, with serifs.
    Paper,
    /// A lecture: on white, its letters and lines larger.
    Slides,
}

/// A picture: a title over plots side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The title of the picture.
    pub title: String,
    /// The plots, left to right.
    pub plots: Vec<Plot>,
}

/// One plot of a picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The axis to the right.
    pub across: Axis,
    /// The axis upwards. Lines are cut where they leave it.
    pub upwards: Axis,
    /// The series of the plot.
    pub series: Vec<Series>,
}

/// An axis. Its ends are those of the data unless they are given.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The axis' title, with the unit of plain numbers.
    pub title: String,
    /// The kind of numbers on the axis.
    pub kind: AxisKind,
    /// The lower and upper end of the axis, if they differ from the data's.
    pub ends: (Option<f64>, Option<f64>),
}

/// The kind of numbers on an axis, and their scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AxisKind {
    /// Plain numbers, equal differences as equal lengths.
    Numbers,
    /// Plain numbers, equal ratios as equal lengths.
    NumbersByRatio,
    /// Times in seconds, shown in the unit that fits.
    Times,
    /// Times in seconds, equal ratios as equal lengths.
    TimesByRatio,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The series' name in the legend; empty for none.
    pub label: String,
    /// The mark of the series.
    pub mark: Mark,
    /// The series' points, ascending across. Those that an axis cannot show are left out.
    pub points: Vec<(f64, f64)>,
    /// 95 % intervals, upwards: where across, from, to.
    pub intervals: Vec<(f64, f64, f64)>,
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A formula: a line, in the style of this number.
    Line(usize),
    /// A simulation: hollow markers, in the style of this number.
    Hollow(usize),
    /// A measurement: discs.
    Disc,
    /// A line through measured values.
    Seen,
    /// Dashed lines upright, at each point's place across.
    Upright,
}

/// The size of a plot, which is smaller where letters and lines must be larger relative to it.
const SIZE: (f64, f64) = (560.0, 400.0);
const SLIDES_SIZE: (f64, f64) = (400.0, 290.0);
/// Room for the title.
const HEAD: f64 = 34.0;
/// Room for one line of the legend.
const LEGEND: f64 = 20.0;

impl Picture {
    /// The picture as an SVG file.
    pub fn svg(&self, style: Style) -> String {
        match style {
            Style::Screen => self.drawn(SIZE, |size| Svg::standalone(size.0, size.1, &self.title, STYLE)),
            Style::Paper | Style::Slides => self.in_print(style),
        }
    }

    /// Returns the picture on white with all colours written out, for programs that know neither light and dark nor variables.
    pub fn in_print(&self, style: Style) -> String {
        let (plot, letters) = match style {
            Style::Screen => (SIZE, paper::SANS),
            Style::Paper => (SIZE, paper::SERIF),
            Style::Slides => (SLIDES_SIZE, paper::SANS),
        };
        self.drawn(plot, |size| Svg::for_paper(size, &self.title, &paper::style(letters)))
    }

    fn drawn(&self, plot_size: (f64, f64), begin: impl FnOnce((f64, f64)) -> Svg) -> String {
        let lines = self.plots.iter().map(|plot| plot.legend().count()).max().unwrap_or(0);
        let head = HEAD + LEGEND * lines as f64;
        let mut svg = begin((plot_size.0 * self.plots.len() as f64, plot_size.1 + head));
        svg.text("title", (14.0, 22.0), Anchor::Start, &self.title);
        for (number, plot) in self.plots.iter().enumerate() {
            plot.draw(&mut svg, (plot_size.0 * number as f64, head), plot_size);
        }
        svg.finish()
    }
}

impl Axis {
    /// An axis that fits the data.
    pub fn new(title: impl Into<String>, kind: AxisKind) -> Self {
        Self { title: title.into(), kind, ends: (None, None) }
    }

    /// Returns the axis, between these ends.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { ends: (Some(low), Some(high)), ..self }
    }

    fn law(&self) -> ScaleLaw {
        match self.kind {
            AxisKind::Numbers | AxisKind::Times => ScaleLaw::Linear,
            AxisKind::NumbersByRatio | AxisKind::TimesByRatio => ScaleLaw::Log,
        }
    }

    fn quantity(&self) -> Quantity {
        match self.kind {
            AxisKind::Numbers | AxisKind::NumbersByRatio => Quantity::Number,
            AxisKind::Times | AxisKind::TimesByRatio => Quantity::Time,
        }
    }

    /// Whether the axis can show a value at all.
    fn can_show(&self, value: f64) -> bool {
        value.is_finite() && (self.law() == ScaleLaw::Linear || value > 0.0)
    }

    fn scale(&self, values: impl Iterator<Item = f64>, pixels: (f64, f64)) -> Scale {
        let values = values.filter(|&value| self.can_show(value));
        let (low, high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = match self.law() {
            _ if low > high => (1.0, 10.0),
            ScaleLaw::Linear => (low.min(0.0), high + 0.04 * (high - low.min(0.0))),
            ScaleLaw::Log => (low / 1.15, high * 1.15),
            ScaleLaw::Tail => (0.0, high),
        };
        let ends = (self.ends.0.unwrap_or(low), self.ends.1.unwrap_or(high));
        Scale::new(self.law(), ends, pixels)
    }

    /// The title, with the unit where the ticks do not name it.
    fn words(&self, scale: &Scale) -> String {
        match scale.unit(self.quantity()) {
            Some(unit) => format!("{} [{}]", self.title, unit.symbol()),
            None => self.title.clone(),
        }
    }
}

impl Plot {
    fn legend(&self) -> impl Iterator<Item = &Series> {
        self.series.iter().filter(|series| !series.label.is_empty())
    }

    fn draw(&self, svg: &mut Svg, (left, head): (f64, f64), size: (f64, f64)) {
        for (line, series) in self.legend().enumerate() {
            let y = HEAD + LEGEND * (line as f64 + 0.5);
            series.mark.draw_key(svg, (left + 64.0, y));
            svg.text("tick", (left + 104.0, y + 4.0), Anchor::Start, &series.label);
        }
        let frame = self.frame((left, head), size);
        let titles = (self.across.words(&frame.x), self.upwards.words(&frame.y));
        let across = frame.x.ticks(self.across.quantity());
        let upwards = frame.y.ticks(self.upwards.quantity());
        frame.draw_axes(svg, &across, &upwards, (&titles.0, &titles.1));
        for series in &self.series {
            series.draw(svg, &frame, &self.across, &self.upwards);
        }
    }

    fn frame(&self, (left, head): (f64, f64), (width, height): (f64, f64)) -> Frame {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let upright = |series: &&Series| series.mark != Mark::Upright;
        let heights = self.series.iter().filter(upright).flat_map(|series| {
            let ends = series.intervals.iter().flat_map(|&(_, from, to)| [from, to]);
            series.points.iter().map(|point| point.1).chain(ends)
        });
        Frame {
            x: self.across.scale(points().map(|point| point.0), (left + 64.0, left + width - 16.0)),
            y: self.upwards.scale(heights, (head + height - 52.0, head + 36.0)),
        }
    }
}

impl Series {
    /// A series without intervals.
    pub fn new(label: impl Into<String>, mark: Mark, points: Vec<(f64, f64)>) -> Self {
        Self { label: label.into(), mark, points, intervals: Vec::new() }
    }

    fn draw(&self, svg: &mut Svg, frame: &Frame, across: &Axis, upwards: &Axis) {
        let inside = |x: f64| across.can_show(x) && frame.x.contains(x);
        let shown: Vec<(f64, f64)> =
            self.points.iter().copied().filter(|&(x, y)| inside(x) && upwards.can_show(y)).collect();
        let (bottom, top) = frame.y.pixels();
        for &(x, from, to) in self.intervals.iter().filter(|interval| inside(interval.0)) {
            // An end that the axis cannot show is beyond it.
            let y = |value: f64| {
                if upwards.can_show(value) { frame.y.at(value).clamp(top, bottom) } else { bottom }
            };
            svg.line("interval", (frame.x.at(x), y(from)), (frame.x.at(x), y(to)));
        }
        match self.mark {
            Mark::Upright => {
                for &(x, _) in &shown {
                    svg.line("capacity", (frame.x.at(x), bottom), (frame.x.at(x), top));
                }
            }
            Mark::Line(_) | Mark::Seen => {
                let pixels: Vec<_> =
                    clipped(&shown, &frame.y).into_iter().map(|(x, y)| frame.at(x, y)).collect();
                svg.polyline(&self.mark.class(), &pixels);
            }
            Mark::Hollow(_) | Mark::Disc => {
                for &(x, y) in shown.iter().filter(|point| frame.y.contains(point.1)) {
                    svg.marker(&self.mark.class(), self.mark.shape(), frame.at(x, y));
                }
            }
        }
    }
}

impl Mark {
    fn class(self) -> String {
        match self {
            Self::Line(style) => format!("formula model{}{}", style % 4, again(style)),
            Self::Hollow(style) => format!("simulation model{}{}", style % 4, again(style)),
            Self::Disc => "measured".to_owned(),
            Self::Seen => "ecdf".to_owned(),
            Self::Upright => "capacity".to_owned(),
        }
    }

    fn shape(self) -> Marker {
        match self {
            Self::Hollow(style) => {
                let shapes = [Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];
                shapes[(style + style / 4) % 4]
            }
            _ => Marker::Disc,
        }
    }

    fn draw_key(self, svg: &mut Svg, (x, y): (f64, f64)) {
        match self {
            Self::Hollow(_) | Self::Disc => svg.marker(&self.class(), self.shape(), (x + 16.0, y)),
            Self::Line(_) | Self::Seen | Self::Upright => svg.line(&self.class(), (x, y), (x + 32.0, y)),
        }
    }
}

/// The class that distinguishes the second four styles from the first, which have the same colours.
fn again(style: usize) -> &'static str {
    if style / 4 % 2 == 1 { " again" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(kind: AxisKind, series: Vec<Series>) -> Picture {
        let axis = || Axis::new("x", kind);
        Picture { title: "a < b".into(), plots: vec![Plot { across: axis(), upwards: axis(), series }] }
    }

    #[test]
    fn a_picture_is_well_formed_and_has_its_own_colours() {
        let line = Series::new("formula", Mark::Line(0), vec![(0.0, 1.0), (1.0, 2.0)]);
        let dots = Series {
            intervals: vec![(0.5, -1.0, 4.0)],
            ..Series::new("simulation", Mark::Hollow(1), vec![(0.5, 1.5)])
        };
        for kind in [AxisKind::Numbers, AxisKind::NumbersByRatio, AxisKind::Times, AxisKind::TimesByRatio] {
            let svg = plot(kind, vec![line.clone(), dots.clone()]).svg(Style::Screen);
            let tree = roxmltree::Document::parse(&svg).expect("well-formed");
            assert!(tree.descendants().any(|node| node.has_tag_name("style")) && svg.contains("simulation"));
        }
    }

    #[test]
    fn what_has_no_place_is_not_drawn() {
        let odd = vec![(f64::NAN, 1.0), (1.0, f64::INFINITY), (-1.0, 1.0)];
        let series = vec![Series::new("", Mark::Disc, odd), Series::new("", Mark::Line(9), vec![])];
        let svg = plot(AxisKind::TimesByRatio, series).svg(Style::Screen);
        assert!(!svg.contains("<circle") && !svg.contains("NaN") && !svg.contains("inf"));
    }
}
