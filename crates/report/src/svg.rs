//! Writes SVG: a few shapes, text always escaped, coordinates to a tenth of a pixel. What has no finite place is not
//! drawn.
//!
//! Colours, strokes and fonts are classes of `figure.css`, so that a figure follows the page from light to dark.

use std::fmt::{Display, Write};

use serde::Serialize;

/// An SVG element with its children, being written.
pub(crate) struct Svg {
    out: String,
}

/// The position of a text relative to its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// The shape of a marker; each differs from the others without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Marker {
    Disc,
    Ring,
    /// A ring with an arrow upwards: a measured value that would have been larger in a longer run.
    Rising,
    /// A small dot, of which there may be thousands.
    Dot,
    Square,
    Triangle,
    Diamond,
    Cross,
}

impl Svg {
    /// A drawing of this size in pixels. `title` is what a screen reader says of it.
    pub(crate) fn new(width: f64, height: f64, title: &str) -> Self {
        let mut out = String::new();
        write_to(
            &mut out,
            format_args!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
                 width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\">\n<title>{}</title>\n",
                escaped(title)
            ),
        );
        Self { out }
    }

    /// A drawing as a separate file, with its own background, styled as a figure of a page.
    pub(crate) fn standalone(width: f64, height: f64, title: &str, style: &str) -> Self {
        let mut svg = Self::new(width, height, title);
        svg.out = svg.out.replacen("<svg ", "<svg class=\"chart\" ", 1);
        svg.element(format_args!(
            "<style>.chart {{ --paper: #fff; }} @media (prefers-color-scheme: dark) {{ .chart {{ --paper: #17191c; }} }}\n\
             {style}</style>"
        ));
        svg.element(format_args!("<rect width=\"100%\" height=\"100%\" style=\"fill: var(--paper)\"/>"));
        svg
    }

    /// A drawing as a separate file, on white, with its style included.
    pub(crate) fn for_paper((width, height): (f64, f64), title: &str, style: &str) -> Self {
        let mut svg = Self::new(width, height, title);
        svg.out = svg.out.replacen("<svg ", "<svg class=\"chart\" ", 1);
        svg.element(format_args!("<style>{style}</style>"));
        svg.element(format_args!("<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>"));
        svg
    }

    /// A finished drawing within this one.
    pub(crate) fn inner(&mut self, (x, y): (f64, f64), drawing: &str) {
        let placed = format!("<svg x=\"{x:.1}\" y=\"{y:.1}\" ");
        write_to(&mut self.out, drawing.replacen("<svg ", &placed, 1));
    }

    /// The text of the drawing.
    pub(crate) fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        if !is_finite(&[x1, y1, x2, y2]) {
            return;
        }
        self.element(format_args!(
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        ));
    }

    /// A line through points; nothing for fewer than two.
    pub(crate) fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() < 2 || !points.iter().all(|&(x, y)| is_finite(&[x, y])) {
            return;
        }
        let mut path = String::new();
        for (x, y) in points {
            let space = if path.is_empty() { "" } else { " " };
            write_to(&mut path, format_args!("{space}{x:.1},{y:.1}"));
        }
        self.element(format_args!("<polyline class=\"{class}\" points=\"{path}\"/>"));
    }

    /// A filled rectangle.
    pub(crate) fn rectangle(&mut self, class: &str, (x, y): (f64, f64), width: f64, height: f64) {
        if !is_finite(&[x, y, width, height]) {
            return;
        }
        self.element(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
        ));
    }

    /// A filled rectangle with words that a browser shows when it is pointed at.
    pub(crate) fn titled_rectangle(
        &mut self,
        class: &str,
        (x, y): (f64, f64),
        (width, height): (f64, f64),
        title: &str,
    ) {
        if !is_finite(&[x, y, width, height]) {
            return;
        }
        let (width, title) = (width.max(0.1), escaped(title));
        self.element(format_args!(
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"><title>{title}</title></rect>"
        ));
    }

    /// A text on one line.
    pub(crate) fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        if !is_finite(&[x, y]) {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let text = escaped(text);
        self.element(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
        ));
    }

    /// A marker centred on a position.
    pub(crate) fn marker(&mut self, class: &str, shape: Marker, (x, y): (f64, f64)) {
        if !is_finite(&[x, y]) {
            return;
        }
        let path = match shape {
            Marker::Dot => return self.dots(class, &[(x, y)]),
            Marker::Rising => {
                self.line("rising-arrow", (x, y - 4.0), (x, y - 18.0));
                self.polyline("rising-arrow", &[(x - 3.5, y - 13.0), (x, y - 18.0), (x + 3.5, y - 13.0)]);
                return self.marker(class, Marker::Ring, (x, y));
            }
            Marker::Disc | Marker::Ring => {
                return self.element(format_args!(
                    "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.6\"/>"
                ));
            }
            Marker::Square => "m-5.2,-5.2h10.4v10.4h-10.4z",
            Marker::Triangle => "m0,-7l6.4,11h-12.8z",
            Marker::Diamond => "m0,-7l6,7l-6,7l-6,-7z",
            Marker::Cross => "m-5.5,-5.5l11,11m0,-11l-11,11",
        };
        self.element(format_args!("<path class=\"{class}\" d=\"M{x:.1},{y:.1}{path}\"/>"));
    }

    /// Many small dots, as one element.
    pub(crate) fn dots(&mut self, class: &str, positions: &[(f64, f64)]) {
        let mut path = String::new();
        for (x, y) in positions.iter().filter(|(x, y)| is_finite(&[*x, *y])) {
            write_to(&mut path, format_args!("M{x:.1},{y:.1}h0"));
        }
        if !path.is_empty() {
            self.element(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
        }
    }

    /// A path; nothing for an empty one.
    pub(crate) fn path(&mut self, class: &str, path: &Path) {
        if !path.0.is_empty() {
            self.element(format_args!("<path class=\"{class}\" d=\"{}\"/>", path.0));
        }
    }

    fn element(&mut self, element: std::fmt::Arguments<'_>) {
        write_to(&mut self.out, element);
        self.out.push('\n');
    }
}

