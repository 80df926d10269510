//! The part of a line or an area that lies within a rectangle of pixels, and the part of a long line that an eye can see.
//!
//! It works on pixels and not on values, since a line that is straight on the screen bends on a log axis.

/// A point in pixels.
pub(super) type Pixel = (f64, f64);

/// Further out than any screen reaches; beyond this, pixels are as far as this.
const FAR: f64 = 1e6;
/// The most points that a line keeps in one column of pixels.
const COLUMN: usize = 4;

/// A rectangle of pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
}

impl Window {
    pub(super) fn contains(&self, (x, y): Pixel) -> bool {
        (self.left..=self.right).contains(&x) && (self.top..=self.bottom).contains(&y)
    }

    /// The nearest pixel within; none for what is not a number.
    pub(super) fn nearest(&self, (x, y): Pixel) -> Option<Pixel> {
        (!x.is_nan() && !y.is_nan()).then(|| (x.clamp(self.left, self.right), y.clamp(self.top, self.bottom)))
    }

    /// A rectangle between two corners, as far as it lies within: its left, its top, its width and its height.
    pub(super) fn rectangle(&self, a: Pixel, b: Pixel) -> Option<(f64, f64, f64, f64)> {
        let ((ax, ay), (bx, by)) = (self.nearest(a)?, self.nearest(b)?);
        let (x, y, width, height) = (ax.min(bx), ay.min(by), (ax - bx).abs(), (ay - by).abs());
        (width > 0.0 && height > 0.0).then_some((x, y, width, height))
    }

    /// The parts of a line through points that lie within. A point that is not a number interrupts the line; one that stands
    /// alone is a part of one point.
    pub(super) fn parts(&self, points: impl Iterator<Item = Pixel>) -> Vec<Vec<Pixel>> {
        let mut parts = Vec::new();
        let mut run: Vec<Pixel> = Vec::new();
        for point in points {
            if point.0.is_nan() || point.1.is_nan() {
                self.cut(&std::mem::take(&mut run), &mut parts);
            } else {
                run.push((point.0.clamp(-FAR, FAR), point.1.clamp(-FAR, FAR)));
            }
        }
        self.cut(&run, &mut parts);
        parts
    }

    fn cut(&self, run: &[Pixel], parts: &mut Vec<Vec<Pixel>>) {
        if let &[only] = run {
            parts.extend(self.contains(only).then(|| vec![only]));
            return;
        }
        let run = visible(run);
        let mut part: Vec<Pixel> = Vec::new();
        for pair in run.windows(2) {
            let Some((from, to)) = self.segment(pair[0], pair[1]) else { continue };
            if part.last() != Some(&from) {
                parts.extend(Some(std::mem::take(&mut part)).filter(|part| part.len() > 1));
                part.push(from);
            }
            part.push(to);
        }
        parts.extend(Some(part).filter(|part| part.len() > 1));
    }

    /// The part of a straight line between two points that lies within (Liang and Barsky, 1984).
    fn segment(&self, a: Pixel, b: Pixel) -> Option<(Pixel, Pixel)> {
        let (dx, dy) = (b.0 - a.0, b.1 - a.1);
        let edges =
            [(-dx, a.0 - self.left), (dx, self.right - a.0), (-dy, a.1 - self.top), (dy, self.bottom - a.1)];
        let (mut enters, mut leaves) = (0.0f64, 1.0f64);
        for (towards, room) in edges {
            if towards == 0.0 {
                if room < 0.0 {
                    return None;
                }
            } else if towards < 0.0 {
                enters = enters.max(room / towards);
            } else {
                leaves = leaves.min(room / towards);
            }
        }
        let at = |share: f64| match share {
            0.0 => Some(a),
            1.0 => Some(b),
            share => self.nearest((a.0 + share * dx, a.1 + share * dy)),
        };
        if enters <= leaves { at(enters).zip(at(leaves)) } else { None }
    }

    /// The part of an area that lies within, by its corners (Sutherland and Hodgman, 1974).
    pub(super) fn polygon(&self, corners: &[Pixel]) -> Vec<Pixel> {
        let far = |&(x, y): &Pixel| (x.clamp(-FAR, FAR), y.clamp(-FAR, FAR));
        let numbers = corners.iter().filter(|(x, y)| !x.is_nan() && !y.is_nan());
        let mut kept: Vec<Pixel> = numbers.map(far).collect();
        // How far inside of each edge a point is.
        let inside: [&dyn Fn(Pixel) -> f64; 4] =
            [&|(x, _)| x - self.left, &|(x, _)| self.right - x, &|(_, y)| y - self.top, &|(_, y)| {
                self.bottom - y
            }];
        for depth in inside {
            let corners = std::mem::take(&mut kept);
            let Some(&last) = corners.last() else { break };
            let mut before = last;
            for corner in corners {
                let (from, to) = (depth(before), depth(corner));
                if (from < 0.0) != (to < 0.0) {
                    let share = from / (from - to);
                    kept.push((
                        before.0 + share * (corner.0 - before.0),
                        before.1 + share * (corner.1 - before.1),
                    ));
                }
                if to >= 0.0 {
                    kept.push(corner);
                }
                before = corner;
            }
        }
        kept.into_iter().filter_map(|corner| self.nearest(corner)).collect()
    }
}

