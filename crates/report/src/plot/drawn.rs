//! A plot as static SVG: for readers without script, for print, for separate files.
//!
//! Nothing is drawn outside of the axes but their labels. A measurement beyond the range stands at its edge with its value;
//! lines and areas are cut there; other markers are left out.

use super::clip::{Pixel, Window};
use super::{Axis, Layer, Marks, Plot, SHADES, Which, shade};
use crate::chart::{Frame, Quantity, Scale, ScaleLaw, Tick};
use crate::svg::{Anchor, Marker, Path, Svg};
use kendall_stats::number::{percent, significant, time};

/// A letter of a label is about so wide.
const LETTER: f64 = 6.7;
/// Room for labels and title below the axis across.
const FOOT: f64 = 52.0;
/// Room for the title of the axis upwards, and without one.
const HEAD: (f64, f64) = (36.0, 14.0);
/// Lines of notes that do not stand on each other.
const NOTE: f64 = 16.0;
/// Dots nearer to each other than this many pixels look like one.
const APART: f64 = 1.5;

impl Plot {
    /// The drawing.
    pub(crate) fn svg(&self) -> String {
        let mut svg = Svg::new(self.size.0, self.size.1, &self.title);
        self.draw(&mut svg, (0.0, 0.0));
        svg.finish()
    }

    /// Draws with the upper left corner at `origin`.
    pub(crate) fn draw(&self, svg: &mut Svg, origin: Pixel) {
        let drawing = Drawing::new(self, origin);
        // Areas lie under the grid, all else on it.
        let (areas, marks): (Vec<&Layer>, Vec<&Layer>) =
            self.layers.iter().partition(|layer| matches!(layer.marks, Marks::Area { .. }));
        areas.iter().for_each(|layer| drawing.layer(svg, layer));
        drawing.frame.draw_axes(
            svg,
            &drawing.across,
            &drawing.upwards,
            (&self.x.words(&drawing.frame.x), &self.y.words(&drawing.frame.y)),
        );
        marks.iter().for_each(|layer| drawing.layer(svg, layer));
        drawing.notes(svg);
    }
}

impl Axis {
    /// A scale that its law can have, whatever the range.
    fn scale(&self, pixels: (f64, f64)) -> Scale {
        let (low, high) = self.range;
        let sound = low.is_finite() && high.is_finite() && (high - low).is_finite();
        let range = match self.law {
            _ if !sound => (0.1, 1.0),
            ScaleLaw::Linear => (low, high),
            ScaleLaw::Log if high <= 0.0 => (0.1, 1.0),
            ScaleLaw::Log => (if low > 0.0 { low } else { high / 1e3 }, high),
            ScaleLaw::Tail => (low.clamp(0.0, 0.9), high.clamp(0.9, 1.0 - 1e-9)),
        };
        Scale::new(self.law, range, pixels)
    }

    fn ticks(&self, scale: &Scale) -> Vec<Tick> {
        if self.names.is_empty() {
            return scale.ticks(self.quantity);
        }
        let named = self.names.iter().filter(|(value, _)| scale.contains(*value));
        named.map(|(value, name)| Tick { value: *value, label: Some(name.clone()) }).collect()
    }

    /// The title, with the unit where ticks do not carry it.
    fn words(&self, scale: &Scale) -> String {
        match scale.unit(self.quantity).filter(|_| !self.title.is_empty() && self.names.is_empty()) {
            Some(unit) => format!("{} [{}]", self.title, unit.symbol()),
            None => self.title.clone(),
        }
    }

    /// A value in the form of a label at a mark.
    fn value(&self, value: f64) -> String {
        match self.quantity {
            Quantity::Time => time(value),
            Quantity::Share => percent(value),
            Quantity::Number => significant(value, 3),
        }
    }
}

/// The width of the longest label.
fn widest(ticks: &[Tick]) -> f64 {
    let letters = ticks.iter().filter_map(|tick| tick.label.as_ref()).map(|label| label.chars().count());
    letters.max().unwrap_or(0) as f64 * LETTER
}

