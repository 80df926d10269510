//! A plot as data: two axes and layers of marks, drawn in order.
//!
//! One value has two renderings with the same numbers: static SVG, for readers without script, print and tests, and JSON, which the
//! script of the page turns into a plot that zooms and shows values under the cursor. Colours and dashes are classes of `figure.css` in
//! both.

mod clip;
mod drawn;
mod key;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};

use crate::chart::{Quantity, ScaleLaw};
use crate::svg::Marker;

pub use key::Key;
pub(crate) use key::keys;

/// A drawing before it is drawn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Plot {
    /// What is seen, as a screen reader says it.
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// From the lowest to the topmost.
    pub(crate) layers: Vec<Layer>,
    /// Width and height of the static drawing in pixels.
    pub(crate) size: (f64, f64),
}

/// What is shown along an edge.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Axis {
    /// The name of the axis; with the unit in brackets for plain numbers. The unit of times is chosen where they are drawn.
    pub(crate) title: String,
    pub(crate) quantity: Quantity,
    pub(crate) law: ScaleLaw,
    /// The least and the largest value shown at first.
    pub(crate) range: (f64, f64),
    /// Values that have a name instead of a number; empty where values are numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) names: Vec<(f64, String)>,
}

/// Marks of one meaning.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Layer {
    /// What they stand for: "measured", "M/M/2 formula". Layers with the same label are shown and hidden together; one
    /// without is always shown.
    pub(crate) label: String,
    /// The classes of `figure.css` that style them.
    pub(crate) class: String,
    #[serde(flatten)]
    pub(crate) marks: Marks,
}

/// The marks of a layer; lists of one layer are of equal length unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "mark", rename_all = "snake_case")]
pub(crate) enum Marks {
    /// A line through points, x ascending; a `y` that is not a number interrupts it.
    Line { x: Numbers, y: Numbers },
    /// A line that keeps its value until the next x.
    Step { x: Numbers, y: Numbers },
    /// A marker at each point.
    Points { shape: Marker, x: Numbers, y: Numbers },
    /// Upright bars with a foot at each end.
    Intervals { x: Numbers, low: Numbers, high: Numbers },
    /// The area between two lines.
    Band { x: Numbers, low: Numbers, high: Numbers },
    /// Rectangles from 0 to `y` over [from, to).
    Bars { from: Numbers, to: Numbers, y: Numbers },
    /// How many fell into each cell, row by row upwards: `(x_edges − 1) · (y_edges − 1)` counts. A cell has the classes of the
    /// layer and `shade0` to `shade5`, by [`shade`]; one with none is empty.
    Heat { x_edges: Numbers, y_edges: Numbers, counts: Numbers },
    /// Level bars in numbered lanes, upwards from lane 0; a lane is 1 high.
    Spans { lane: Numbers, from: Numbers, to: Numbers },
    /// A line from edge to edge at a value of `axis`, with a note.
    Rule { axis: Which, at: f64, note: String },
    /// The part between two values of x, with a note.
    Area { from: f64, to: f64, note: String },
}

/// One of the axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Which {
    X,
    Y,
}

/// Numbers, which in JSON are one string: "f64:" and their little-endian bytes in base64, or "f32:" where these are exact to a
/// millionth of what they span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Numbers(pub(crate) Vec<f64>);

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let finite = || self.0.iter().copied().filter(|value| value.is_finite());
        let (low, high) = finite()
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let short = finite().all(|value| (f64::from(value as f32) - value).abs() <= 1e-6 * (high - low));
        let text = if short {
            let bytes: Vec<u8> = self.0.iter().flat_map(|&value| (value as f32).to_le_bytes()).collect();
            format!("f32:{}", STANDARD.encode(bytes))
        } else {
            let bytes: Vec<u8> = self.0.iter().flat_map(|value| value.to_le_bytes()).collect();
            format!("f64:{}", STANDARD.encode(bytes))
        };
        serializer.serialize_str(&text)
    }
}

impl FromIterator<f64> for Numbers {
    fn from_iter<I: IntoIterator<Item = f64>>(numbers: I) -> Self {
        Self(numbers.into_iter().collect())
    }
}

impl Numbers {
    /// Both numbers of each place.
    fn pairs<'n>(&'n self, other: &'n Self) -> impl Iterator<Item = (f64, f64)> + 'n {
        self.0.iter().copied().zip(other.0.iter().copied())
    }
}

/// The shades of a heat map.
pub(crate) const SHADES: usize = 6;

/// The shade of a cell with this count where the fullest has `most`: by equal ratios, ⌊6 · ln(count) ÷ ln(most)⌋, and the
/// fullest the last one. None for an empty cell.
pub(crate) fn shade(count: f64, most: f64) -> Option<usize> {
    if count.is_nan() || count <= 0.0 {
        return None;
    }
    let along = if most > 1.0 { count.max(1.0).ln() / most.ln() } else { 1.0 };
    Some(((along * SHADES as f64) as usize).min(SHADES - 1))
}

impl Axis {
    /// An axis of times in seconds.
    pub(crate) fn times(title: &str, law: ScaleLaw, range: (f64, f64)) -> Self {
        let note = if law == ScaleLaw::Log { " (log scale)" } else { "" };
        Self { title: format!("{title}{note}"), quantity: Quantity::Time, law, range, names: Vec::new() }
    }

    /// An axis of plain numbers; the title names their unit.
    pub(crate) fn numbers(title: impl Into<String>, law: ScaleLaw, range: (f64, f64)) -> Self {
        Self { title: title.into(), quantity: Quantity::Number, law, range, names: Vec::new() }
    }

    /// An axis of shares.
    pub(crate) fn shares(title: impl Into<String>, law: ScaleLaw, range: (f64, f64)) -> Self {
        Self { title: title.into(), quantity: Quantity::Share, law, range, names: Vec::new() }
    }
}

impl Marks {
    /// A line through points.
    pub(crate) fn line(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (x, y) = split(points);
        Self::Line { x, y }
    }

    /// A line that keeps its value until the next point.
    pub(crate) fn step(points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (x, y) = split(points);
        Self::Step { x, y }
    }

    /// A marker at each point.
    pub(crate) fn points(shape: Marker, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        let (x, y) = split(points);
        Self::Points { shape, x, y }
    }

    /// Upright bars: where across, from, to.
    pub(crate) fn intervals(bars: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let (x, (low, high)): (Vec<f64>, (Vec<f64>, Vec<f64>)) =
            bars.into_iter().map(|(x, low, high)| (x, (low, high))).unzip();
        Self::Intervals { x: Numbers(x), low: Numbers(low), high: Numbers(high) }
    }
}

fn split(points: impl IntoIterator<Item = (f64, f64)>) -> (Numbers, Numbers) {
    let (x, y) = points.into_iter().unzip();
    (Numbers(x), Numbers(y))
}

impl Layer {
    /// Marks that the legend calls `label`.
    pub(crate) fn new(label: impl Into<String>, class: impl Into<String>, marks: Marks) -> Self {
        Self { label: label.into(), class: class.into(), marks }
    }

    /// Marks that are always shown and that the legend does not name.
    pub(crate) fn unnamed(class: impl Into<String>, marks: Marks) -> Self {
        Self::new("", class, marks)
    }
}

impl Plot {
    /// As a page holds it: within a script element no text may look like its end.
    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("a plot is strings and numbers").replace('<', "\\u003c")
    }
}
