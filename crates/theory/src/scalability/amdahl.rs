//! Amdahl's law fitted to throughputs: the universal scalability law without the cost of pairs.

use std::fmt;

use super::usl::{residual_se, show};
use kendall_stats::least_squares::{Noise, Problem};

use super::{FitError, Parameter, Point, aicc, factors, laws, validate};

/// X = γ·N/(1 + α(N − 1)) through measured points.
#[derive(Clone, Debug, PartialEq)]
pub struct Amdahl {
    /// The serial share.
    pub alpha: Parameter,
    /// The throughput of one user, in requests per second.
    pub gamma_per_s: Parameter,
    /// The standard deviation of a point about the curve, in requests per second.
    pub residual_se_per_s: f64,
    /// Akaike's corrected criterion.
    pub aicc: f64,
}

impl Amdahl {
    /// The throughput of the given number of users, in requests per second.
    pub fn predict(&self, users: f64) -> f64 {
        self.gamma_per_s.value * laws::amdahl(self.alpha.value, users)
    }

    /// The limit of the throughput for many users, γ/α, in requests per second.
    pub fn limit_per_s(&self) -> f64 {
        self.gamma_per_s.value / self.alpha.value
    }
}

impl fmt::Display for Amdahl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "X = γN/(1 + α(N − 1)), γ = {}, α = {}", show(&self.gamma_per_s), show(&self.alpha))
    }
}

/// Fits Amdahl's law by weighted least squares, α ≥ 0.
///
/// # Errors
/// Fails on fewer than three different loads and on impossible points.
pub fn fit_amdahl(points: &[Point]) -> Result<Amdahl, FitError> {
    validate(points, 3)?;
    let factors = factors(points);
    let residuals = |at: &[f64]| -> Vec<f64> {
        let residual = |(point, factor): (&Point, &f64)| {
            factor * (at[0] * laws::amdahl(at[1], point.users) - point.throughput_per_s)
        };
        points.iter().zip(&factors).map(residual).collect()
    };
    let each = |point: &Point| point.throughput_per_s / point.users;
    let gamma = points.iter().map(each).fold(0.0, f64::max);
    let problem = Problem { residuals: &residuals, low: vec![0.0; 2], scale: vec![gamma, 0.1] };
    let starts = [0.0, 0.01, 0.1, 0.5].map(|alpha| vec![gamma, alpha]);
    let minimum = problem.minimise_from(&starts).ok_or(FitError::NoFit)?;
    let freedom = (points.len() - 2) as f64;
    let errors = problem.standard_errors(&minimum, freedom);
    let parameter = |i: usize| Parameter {
        value: minimum.at[i],
        interval: problem.interval(&minimum, i, errors[i], Noise::of(minimum.sum, freedom)),
        standard_error: errors[i],
    };
    Ok(Amdahl {
        alpha: parameter(1),
        gamma_per_s: parameter(0),
        residual_se_per_s: residual_se(&minimum, points.len(), 2),
        aicc: aicc(minimum.sum, points.len(), 3),
    })
}
