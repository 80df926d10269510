//! The legend of plots: each label once, with a small drawing of its marks.

use super::{Layer, Marks, Plot};
use crate::svg::{Marker, Svg};

/// One entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The mark, as SVG.
    pub svg: String,
    /// The text of the entry.
    pub label: String,
}

const SIZE: (f64, f64) = (34.0, 16.0);

/// One key for each label, what was measured first, then in the order in which they are drawn.
pub(crate) fn keys<'p>(plots: impl IntoIterator<Item = &'p Plot>) -> Vec<Key> {
    let mut labels: Vec<(&str, Vec<&Layer>)> = Vec::new();
    for layer in plots.into_iter().flat_map(|plot| &plot.layers).filter(|layer| !layer.label.is_empty()) {
        let at = labels.iter().position(|(label, _)| *label == layer.label).unwrap_or_else(|| {
            labels.push((&layer.label, Vec::new()));
            labels.len() - 1
        });
        let layers = &mut labels[at].1;
        // The same mark in another panel is the same key.
        if !layers.iter().any(|known| known.class == layer.class && known.marks.same_mark(&layer.marks)) {
            layers.push(layer);
        }
    }
    labels.sort_by_key(|(label, _)| !label.starts_with("measured"));
    labels.iter().map(|(label, layers)| key(label, layers)).collect()
}

fn key(label: &str, layers: &[&Layer]) -> Key {
    let mut svg = Svg::new(SIZE.0, SIZE.1, label);
    for layer in layers {
        layer.marks.draw_key(&mut svg, &layer.class);
    }
    Key { svg: svg.finish(), label: label.to_owned() }
}

impl Marks {
    /// Whether two layers are drawn with the same kind of mark.
    fn same_mark(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Points { shape: ours, .. }, Self::Points { shape: theirs, .. }) => ours == theirs,
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    fn draw_key(&self, svg: &mut Svg, class: &str) {
        match self {
            Self::Line { .. } | Self::Rule { .. } => svg.line(class, (1.0, 8.0), (33.0, 8.0)),
            Self::Step { .. } => {
                let stair = [(1.0, 14.0), (12.0, 14.0), (12.0, 8.0), (22.0, 8.0), (22.0, 2.0), (33.0, 2.0)];
                svg.polyline(class, &stair);
            }
            Self::Points { shape: Marker::Dot, .. } => {
                svg.dots(class, &[(8.0, 9.0), (17.0, 6.0), (26.0, 10.0)]);
            }
            Self::Points { shape: Marker::Rising, .. } => svg.marker(class, Marker::Ring, (17.0, 8.0)),
            Self::Points { shape, .. } => svg.marker(class, *shape, (17.0, 8.0)),
            Self::Intervals { .. } => {
                for (from, to) in
                    [((17.0, 1.0), (17.0, 15.0)), ((13.0, 1.0), (21.0, 1.0)), ((13.0, 15.0), (21.0, 15.0))]
                {
                    svg.line(class, from, to);
                }
            }
            Self::Band { .. } | Self::Area { .. } => svg.rectangle(class, (1.0, 2.0), 32.0, 12.0),
            Self::Bars { .. } => {
                for (x, height) in [(3.0, 7.0), (12.0, 13.0), (21.0, 10.0)] {
                    svg.rectangle(class, (x, 15.0 - height), 9.0, height);
                }
            }
            Self::Heat { .. } => {
                for shade in 0..super::SHADES {
                    let width = 32.0 / super::SHADES as f64;
                    let x = 1.0 + width * shade as f64;
                    svg.rectangle(&format!("{class} shade{shade}"), (x, 2.0), width, 12.0);
                }
            }
            Self::Spans { .. } => svg.rectangle(class, (4.0, 5.0), 26.0, 6.0),
        }
    }
}