/// What of a line an eye can see: of each column of pixels the first point, the lowest, the highest and the last, which draws
/// the same pixels as all of them (Jugel and others, "M4: a visualization-oriented time series data aggregation", 2014).
fn visible(points: &[Pixel]) -> Vec<Pixel> {
    let mut kept = Vec::with_capacity(points.len().min(10_000));
    for column in points.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        if column.len() <= COLUMN {
            kept.extend_from_slice(column);
            continue;
        }
        let height = |place: &usize| column[*place].1;
        let lowest = (0..column.len()).min_by(|a, b| height(a).total_cmp(&height(b))).unwrap_or(0);
        let highest = (0..column.len()).max_by(|a, b| height(a).total_cmp(&height(b))).unwrap_or(0);
        let mut places = [0, lowest, highest, column.len() - 1];
        places.sort_unstable();
        kept.extend(
            places
                .iter()
                .enumerate()
                .filter(|(i, place)| *i == 0 || places[i - 1] != **place)
                .map(|(_, &place)| column[place]),
        );
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const WINDOW: Window = Window { left: 50.0, right: 450.0, top: 20.0, bottom: 220.0 };

    #[test]
    fn a_line_is_cut_where_it_leaves_and_where_it_comes_back() {
        let line =
            [(0.0, 120.0), (100.0, 120.0), (200.0, 320.0), (300.0, 120.0), (f64::NAN, 0.0), (400.0, 60.0)];
        assert_eq!(
            WINDOW.parts(line.into_iter()),
            [
                vec![(50.0, 120.0), (100.0, 120.0), (150.0, 220.0)],
                vec![(250.0, 220.0), (300.0, 120.0)],
                vec![(400.0, 60.0)],
            ]
        );
    }

    #[test]
    fn of_a_long_line_the_eye_misses_nothing() {
        let noise = |i: usize| ((i * 7919) % 1009) as f64 / 5.05 + 20.0;
        let line: Vec<Pixel> = (0..100_000).map(|i| (50.0 + i as f64 / 250.0, noise(i))).collect();
        let parts = WINDOW.parts(line.iter().copied());
        let kept: Vec<Pixel> = parts.concat();
        assert!(kept.len() <= 4 * 401, "{}", kept.len());
        for column in line.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
            let extreme = |points: &[Pixel], sign: f64| {
                points.iter().map(|point| sign * point.1).fold(f64::NEG_INFINITY, f64::max)
            };
            let ours: Vec<Pixel> =
                kept.iter().copied().filter(|point| point.0.floor() == column[0].0.floor()).collect();
            for sign in [1.0, -1.0] {
                assert_eq!(extreme(&ours, sign), extreme(column, sign));
            }
        }
    }

    proptest! {
        /// What is cut lies within, and no point that lay within is lost from a short line.
        #[test]
        fn parts_lie_within(line in prop::collection::vec((-1e3f64..1e3, -1e3f64..1e3), 0..4)) {
            let parts = WINDOW.parts(line.iter().copied());
            prop_assert!(parts.iter().flatten().all(|point| WINDOW.contains(*point)));
            for point in line.iter().filter(|point| WINDOW.contains(**point)) {
                prop_assert!(parts.iter().flatten().any(|kept| kept == point));
            }
            prop_assert!(WINDOW.polygon(&line).iter().all(|point| WINDOW.contains(*point)));
        }

        /// The area of what is cut from a rectangle is the area of the overlap.
        #[test]
        fn an_area_is_cut_to_its_overlap(x in -500f64..500.0, y in -500f64..500.0, w in 1f64..900.0, h in 1f64..900.0) {
            let corners = [(x, y), (x + w, y), (x + w, y + h), (x, y + h)];
            let kept = WINDOW.polygon(&corners);
            let twice: f64 = (0..kept.len())
                .map(|i| (kept[i], kept[(i + 1) % kept.len()]))
                .map(|(a, b)| a.0 * b.1 - b.0 * a.1)
                .sum();
            let overlap = WINDOW.rectangle(corners[0], corners[2]).map_or(0.0, |(_, _, w, h)| w * h);
            prop_assert!((twice.abs() / 2.0 - overlap).abs() < 1e-6 * overlap.max(1.0));
        }
    }
}