/// Labels that would touch are left out, every second or every third alike; of marks that would run together, only those
/// with labels stay.
fn thin_labels(ticks: &mut Vec<Tick>, scale: &Scale, room: f64) {
    let labelled: Vec<f64> =
        ticks.iter().filter(|tick| tick.label.is_some()).map(|tick| scale.at(tick.value)).collect();
    let nearest = labelled.windows(2).map(|pair| (pair[1] - pair[0]).abs()).fold(f64::INFINITY, f64::min);
    if nearest >= room {
        return;
    }
    let every = (room / nearest.max(1e-3)).ceil().max(2.0) as usize;
    let labelled = ticks.iter_mut().filter(|tick| tick.label.is_some());
    for (_, tick) in labelled.enumerate().filter(|(place, _)| place % every != 0) {
        tick.label = None;
    }
    if nearest < 4.0 {
        ticks.retain(|tick| tick.label.is_some());
    }
}

struct Drawing<'p> {
    plot: &'p Plot,
    frame: Frame,
    window: Window,
    across: Vec<Tick>,
    upwards: Vec<Tick>,
}

impl<'p> Drawing<'p> {
    fn new(plot: &'p Plot, (x, y): Pixel) -> Self {
        let (width, height) = plot.size;
        let head = if plot.y.title.is_empty() { HEAD.1 } else { HEAD.0 };
        let upright = plot.y.scale((y + height - FOOT, y + head));
        let mut upwards = plot.y.ticks(&upright);
        thin_labels(&mut upwards, &upright, 13.0);
        let left = x + (widest(&upwards) + 18.0).clamp(46.0, 0.45 * width);
        // A label at the very end needs room for its other half.
        let level = plot.x.scale((left, x + width - 16.0));
        let reach = |tick: &Tick| {
            let half = tick.label.as_ref().map_or(0.0, |label| label.chars().count() as f64 * LETTER / 2.0);
            level.at(tick.value) + half - (x + width)
        };
        let beyond = plot.x.ticks(&level).iter().map(reach).fold(0.0, f64::max);
        let level = plot.x.scale((left, x + width - 16.0 - beyond.min(0.2 * width)));
        let mut across = plot.x.ticks(&level);
        let room = widest(&across) + 6.0;
        thin_labels(&mut across, &level, room);
        let (left, right) = level.pixels();
        let window = Window { left, right, top: y + head, bottom: y + height - FOOT };
        Self { plot, frame: Frame { x: level, y: upright }, window, across, upwards }
    }

    fn at(&self, x: f64, y: f64) -> Pixel {
        self.frame.at(x, y)
    }

    fn layer(&self, svg: &mut Svg, layer: &Layer) {
        let class = layer.class.as_str();
        match &layer.marks {
            Marks::Line { x, y } => self.line(svg, class, x.pairs(y)),
            Marks::Step { x, y } => self.step(svg, class, x.pairs(y)),
            Marks::Points { shape, x, y } => self.points(svg, class, *shape, x.pairs(y)),
            Marks::Intervals { x, low, high } => {
                for ((x, low), (_, high)) in x.pairs(low).zip(x.pairs(high)) {
                    self.interval(svg, class, x, (low, high));
                }
            }
            Marks::Band { x, low, high } => self.band(svg, class, x.pairs(low), x.pairs(high)),
            Marks::Bars { from, to, y } => self.bars(svg, class, from.pairs(to).zip(y.0.iter().copied())),
            Marks::Heat { x_edges, y_edges, counts } => {
                self.heat(svg, class, (&x_edges.0, &y_edges.0), &counts.0)
            }
            Marks::Spans { lane, from, to } => {
                self.spans(svg, class, lane.0.iter().copied().zip(from.pairs(to)))
            }
            Marks::Rule { axis, at, .. } => self.rule(svg, class, *axis, *at),
            Marks::Area { from, to, .. } => self.area(svg, class, (*from, *to)),
        }
    }

    fn line(&self, svg: &mut Svg, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        for part in self.window.parts(points.map(|(x, y)| self.at(x, y))) {
            match part.as_slice() {
                // A point alone has no line to show it.
                &[(x, y)] => {
                    let (from, to) = ((x - 12.0).max(self.window.left), (x + 12.0).min(self.window.right));
                    svg.line(class, (from, y), (to, y));
                }
                part => svg.polyline(class, part),
            }
        }
    }

