//! Scales, ticks and axes: from values to pixels, and back to what a reader can read off.
//!
//! It knows nothing of reports; figures are in [`crate::figure`].

use serde::Serialize;

use crate::svg::{Anchor, Svg};
use kendall_stats::number::{TimeUnit, significant};

/// Maps values onto pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    law: ScaleLaw,
    values: (f64, f64),
    pixels: (f64, f64),
}

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ScaleLaw {
    /// Equal differences are equal lengths.
    Linear,
    /// Equal ratios are equal lengths. Values must be positive.
    Log,
    /// Shares p below 1, by equal ratios of 1 − p: 0.9, 0.99 and 0.999 are equally far apart.
    Tail,
}

/// A mark on an axis; one without a label is shorter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: Option<String>,
}

/// What the numbers on an axis are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Quantity {
    /// Times in seconds, shown in the unit that fits.
    Time,
    /// Shares of 1, shown in percent.
    Share,
    /// Plain numbers.
    Number,
}

impl Scale {
    /// A scale over `values` drawn over `pixels`; a range without extent is widened.
    pub(crate) fn new(law: ScaleLaw, values: (f64, f64), pixels: (f64, f64)) -> Self {
        let (low, high) = values;
        let values = match law {
            _ if high > low => values,
            ScaleLaw::Linear => (low - 0.5 * low.abs().max(1.0), low + 0.5 * low.abs().max(1.0)),
            ScaleLaw::Log => (low / 2.0, low * 2.0),
            ScaleLaw::Tail => (0.0, 0.999),
        };
        Self { law, values, pixels }
    }

    /// The pixel of a value; values beyond the ends are beyond the pixels.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let along = match self.law {
            ScaleLaw::Linear => (value - self.values.0) / (self.values.1 - self.values.0),
            ScaleLaw::Log => (value / self.values.0).ln() / (self.values.1 / self.values.0).ln(),
            ScaleLaw::Tail => {
                let nines = |share: f64| ((1.0 - self.values.0) / (1.0 - share)).ln();
                nines(value) / nines(self.values.1)
            }
        };
        self.pixels.0 + along * (self.pixels.1 - self.pixels.0)
    }

    /// The least and the largest value.
    pub(crate) fn values(&self) -> (f64, f64) {
        self.values
    }

    /// The pixels of the least and the largest value.
    pub(crate) fn pixels(&self) -> (f64, f64) {
        self.pixels
    }

    /// Whether a value lies between the ends.
    pub(crate) fn contains(&self, value: f64) -> bool {
        (self.values.0..=self.values.1).contains(&value)
    }

    /// The unit of the numbers on a linear time axis. On a log axis each tick has its own.
    pub(crate) fn unit(&self, quantity: Quantity) -> Option<TimeUnit> {
        let largest = self.values.0.abs().max(self.values.1.abs());
        (quantity == Quantity::Time && self.law == ScaleLaw::Linear).then(|| TimeUnit::for_s(largest))
    }

    /// Ticks at round values.
    pub(crate) fn ticks(&self, quantity: Quantity) -> Vec<Tick> {
        match self.law {
            ScaleLaw::Linear if quantity == Quantity::Share => self.linear_ticks(100.0, " %"),
            ScaleLaw::Linear => self.linear_ticks(self.unit(quantity).map_or(1.0, TimeUnit::per_s), ""),
            ScaleLaw::Log => self.log_ticks(quantity),
            ScaleLaw::Tail => self.tail_ticks(),
        }
    }

    /// About one tick every 70 pixels, at 1, 2 or 5 times a power of ten of the unit shown.
    fn linear_ticks(&self, per_unit: f64, symbol: &str) -> Vec<Tick> {
        let (low, high) = (self.values.0 * per_unit, self.values.1 * per_unit);
        let wanted = ((self.pixels.1 - self.pixels.0).abs() / 70.0).clamp(3.0, 9.0);
        let rough = (high - low) / wanted;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power).into_iter().find(|&step| step >= 0.7 * rough);
        let step = step.unwrap_or(10.0 * power);
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
        let tick = |at: i64| {
            let shown = at as f64 * step;
            Tick { value: shown / per_unit, label: Some(format!("{shown:.decimals$}{symbol}")) }
        };
        // Rounding near the ends of what numbers can be must not make a million ticks.
        (first..=last).take(20).map(tick).filter(|tick| tick.value.is_finite()).collect()
    }

    /// The quantiles that people name.
    fn tail_ticks(&self) -> Vec<Tick> {
        let named = ["0", "50", "90", "99", "99.9", "99.99", "99.999", "99.9999"];
        let tick = |name: &str| {
            let value = name.parse::<f64>().expect("a number") / 100.0;
            Tick { value, label: Some(format!("p{name}")) }
        };
        named.into_iter().map(tick).filter(|tick| self.contains(tick.value)).collect()
    }

    /// Every power of ten labelled, and 2 and 5 times it where there is room; marks between.
    fn log_ticks(&self, quantity: Quantity) -> Vec<Tick> {
        let (low, high) = self.values;
        let decade = (self.pixels.1 - self.pixels.0).abs() / (high / low).log10();
        // Labels are wider than high, and a scale with one label cannot be read.
        let is_upright = self.pixels.1 < self.pixels.0;
        let powers = (high.log10().floor() - low.log10().ceil()) as i32 + 1;
        let is_wide = decade > if is_upright { 75.0 } else { 150.0 };
        let labelled: &[u32] = if is_wide || powers < 2 { &[1, 2, 5] } else { &[1] };
        // Where even decades are narrow, only every second or third one is labelled.
        let every = (34.0 / decade).ceil().max(1.0) as i32;
        let digits = if decade > 12.0 { 1..10 } else { 1..2 };
        let mut ticks = Vec::new();
        for exponent in low.log10().floor() as i32..=high.log10().ceil() as i32 {
            for digit in digits.clone() {
                let value = format!("{digit}e{exponent}").parse::<f64>().expect("e notation is a number");
                if !self.contains(value) {
                    continue;
                }
                let label = labelled.contains(&digit) && exponent % every == 0;
                ticks.push(Tick { value, label: label.then(|| log_label(value, quantity)) });
            }
        }
        ticks
    }
}

