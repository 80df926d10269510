//! The universal scalability law fitted to throughputs.

use std::fmt;

use super::least_squares::{Minimum, Problem, solved};
use super::{FitError, Parameter, Point, aicc, factors, laws, validate};

/// X = γN/(1 + α(N − 1) + βN(N − 1)) through measured points.
#[derive(Clone, Debug, PartialEq)]
pub struct Usl {
    /// The share that is serial, at least 0.
    pub alpha: Parameter,
    /// What each pair of users costs, at least 0; 0 makes the law Amdahl's.
    pub beta: Parameter,
    /// What one user gets, in requests per second.
    pub gamma_per_s: Parameter,
    /// α below zero fits better still: more users get more than their share (a cache warms, a batch fills). A law that
    /// promises ever more is not to be extrapolated, so `predict` keeps to α ≥ 0.
    pub superlinear_alpha: Option<f64>,
    /// Where the throughput is largest; `None` without β.
    pub peak: Option<Peak>,
    /// The standard deviation of a point about the curve, in requests per second.
    pub residual_se_per_s: f64,
    /// The sum of the squared residuals.
    pub sum_of_squares: f64,
    /// Akaike's corrected criterion.
    pub aicc: f64,
    /// How many points were fitted.
    pub points: usize,
}

/// The largest throughput of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// At so many users.
    pub users: f64,
    /// The 95 % interval of that number by profile likelihood; open upwards where β may be zero.
    pub interval: (f64, f64),
    /// Requests per second there.
    pub throughput_per_s: f64,
    /// Whether the data reach it.
    pub seen: PeakSeen,
}

/// Whether a peak is within the loads that were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeakSeen {
    /// At or below the largest measured load.
    Within,
    /// Beyond all measured loads: an extrapolation.
    Beyond,
}

impl Usl {
    /// The throughput that so many users get, in requests per second.
    pub fn predict(&self, users: f64) -> f64 {
        laws::usl(self.alpha.value, self.beta.value, self.gamma_per_s.value, users)
    }
}

impl fmt::Display for Usl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [gamma, alpha, beta] = [&self.gamma_per_s, &self.alpha, &self.beta].map(show);
        write!(f, "X = γN/(1 + α(N − 1) + βN(N − 1)), γ = {gamma}, α = {alpha}, β = {beta}")?;
        match &self.peak {
            None => write!(f, "; no peak"),
            Some(peak) => {
                let (low, high) = peak.interval;
                write!(
                    f,
                    "; peak {:.4} 1/s at N = {:.4} ({low:.4} … {high:.4})",
                    peak.throughput_per_s, peak.users
                )?;
                match peak.seen {
                    PeakSeen::Within => Ok(()),
                    PeakSeen::Beyond => write!(f, ", beyond the measured loads"),
                }
            }
        }
    }
}

/// A parameter with its interval.
pub(super) fn show(parameter: &Parameter) -> String {
    let (low, high) = parameter.interval;
    format!("{:.4e} ({low:.4e} … {high:.4e})", parameter.value)
}

/// The standard deviation of a point about the curve.
pub(super) fn residual_se(minimum: &Minimum, points: usize, parameters: usize) -> f64 {
    (minimum.sum / (points - parameters) as f64).sqrt()
}

/// Fits the law by weighted least squares, α ≥ 0 and β ≥ 0, from several starts.
///
/// # Errors
/// Fails on fewer than four different loads and on impossible points.
pub fn fit_usl(points: &[Point]) -> Result<Usl, FitError> {
    validate(points, 4)?;
    let factors = factors(points);
    let residual_of = |curve: &dyn Fn(f64) -> f64| -> Vec<f64> {
        let residual =
            |(point, factor): (&Point, &f64)| factor * (curve(point.users) - point.throughput_per_s);
        points.iter().zip(&factors).map(residual).collect()
    };
    let residuals = |at: &[f64]| residual_of(&|users| law_of(at, users));
    let largest = points.iter().map(|point| point.users).fold(1.0, f64::max);
    let starts = starts(points, &factors);
    let scale = vec![starts[0][GAMMA], 0.1, 0.1 / largest.powi(2)];
    let free = Problem { residuals: &residuals, low: vec![f64::NEG_INFINITY; 3], scale: scale.clone() };
    let bounded = Problem { residuals: &residuals, low: vec![0.0; 3], scale };
    let minimum = bounded.minimise_from(&starts).ok_or(FitError::NoFit)?;
    let freedom = (points.len() - 3) as f64;
    let errors = bounded.standard_errors(&minimum, freedom);
    let parameter = |i: usize| Parameter {
        value: minimum.at[i],
        interval: bounded.interval(&minimum, i, minimum.sum, errors[i], freedom),
        standard_error: errors[i],
    };
    let at_bound = minimum.at[ALPHA] == 0.0;
    let superlinear_alpha = Some(free.minimise(&minimum.at))
        .filter(|free| at_bound && free.at[ALPHA] < 0.0 && free.sum < minimum.sum);
    Ok(Usl {
        alpha: parameter(ALPHA),
        beta: parameter(BETA),
        gamma_per_s: parameter(GAMMA),
        superlinear_alpha: superlinear_alpha.map(|free| free.at[ALPHA]),
        peak: peak(&minimum, &residual_of, largest, freedom),
        residual_se_per_s: residual_se(&minimum, points.len(), 3),
        sum_of_squares: minimum.sum,
        aicc: aicc(minimum.sum, points.len(), 4),
        points: points.len(),
    })
}