    fn step(&self, svg: &mut Svg, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let mut before = f64::NAN;
        let corners = points.flat_map(|(x, y)| {
            let corner = if before.is_nan() || y.is_nan() { None } else { Some((x, before)) };
            before = y;
            corner.into_iter().chain([(x, y)])
        });
        self.line(svg, class, corners.collect::<Vec<_>>().into_iter());
    }

    fn points(&self, svg: &mut Svg, class: &str, shape: Marker, points: impl Iterator<Item = (f64, f64)>) {
        let is_measured = class.split(' ').any(|word| word == "measured");
        if shape == Marker::Dot {
            let inside = points.map(|(x, y)| self.at(x, y)).filter(|pixel| self.window.contains(*pixel));
            return svg.dots(class, &apart(inside));
        }
        for (x, y) in points {
            let pixel = self.at(x, y);
            if self.window.contains(pixel) {
                svg.marker(class, shape, pixel);
            } else if is_measured && (self.window.left..=self.window.right).contains(&pixel.0) {
                self.beyond(svg, pixel, y);
            }
        }
    }

    /// A measurement beyond the range: at its edge, with its value.
    fn beyond(&self, svg: &mut Svg, pixel: Pixel, value: f64) {
        let Some((x, _)) = self.window.nearest(pixel).filter(|_| value.is_finite()) else { return };
        let is_above = pixel.1 < self.window.top;
        let (y, label_y) = match is_above {
            true => (self.window.top + 22.0, self.window.top + 40.0),
            false => (self.window.bottom - 5.0, self.window.bottom - 14.0),
        };
        svg.marker("measured rising", if is_above { Marker::Rising } else { Marker::Ring }, (x, y));
        let (anchor, beside) = match x > self.window.right - 54.0 {
            true => (Anchor::End, 8.0),
            false => (Anchor::Middle, 0.0),
        };
        svg.text("value", (x + beside, label_y), anchor, &self.plot.y.value(value));
    }

    /// An upright bar with a foot at each end that is within.
    fn interval(&self, svg: &mut Svg, class: &str, x: f64, (low, high): (f64, f64)) {
        let Window { left, right, top, bottom } = self.window;
        let (from, to) = (self.at(x, low), self.at(x, high));
        // What a log axis cannot show is beyond its lower end.
        let foot = if from.1.is_nan() { f64::INFINITY } else { from.1 };
        if !(left..=right).contains(&from.0) || to.1.is_nan() || foot < top || to.1 > bottom {
            return;
        }
        let x = from.0;
        svg.line(class, (x, to.1.max(top)), (x, foot.min(bottom)));
        for end in [to.1, foot] {
            if (top..=bottom).contains(&end) {
                svg.line(class, ((x - 4.0).max(left), end), ((x + 4.0).min(right), end));
            }
        }
    }

    fn band(
        &self,
        svg: &mut Svg,
        class: &str,
        low: impl Iterator<Item = (f64, f64)>,
        high: impl Iterator<Item = (f64, f64)>,
    ) {
        let floor = self.frame.y.values().0;
        let pixel = |(x, y): (f64, f64)| {
            let (across, upwards) = self.at(x, y);
            (across, if upwards.is_nan() && y <= floor { self.window.bottom } else { upwards })
        };
        let mut corners: Vec<Pixel> = high.map(pixel).collect();
        let mut back: Vec<Pixel> = low.map(pixel).collect();
        back.reverse();
        corners.extend(back);
        let mut path = Path::default();
        path.polygon(&self.window.polygon(&corners));
        svg.path(class, &path);
    }

    fn bars(&self, svg: &mut Svg, class: &str, bars: impl Iterator<Item = ((f64, f64), f64)>) {
        let mut path = Path::default();
        for ((from, to), y) in bars {
            let ((from, top), (to, _)) = (self.at(from, y), self.at(to, y));
            // 0, or the foot of an axis that has none.
            let foot = self.frame.y.at(0.0);
            let foot = if foot.is_finite() { foot } else { self.window.bottom };
            if let Some(bar) = self.window.rectangle((from, foot), (to, top)) {
                path.rectangle(bar);
            }
        }
        svg.path(class, &path);
    }