/// A round value on a log axis, with its unit if it is a time.
fn log_label(value: f64, quantity: Quantity) -> String {
    match quantity {
        Quantity::Number => significant(value, 1),
        Quantity::Share => format!("{} %", significant(100.0 * value, 1)),
        Quantity::Time => {
            let unit = TimeUnit::for_s(value * (1.0 + 1e-9));
            format!("{} {}", significant(value * unit.per_s(), 1), unit.symbol())
        }
    }
}

/// The plotting area of a chart: a scale across and one upwards.
pub(crate) struct Frame {
    pub(crate) x: Scale,
    pub(crate) y: Scale,
}

impl Frame {
    /// The pixel of a pair of values.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    /// Grid, ticks and labels of both axes, and their titles: the vertical one above its axis, to be read level.
    pub(crate) fn draw_axes(&self, svg: &mut Svg, across: &[Tick], upwards: &[Tick], titles: (&str, &str)) {
        let ((left, right), (bottom, top)) = (self.x.pixels(), self.y.pixels());
        for tick in upwards {
            let y = self.y.at(tick.value);
            match &tick.label {
                Some(label) => {
                    svg.line("grid", (left, y), (right, y));
                    svg.text("tick", (left - 8.0, y + 4.0), Anchor::End, label);
                }
                None => svg.line("axis", (left - 3.0, y), (left, y)),
            }
        }
        for tick in across {
            let x = self.x.at(tick.value);
            let length = if tick.label.is_some() { 6.0 } else { 3.0 };
            svg.line("axis", (x, bottom), (x, bottom + length));
            if let Some(label) = &tick.label {
                svg.text("tick", (x, bottom + 20.0), Anchor::Middle, label);
            }
        }
        svg.line("axis", (left, bottom), (right, bottom));
        svg.text("title", ((left + right) / 2.0, bottom + 40.0), Anchor::Middle, titles.0);
        svg.text("title", ((left - 58.0).max(4.0), top - 14.0), Anchor::Start, titles.1);
    }
}