/// Closed shapes that are drawn as one element.
#[derive(Debug, Default)]
pub(crate) struct Path(String);

impl Path {
    /// A rectangle: its left, its top, its width and its height. Both sides are rounded, not the width, so that
    /// neighbours touch.
    pub(crate) fn rectangle(&mut self, (x, y, width, height): (f64, f64, f64, f64)) {
        if !is_finite(&[x, y, width, height]) {
            return;
        }
        let tenth = |at: f64| (10.0 * at).round() / 10.0;
        let (left, top) = (tenth(x), tenth(y));
        let (width, height) = (tenth(x + width) - left, tenth(y + height) - top);
        write_to(&mut self.0, format_args!("M{left:.1},{top:.1}h{width:.1}v{height:.1}h-{width:.1}z"));
    }

    /// A polygon by its corners; nothing for fewer than three.
    pub(crate) fn polygon(&mut self, corners: &[(f64, f64)]) {
        if corners.len() < 3 || !corners.iter().all(|&(x, y)| is_finite(&[x, y])) {
            return;
        }
        for (place, (x, y)) in corners.iter().enumerate() {
            let command = if place == 0 { 'M' } else { 'L' };
            write_to(&mut self.0, format_args!("{command}{x:.1},{y:.1}"));
        }
        self.0.push('z');
    }
}

/// Whether all coordinates are numbers.
fn is_finite(coordinates: &[f64]) -> bool {
    coordinates.iter().all(|coordinate| coordinate.is_finite())
}

/// Text for an element or an attribute: characters that mean something in XML as entities; what it cannot hold at all becomes a
/// space.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            control if control.is_control() || matches!(control, '\u{fffe}' | '\u{ffff}') => out.push(' '),
            other => out.push(other),
        }
    }
    out
}

fn write_to(out: &mut String, text: impl Display) {
    write!(out, "{text}").expect("writing to a string never fails");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_reads_back_as_written() {
        let hostile = "</text><script>alert('\"&')</script>";
        let mut svg = Svg::new(10.0, 10.0, hostile);
        svg.text("label", (1.0, 2.0), Anchor::Start, hostile);
        let svg = svg.finish();
        let tree = roxmltree::Document::parse(&svg).expect("well-formed");
        let texts: Vec<_> = tree
            .descendants()
            .filter(|node| node.is_text())
            .filter_map(|node| node.text())
            .filter(|text| text.trim() != "")
            .collect();
        assert_eq!(texts, [hostile, hostile]);
    }

    #[test]
    fn every_marker_is_drawn_differently() {
        let shapes = [Marker::Disc, Marker::Square, Marker::Triangle, Marker::Diamond, Marker::Cross];
        let drawn = shapes.map(|shape| {
            let mut svg = Svg::new(10.0, 10.0, "");
            svg.marker("m", shape, (5.0, 5.0));
            svg.finish()
        });
        for (at, one) in drawn.iter().enumerate() {
            roxmltree::Document::parse(one).expect("well-formed");
            assert!(!drawn[..at].contains(one));
        }
    }
}
