//! Figures as files for a paper: on white, with serifs, the legend on top and nothing else around them.
//!
//! The drawings are those of the page, so the numbers are the same. Their style is written out with the colours of print,
//! since not every program that opens an SVG knows variables and media queries.

#[cfg(feature = "png")]
mod painter;
#[cfg(feature = "png")]
mod pdf;

#[cfg(feature = "png")]
pub use painter::{PaintError, Painter};

use crate::figure::{Figure, Panel, STYLE};
use crate::svg::{Anchor, Svg};

/// Room around and between drawings.
const GAP: f64 = 14.0;
/// Room for a line of the legend, and for the title of a panel.
const LINE: f64 = 21.0;
/// A letter is about so wide.
const LETTER: f64 = 7.2;
/// A key with the room beside it.
const KEY: f64 = 42.0;
/// Panels wider than this stand two in a row, others three.
const WIDE: f64 = 400.0;

/// A figure as a self-contained SVG file.
pub fn paper(figure: &Figure) -> String {
    let sizes: Vec<(f64, f64)> = figure.panels.iter().map(|panel| size(&panel.svg)).collect();
    let widest = sizes.iter().map(|size| size.0).fold(0.0, f64::max);
    let columns = (if widest > WIDE { 2 } else { 3 }).min(figure.panels.len()).max(1);
    let width = columns as f64 * widest + (columns as f64 + 1.0) * GAP;
    let keys = legend(figure, width);
    let heading = if figure.panels.iter().any(|panel| !panel.title.is_empty()) { LINE } else { 0.0 };
    let mut y = GAP + keys.last().map_or(0.0, |key| key.1 + LINE);
    let mut places = Vec::new();
    for row in sizes.chunks(columns) {
        places.extend((0..row.len()).map(|column| (GAP + column as f64 * (widest + GAP), y)));
        y += heading + row.iter().map(|size| size.1).fold(0.0, f64::max) + GAP;
    }
    let mut svg = Svg::for_paper((width, y), &figure.title, &style(SERIF));
    for (key, (x, y)) in figure.legend.iter().zip(keys) {
        svg.inner((x, GAP + y), &key.svg);
        svg.text("tick", (x + KEY, GAP + y + 12.0), Anchor::Start, &key.label);
    }
    for (Panel { title, svg: drawing, .. }, (x, y)) in figure.panels.iter().zip(places) {
        if !title.is_empty() {
            svg.text("title", (x + 4.0, y + 14.0), Anchor::Start, title);
        }
        svg.inner((x, y + heading), drawing);
    }
    svg.finish()
}

/// Where the keys of the legend stand, in lines that are no wider than the figure.
fn legend(figure: &Figure, width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (GAP, 0.0);
    let mut places = Vec::new();
    for key in &figure.legend {
        let wide = KEY + key.label.chars().count() as f64 * LETTER + 2.0 * GAP;
        if x > GAP && x + wide > width {
            (x, y) = (GAP, y + LINE);
        }
        places.push((x, y));
        x += wide;
    }
    places
}

/// The size of a drawing of ours, which says it in its first line.
fn size(svg: &str) -> (f64, f64) {
    let number = |name: &str| {
        let (_, rest) = svg.split_once(name)?;
        rest.split_once('"')?.0.parse().ok()
    };
    (number(" width=\"").unwrap_or(0.0), number(" height=\"").unwrap_or(0.0))
}

/// The letters of figures in print.
pub(crate) const SERIF: &str = "\"Liberation Serif\", \"Times New Roman\", \"DejaVu Serif\", serif";
/// Letters that are read from afar.
pub(crate) const SANS: &str = "\"Liberation Sans\", Arial, \"DejaVu Sans\", sans-serif";