/// The part of a line that lies between the ends of the scale upwards, cut where it leaves.
pub(crate) fn clipped(line: &[(f64, f64)], upwards: &Scale) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let (_, top) = upwards.values();
    for pair in line.windows(2) {
        let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
        if kept.is_empty() && y0 <= top {
            kept.push((x0, y0));
        }
        if y0 <= top && y1 <= top {
            kept.push((x1, y1));
        } else if y0 <= top {
            kept.push((x0 + (x1 - x0) * (top - y0) / (y1 - y0), top));
            break;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().filter_map(|tick| tick.label.as_deref()).collect()
    }

    #[test]
    fn linear_ticks_are_round_and_inside() {
        for exponent in -7..7 {
            for factor in [1.0, 1.7, 3.3, 9.9] {
                let high = factor * 10f64.powi(exponent);
                let scale = Scale::new(ScaleLaw::Linear, (0.0, high), (400.0, 0.0));
                let ticks = scale.ticks(Quantity::Time);
                assert!((3..=13).contains(&ticks.len()), "{high}: {ticks:?}");
                let unit = scale.unit(Quantity::Time).expect("a linear time axis has a unit");
                for tick in &ticks {
                    assert!(tick.value <= high * (1.0 + 1e-9));
                    let shown: f64 = tick.label.as_deref().expect("labelled").parse().expect("a number");
                    assert!((shown / unit.per_s() - tick.value).abs() <= 1e-9 * high, "{tick:?}");
                }
            }
        }
    }

    #[test]
    fn log_ticks_name_each_decade_with_its_unit() {
        let scale = Scale::new(ScaleLaw::Log, (0.9e-4, 11.0), (0.0, 400.0));
        assert_eq!(
            labels(&scale.ticks(Quantity::Time)),
            ["100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]
        );
        let narrow = Scale::new(ScaleLaw::Log, (0.9e-3, 12e-3), (0.0, 400.0));
        assert_eq!(labels(&narrow.ticks(Quantity::Time)), ["1 ms", "2 ms", "5 ms", "10 ms"]);
        // Upwards there is room for more, and around a single power of ten there must be.
        let upwards = Scale::new(ScaleLaw::Log, (0.9e-3, 12e-3), (100.0, 0.0));
        assert_eq!(labels(&upwards.ticks(Quantity::Time)), ["1 ms", "2 ms", "5 ms", "10 ms"]);
        let around_one = Scale::new(ScaleLaw::Log, (0.15, 6.0), (0.0, 100.0));
        assert_eq!(labels(&around_one.ticks(Quantity::Number)), ["0.2", "0.5", "1", "2", "5"]);
    }

    #[test]
    fn scales_meet_their_ends() {
        for law in [ScaleLaw::Linear, ScaleLaw::Log] {
            let scale = Scale::new(law, (2.0, 50.0), (300.0, 20.0));
            assert!((scale.at(2.0) - 300.0).abs() < 1e-9 && (scale.at(50.0) - 20.0).abs() < 1e-9);
            let flat = Scale::new(law, (5.0, 5.0), (0.0, 100.0));
            assert!((flat.at(5.0) - 50.0).abs() < 1e-9);
        }
    }

    #[test]
    fn a_line_is_cut_where_it_leaves_the_top() {
        let scale = Scale::new(ScaleLaw::Linear, (0.0, 10.0), (100.0, 0.0));
        assert_eq!(
            clipped(&[(0.0, 0.0), (1.0, 5.0), (2.0, 15.0), (3.0, 2.0)], &scale),
            [(0.0, 0.0), (1.0, 5.0), (1.5, 10.0)]
        );
    }
}