    /// Cells of a row that look alike and touch are one rectangle; all rectangles of a shade are one path.
    fn heat(&self, svg: &mut Svg, class: &str, (x_edges, y_edges): (&[f64], &[f64]), counts: &[f64]) {
        let most = counts.iter().copied().filter(|count| count.is_finite()).fold(0.0, f64::max);
        let mut shades: Vec<Path> = (0..SHADES).map(|_| Path::default()).collect();
        let columns = x_edges.len().saturating_sub(1);
        if columns == 0 {
            return;
        }
        for (row, ends) in counts.chunks_exact(columns).zip(y_edges.windows(2)) {
            let mut column = 0;
            for alike in row.chunk_by(|a, b| shade(*a, most) == shade(*b, most)) {
                let (from, to) = (x_edges[column], x_edges[column + alike.len()]);
                column += alike.len();
                let Some(shade) = shade(alike[0], most) else { continue };
                if let Some(cell) = self.window.rectangle(self.at(from, ends[0]), self.at(to, ends[1])) {
                    shades[shade].rectangle(cell);
                }
            }
        }
        for (shade, path) in shades.iter().enumerate() {
            svg.path(&format!("{class} shade{shade}"), path);
        }
    }

    fn spans(&self, svg: &mut Svg, class: &str, spans: impl Iterator<Item = (f64, (f64, f64))>) {
        let mut path = Path::default();
        for (lane, (from, to)) in spans {
            let ((left, low), (right, high)) = (self.at(from, lane + 0.1), self.at(to, lane + 0.9));
            // What takes no time and what is thinner than a line are still to be seen.
            let (right, high) = (right.max(left + 0.5), high.min(low - 0.5));
            if let Some(bar) = self.window.rectangle((left, low), (right, high)) {
                path.rectangle(bar);
            }
        }
        svg.path(class, &path);
    }

    fn rule(&self, svg: &mut Svg, class: &str, axis: Which, at: f64) {
        let Window { left, right, top, bottom } = self.window;
        match axis {
            Which::X => {
                let x = self.frame.x.at(at);
                if (left..=right).contains(&x) {
                    svg.line(class, (x, bottom), (x, top));
                }
            }
            Which::Y => {
                let y = self.frame.y.at(at);
                if (top..=bottom).contains(&y) {
                    svg.line(class, (left, y), (right, y));
                }
            }
        }
    }

    fn area(&self, svg: &mut Svg, class: &str, (from, to): (f64, f64)) {
        let corner = |x: f64, y: f64| (self.frame.x.at(x).clamp(-1e6, 1e6), y);
        let area = self.window.rectangle(corner(from, self.window.bottom), corner(to, self.window.top));
        if let Some((x, y, width, height)) = area {
            svg.rectangle(class, (x, y), width, height);
        }
    }

    /// The notes of rules and areas, those at the foot one above the other.
    fn notes(&self, svg: &mut Svg) {
        let Window { left, right, top, bottom } = self.window;
        let mut line = 0.0;
        for layer in &self.plot.layers {
            match &layer.marks {
                Marks::Rule { axis: Which::Y, at, note } => {
                    let y = self.frame.y.at(*at);
                    if (top..=bottom).contains(&y) && !note.is_empty() {
                        let above = if y - top > 18.0 { y - 6.0 } else { y + 14.0 };
                        svg.text("label", (right - 4.0, above), Anchor::End, note);
                    }
                }
                Marks::Rule { axis: Which::X, at: from, note } | Marks::Area { from, note, .. } => {
                    let x = self.frame.x.at(*from);
                    if x.is_nan() || x > right || note.is_empty() {
                        continue;
                    }
                    let x = x.max(left);
                    // On the side that has room; at the foot, since most lines rise.
                    let room = note.chars().count() as f64 * LETTER + 8.0;
                    let (anchor, beside) =
                        if right - x > room { (Anchor::Start, 6.0) } else { (Anchor::End, -6.0) };
                    svg.text("label", (x + beside, bottom - 8.0 - NOTE * line), anchor, note);
                    line += 1.0;
                }
                _ => {}
            }
        }
    }
}

/// One of those dots that fall together.
fn apart(dots: impl Iterator<Item = Pixel>) -> Vec<Pixel> {
    let mut seen = std::collections::BTreeSet::new();
    dots.filter(|&(x, y)| seen.insert(((x / APART) as i64, (y / APART) as i64))).collect()
}

#[cfg(test)]
mod tests;
