//! A straight line through points.

/// A straight line by least squares.
pub(super) struct Line {
    pub(super) level: f64,
    pub(super) slope: f64,
    pub(super) slope_error: f64,
    pub(super) freedom: f64,
}

impl Line {
    pub(super) fn of(points: &[(f64, f64)]) -> Option<Self> {
        let n = points.len() as f64;
        let (x, y) = points.iter().fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
        let level = y - slope * x;
        let rest: f64 = points.iter().map(|point| (point.1 - level - slope * point.0).powi(2)).sum();
        let slope_error = (rest / (n - 2.0) / spread).sqrt();
        (spread > 0.0).then_some(Self { level, slope, slope_error, freedom: n - 2.0 })
    }

    pub(super) fn through_zero(points: &[(f64, f64)]) -> Self {
        let squares: f64 = points.iter().map(|point| point.0 * point.0).sum();
        let slope = points.iter().map(|point| point.0 * point.1).sum::<f64>() / squares;
        let rest: f64 = points.iter().map(|point| (point.1 - slope * point.0).powi(2)).sum();
        let freedom = points.len() as f64 - 1.0;
        Self { level: 0.0, slope, slope_error: (rest / freedom / squares).sqrt(), freedom }
    }
}
