//! The universal scalability law through normalised points, by Gunther's parabola.

use super::{FitError, Point, laws, validate};

/// The result of the linearised fit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinearisedUsl {
    /// σ, the serial share.
    pub sigma: f64,
    /// κ, the cost of each pair.
    pub kappa: f64,
    /// The measured throughput of one user, in requests per second.
    pub single_per_s: f64,
}

impl LinearisedUsl {
    /// The throughput of the given number of users, in requests per second.
    pub fn predict(&self, users: f64) -> f64 {
        laws::usl(self.sigma, self.kappa, self.single_per_s, users)
    }
}

/// N/C − 1 = κ(N − 1)² + (σ + κ)(N − 1) without intercept, C = X/X(1), by ordinary least squares (Gunther 2007, section
/// 5.2). It depends on the one point with one user and gives the large loads the most weight, so prefer
/// [`fit_usl`](super::fit_usl); this is the method of older reports.
///
/// # Errors
/// Fails on fewer than three different loads, on invalid points, and if no point has one user.
pub fn fit_usl_linearised(points: &[Point]) -> Result<LinearisedUsl, FitError> {
    validate(points, 3)?;
    let single: Vec<f64> =
        points.iter().filter(|point| point.users == 1.0).map(|point| point.throughput_per_s).collect();
    if single.is_empty() {
        return Err(FitError::NoSingle);
    }
    let single_per_s = kendall_stats::mean(&single);
    let [mut x2, mut x3, mut x4, mut xy, mut x2y] = [0.0; 5];
    for point in points {
        let x = point.users - 1.0;
        let y = point.users * single_per_s / point.throughput_per_s - 1.0;
        x2 += x * x;
        x3 += x.powi(3);
        x4 += x.powi(4);
        xy += x * y;
        x2y += x * x * y;
    }
    let determinant = x4 * x2 - x3 * x3;
    let kappa = (x2y * x2 - xy * x3) / determinant;
    let sigma = (x4 * xy - x3 * x2y) / determinant - kappa;
    Ok(LinearisedUsl { sigma, kappa, single_per_s })
}
