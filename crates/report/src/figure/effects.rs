//! The effects of each factor, and of two of them together.

use kendall_analysis::factorial::Pair;

use super::Figure;
use super::models::{line_class, marker_class, shape};
use super::response::MEASURED;
use crate::chart::ScaleLaw;
use crate::plot::{Axis, Layer, Marks, Plot, Which};
use crate::svg::Marker;
use kendall_analysis::EffectsSeen;
use kendall_analysis::Report;
use kendall_analysis::effects::{level, table};

const SIZE: (f64, f64) = (420.0, 280.0);
/// The distance of the other measures to the right of the discs of the first one.
const ASIDE: f64 = 0.14;

/// Main effects, a panel for each factor, and effects of pairs, a panel for each pair; `None` unless several factors were varied.
pub fn effects(report: &Report) -> Option<Figure> {
    let first = report.effects.first()?;
    let factors = in_order(first.effects.main.iter().map(|main| main.factor));
    let pairs = in_order(first.effects.pairs.iter().map(|pair| pair.factors));
    let name = |factor: usize| report.factors.get(factor).map_or("", |factor| factor.name.as_str());
    let mut plots: Vec<(String, Plot)> =
        factors.iter().map(|&factor| (format!("Effect of {}", name(factor)), main(report, factor))).collect();
    plots.extend(
        pairs.iter().map(|&(a, b)| {
            (format!("{} and {} together", name(a), name(b)), together(report, first, (a, b)))
        }),
    );
    Some(Figure::of(
        "What each factor does",
        "Effects are ratios, because a factor usually changes response times by a ratio: 2 is twice the geometric mean over all \
         combinations. Bars are 95 % intervals, from the spread of the trials of each combination. Where the lines of two factors are \
         parallel, the factors do not interact. The table shows how much of the variation between combinations each one explains.",
        plots,
        table(report),
    ))
}

/// Each once, in the order of the first.
fn in_order<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known
}

/// The axis of the levels of a factor.
fn levels(report: &Report, factor: usize) -> Axis {
    let of = report.factors.get(factor);
    let count = of.map_or(1, |factor| factor.values.len());
    let names =
        (0..count).map(|place| (place as f64, of.map_or(String::new(), |of| of.values[place].clone())));
    let title = of.map_or(String::new(), |factor| factor.title());
    Axis { names: names.collect(), ..Axis::numbers(title, ScaleLaw::Linear, (-0.5, count as f64 - 0.5)) }
}

fn main(report: &Report, factor: usize) -> Plot {
    let mut layers =
        vec![Layer::unnamed("capacity", Marks::Rule { axis: Which::Y, at: 1.0, note: String::new() })];
    let (mut low, mut high) = (1.0f64, 1.0f64);
    for (place, seen) in report.effects.iter().enumerate() {
        let ours = || seen.effects.main.iter().filter(|main| main.factor == factor);
        let x = |level: usize| level as f64 + ASIDE * place as f64;
        let bars: Vec<(f64, f64, f64)> = ours()
            .filter_map(|main| main.ratio.interval.map(|(from, to)| (x(main.level), from, to)))
            .collect();
        for value in ours().map(|main| main.ratio.value).chain(bars.iter().flat_map(|bar| [bar.1, bar.2])) {
            (low, high) = (low.min(value), high.max(value));
        }
        let label = format!("{MEASURED} of the {}", seen.of);
        let shape = if place == 0 { Marker::Disc } else { Marker::Triangle };
        layers.push(Layer::new(&label, "interval", Marks::intervals(bars)));
        let points = Marks::points(shape, ours().map(|main| (x(main.level), main.ratio.value)));
        layers.push(Layer::new(&label, "measured", points));
    }
    Plot {
        title: format!("Effect of {}", report.factors.get(factor).map_or("", |factor| factor.name.as_str())),
        x: levels(report, factor),
        y: Axis::numbers("ratio to the geometric mean (log scale)", ScaleLaw::Log, (low / 1.3, high * 1.3)),
        layers,
        size: SIZE,
    }
}

/// The response of each combination of two factors: along the first, a line for each level of the second.
fn together(report: &Report, seen: &EffectsSeen, (a, b): (usize, usize)) -> Plot {
    let ours = || seen.effects.pairs.iter().filter(|pair| pair.factors == (a, b));
    let values = || {
        ours().flat_map(|pair| {
            let (low, high) = pair.mean.interval.unwrap_or((pair.mean.value, pair.mean.value));
            [low, pair.mean.value, high]
        })
    };
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    let mut layers = Vec::new();
    for (place, of_b) in in_order(ours().map(|pair| pair.levels.1)).into_iter().enumerate() {
        let line = || ours().filter(move |pair| pair.levels.1 == of_b);
        let at = |pair: &Pair| (pair.levels.0 as f64, pair.mean.value);
        let bar = |pair: &Pair| pair.mean.interval.map(|(from, to)| (pair.levels.0 as f64, from, to));
        let label = level(report, b, of_b);
        layers.push(Layer::new(&label, line_class(place), Marks::line(line().map(at))));
        layers.push(Layer::new(&label, "interval", Marks::intervals(line().filter_map(bar))));
        layers.push(Layer::new(&label, marker_class(place), Marks::points(shape(place), line().map(at))));
    }
    Plot {
        title: format!("{} of combinations of two factors", seen.of),
        x: levels(report, a),
        y: Axis::times(&seen.of, ScaleLaw::Log, (low / 1.3, high * 1.3)),
        layers,
        size: SIZE,
    }
}