const GAMMA: usize = 0;
const ALPHA: usize = 1;
const BETA: usize = 2;

fn law_of(at: &[f64], users: f64) -> f64 {
    laws::usl(at[ALPHA], at[BETA], at[GAMMA], users)
}

/// Where to start: γ·N/X is linear in 1/γ, α/γ and β/γ, so least squares there, weighed as the throughputs are, is close;
/// and a few shapes with the best γ for each, in case noise spoils that.
fn starts(points: &[Point], factors: &[f64]) -> Vec<Vec<f64>> {
    let largest = points.iter().map(|point| point.users).fold(1.0, f64::max);
    let shape = |alpha: f64, beta: f64| {
        let (mut top, mut bottom) = (0.0, 0.0);
        for (point, factor) in points.iter().zip(factors) {
            let (curve, weight) = (laws::usl(alpha, beta, 1.0, point.users), factor * factor);
            top += weight * curve * point.throughput_per_s;
            bottom += weight * curve * curve;
        }
        vec![top / bottom, alpha, beta]
    };
    let mut starts = vec![shape(0.05, 0.05 / largest)];
    let mut normal = vec![vec![0.0; 3]; 3];
    let mut right = vec![0.0; 3];
    for (point, factor) in points.iter().zip(factors) {
        let (n, y) = (point.users, point.users / point.throughput_per_s);
        // The error of N/X is that of X times N/X². The last column is scaled to the size of the others.
        let weight = (factor * point.throughput_per_s.powi(2) / n).powi(2);
        let row = [1.0, n - 1.0, n * (n - 1.0) / largest];
        for a in 0..3 {
            right[a] += weight * row[a] * y;
            for b in 0..3 {
                normal[a][b] += weight * row[a] * row[b];
            }
        }
    }
    if let Some([a, b, c]) = solved(normal, right).as_deref()
        && *a > 0.0
    {
        starts.push(vec![1.0 / a, b / a, c / (a * largest)]);
        starts.push(shape((b / a).max(0.0), (c / (a * largest)).max(0.0)));
    }
    for alpha in [0.0, 0.01, 0.2] {
        for beta in [0.0, 0.1 / largest, 1.0 / largest.powi(2)] {
            starts.push(shape(alpha, beta));
        }
    }
    starts
}

/// The residuals of a curve.
type Residuals<'a> = dyn Fn(&dyn Fn(f64) -> f64) -> Vec<f64> + 'a;

/// The peak √((1 − α)/β) with its interval: that of q = 1/peak², with β = (1 − α)·q.
fn peak(minimum: &Minimum, residual_of: &Residuals<'_>, largest: f64, freedom: f64) -> Option<Peak> {
    let (gamma, alpha, beta) = (minimum.at[GAMMA], minimum.at[ALPHA], minimum.at[BETA]);
    let users = laws::usl_peak(alpha, beta);
    if !users.is_finite() || alpha >= 1.0 {
        return None;
    }
    let curve = |at: &[f64], users: f64| laws::usl(at[1], (1.0 - at[1]) * at[2], at[0], users);
    let residuals = |at: &[f64]| residual_of(&|users| curve(at, users));
    let q = users.powi(-2);
    let problem = Problem { residuals: &residuals, low: vec![0.0; 3], scale: vec![gamma, 0.1, q] };
    let at = Minimum { at: vec![gamma, alpha, q], sum: minimum.sum };
    let error = problem.standard_errors(&at, freedom)[2];
    let (low, high) = problem.interval(&at, 2, minimum.sum, error, freedom);
    Some(Peak {
        users,
        interval: (high.powf(-0.5).max(1.0), low.powf(-0.5)),
        throughput_per_s: laws::usl(alpha, beta, gamma, users),
        seen: if users <= largest { PeakSeen::Within } else { PeakSeen::Beyond },
    })
}