/// The style of figures in print with letters of this family, every variable written out.
pub(crate) fn style(letters: &str) -> String {
    let print = STYLE.lines().find(|line| line.starts_with("@media print")).unwrap_or_default();
    let mut colours: Vec<(&str, &str)> = print
        .split(['{', ';', '}'])
        .filter_map(|part| part.split_once(':'))
        .map(|(name, value)| (name.trim(), value.trim()))
        .filter(|(name, _)| name.starts_with("--"))
        .collect();
    colours.push(("--paper", "#fff"));
    let mut style: String = STYLE
        .lines()
        .filter(|line| !line.starts_with("@media") && !line.starts_with(".chart {"))
        .map(|line| format!("{line}\n"))
        .collect();
    for (name, value) in colours {
        style = style.replace(&format!("var({name})"), value);
    }
    style.push_str(&format!(".chart text {{ font-family: {letters}; font-size: 13px; }}\n"));
    style
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::ScaleLaw;
    use crate::plot::{Axis, Layer, Marks, Plot};
    use crate::svg::Marker;
    use kendall_analysis::Table;

    fn figure(panels: usize) -> Figure {
        let plot = || Plot {
            title: "times".to_owned(),
            x: Axis::numbers("rate [1/s]", ScaleLaw::Linear, (0.0, 10.0)),
            y: Axis::times("response time", ScaleLaw::Linear, (0.0, 0.05)),
            layers: vec![Layer::new("measured", "measured", Marks::points(Marker::Disc, [(5.0, 0.02)]))],
            size: (330.0, 300.0),
        };
        let plots = (0..panels).map(|place| (format!("panel {place} & more"), plot())).collect();
        Figure::of("What <is> seen", "", plots, Table::default())
    }

    #[test]
    fn a_paper_figure_holds_every_panel_and_key_side_by_side() {
        let figure = figure(5);
        let svg = paper(&figure);
        let tree = roxmltree::Document::parse(&svg).expect("well-formed");
        let inner: Vec<_> = tree.root_element().children().filter(|node| node.has_tag_name("svg")).collect();
        assert_eq!(inner.len(), 5 + 1);
        let place = |node: &roxmltree::Node<'_, '_>| {
            ["x", "y", "width", "height"].map(|name| node.attribute(name).unwrap().parse::<f64>().unwrap())
        };
        let boxes: Vec<[f64; 4]> = inner.iter().map(place).collect();
        let (width, height) = size(&svg);
        for (at, a) in boxes.iter().enumerate() {
            assert!(a[0] >= 0.0 && a[0] + a[2] <= width && a[1] + a[3] <= height);
            for b in &boxes[..at] {
                let apart =
                    a[0] + a[2] <= b[0] || b[0] + b[2] <= a[0] || a[1] + a[3] <= b[1] || b[1] + b[3] <= a[1];
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }

    #[test]
    fn its_style_needs_no_variables() {
        let style = style(SERIF);
        assert!(!style.contains("var(") && !style.contains("@media"), "{style}");
        assert!(style.contains(".measured"));
    }

    #[cfg(feature = "png")]
    #[test]
    fn the_same_as_png_has_its_size_and_is_not_blank() {
        let svg = paper(&figure(2));
        let painter = match Painter::new() {
            Ok(painter) => painter,
            Err(PaintError::NoFonts) => return kendall_testbed::missing("a font"),
            Err(error) => panic!("{error}"),
        };
        let png = painter.png(&svg).expect("it is drawn");
        let image = resvg::tiny_skia::Pixmap::decode_png(&png).expect("a PNG");
        let (width, height) = size(&svg);
        let of = |pixels: f64| (pixels * painter::SCALE).ceil() as u32;
        assert_eq!((image.width(), image.height()), (of(width), of(height)));
        let dark = image.pixels().iter().filter(|pixel| pixel.red() < 100 && pixel.alpha() == 255).count();
        let white = image.pixels().iter().filter(|pixel| pixel.red() == 255).count();
        let all = image.pixels().len();
        assert!(dark > 1000 && white > all / 2, "{dark} dark and {white} white of {all}");
    }
}
