//! Functions known at some points.

/// The value at `x` of straight lines between points of ascending `x`. Outside the points the nearest one counts; NaN without any.
pub(crate) fn interpolated(points: &[(f64, f64)], x: f64) -> f64 {
    let after = points.partition_point(|point| point.0 < x);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some(before), Some(after)) => {
            before.1 + (after.1 - before.1) * (x - before.0) / (after.0 - before.0)
        }
        (Some(end), None) | (None, Some(&end)) => end.1,
        (None, None) => f64::NAN,
    }
}
