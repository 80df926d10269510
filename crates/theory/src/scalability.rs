//! Throughput against load: the universal scalability law and similar ones, fitted to measured points.
//!
//! [`fit_usl`] finds α, β and γ by weighted least squares within their bounds; its intervals are profile likelihoods,
//! not symmetric approximations, so they have their coverage even if a parameter is near its bound.

mod amdahl;
mod laws;
mod linearised;
mod usl;

pub use amdahl::{Amdahl, fit_amdahl};
pub use kendall_stats::least_squares::{aic_gaussian, aicc};
pub use laws::{amdahl, gustafson, usl, usl_peak};
pub use linearised::{LinearisedUsl, fit_usl_linearised};
pub use usl::{Peak, PeakSeen, Usl, fit_usl};

/// A measured load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The number of users, threads or servers.
    pub users: f64,
    /// Requests per second.
    pub throughput_per_s: f64,
    /// The standard error of the throughput, in requests per second, where it is known: a point weighs by its square.
    /// If one point of a fit lacks it, all points weigh the same.
    pub standard_error_per_s: Option<f64>,
}

impl Point {
    /// A load whose throughput has an unknown error.
    pub fn new(users: f64, throughput_per_s: f64) -> Self {
        Self { users, throughput_per_s, standard_error_per_s: None }
    }
}

/// A fitted parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// The best value.
    pub value: f64,
    /// The parameter's 95 % interval by profile likelihood; an end is infinite if the data do not bound it.
    pub interval: (f64, f64),
    /// The parameter's standard error by a linear approximation (Wald), for comparison with other tools.
    pub standard_error: f64,
}

/// The reason why a curve cannot be fitted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum FitError {
    #[error(
        "{points} points at {loads} different loads are too few; this curve needs {needed} different loads or more"
    )]
    TooFew { points: usize, loads: usize, needed: usize },
    #[error(
        "point {place} has {users} users and {throughput_per_s} requests per second; both must be finite and above zero"
    )]
    Odd { place: usize, users: f64, throughput_per_s: f64 },
    #[error("point {place} has the standard error {standard_error}; it must be finite and above zero")]
    StandardError { place: usize, standard_error: f64 },
    #[error("the curve needs the throughput of one user, and no point has one user")]
    NoSingle,
    #[error("no parameters fit these points")]
    NoFit,
}

/// Checks that the points are valid.
pub(crate) fn validate(points: &[Point], needed: usize) -> Result<(), FitError> {
    let sound = |number: f64| number > 0.0 && number.is_finite();
    for (place, point) in (1..).zip(points) {
        if !sound(point.users) || !sound(point.throughput_per_s) {
            let (users, throughput_per_s) = (point.users, point.throughput_per_s);
            return Err(FitError::Odd { place, users, throughput_per_s });
        }
        match point.standard_error_per_s {
            Some(standard_error) if !sound(standard_error) => {
                return Err(FitError::StandardError { place, standard_error });
            }
            _ => {}
        }
    }
    let mut loads: Vec<f64> = points.iter().map(|point| point.users).collect();
    loads.sort_by(f64::total_cmp);
    loads.dedup();
    match loads.len() {
        loads if loads < needed => Err(FitError::TooFew { points: points.len(), loads, needed }),
        _ => Ok(()),
    }
}

/// The factor of each point's residual: the inverse of its standard error, to a mean square of 1, so that the residual
/// standard error stays in requests per second.
pub(crate) fn factors(points: &[Point]) -> Vec<f64> {
    let known: Option<Vec<f64>> =
        points.iter().map(|point| point.standard_error_per_s.map(f64::recip)).collect();
    let Some(factors) = known else { return vec![1.0; points.len()] };
    let square = factors.iter().map(|factor| factor * factor).sum::<f64>() / factors.len() as f64;
    factors.iter().map(|factor| factor / square.sqrt()).collect()
}
