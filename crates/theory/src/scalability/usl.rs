//! The universal scalability law fitted to throughputs.

use std::fmt;

use super::{FitError, Parameter, Point, aicc, factors, laws, validate};
use kendall_stats::least_squares::{Minimum, Noise, Problem, solved};

/// X = γN/(1 + α(N − 1) + βN(N − 1)) through measured points.
#[derive(Clone, Debug, PartialEq)]
pub struct Usl {
    /// The serial share, at least 0.
    pub alpha: Parameter,
    /// The cost of each pair of users, at least 0; 0 makes the law Amdahl's.
    pub beta: Parameter,
    /// The throughput of one user, in requests per second.
    pub gamma_per_s: Parameter,
    /// The α below zero that fits better: more users get more than their share (a cache warms, a batch fills). A law that
    /// promises ever more must not be extrapolated, so `predict` keeps to α ≥ 0.
    pub superlinear_alpha: Option<f64>,
    /// The peak of the throughput.
    pub peak: Peak,
    /// The standard deviation of a point about the curve, in requests per second.
    pub residual_se_per_s: f64,
    /// The sum of the squared residuals.
    pub sum_of_squares: f64,
    /// Akaike's corrected criterion.
    pub aicc: f64,
    /// The number of fitted points.
    pub points: usize,
}

/// The largest throughput of the law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peak {
    /// The number of users at the peak; infinite without β.
    pub users: f64,
    /// The 95 % interval of that number by profile likelihood; open upwards if β may be zero.
    pub interval: (f64, f64),
    /// Requests per second there; without β the limit for many users.
    pub throughput_per_s: f64,
    /// Whether the data reach it.
    pub seen: PeakSeen,
}

/// Whether a peak is within the measured loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeakSeen {
    /// At or below the largest measured load.
    Within,
    /// Beyond all measured loads: an extrapolation.
    Beyond,
    /// Nowhere: β is zero.
    Nowhere,
}

impl Usl {
    /// The throughput of the given number of users, in requests per second.
    pub fn predict(&self, users: f64) -> f64 {
        laws::usl(self.alpha.value, self.beta.value, self.gamma_per_s.value, users)
    }
}

impl fmt::Display for Usl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [gamma, alpha, beta] = [&self.gamma_per_s, &self.alpha, &self.beta].map(show);
        write!(f, "X = γN/(1 + α(N − 1) + βN(N − 1)), γ = {gamma}, α = {alpha}, β = {beta}")?;
        let Peak { users, interval: (low, high), throughput_per_s, seen } = self.peak;
        match seen {
            PeakSeen::Nowhere => write!(f, "; no peak, or one beyond N = {low:.4}"),
            PeakSeen::Within => {
                write!(f, "; peak {throughput_per_s:.4} 1/s at N = {users:.4} ({low:.4} … {high:.4})")
            }
            PeakSeen::Beyond => write!(
                f,
                "; peak {throughput_per_s:.4} 1/s at N = {users:.4} ({low:.4} … {high:.4}), beyond the measured loads"
            ),
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
    // The noise is the residual of the best curve of this form, even if its parameters are out of bounds.
    let best = free.minimise(&minimum.at);
    let variance = best.sum.min(minimum.sum) / freedom;
    let noise = Noise { least: minimum.sum, variance, freedom };
    let parameter = |i: usize| Parameter {
        value: minimum.at[i],
        interval: bounded.interval(&minimum, i, errors[i], noise),
        standard_error: errors[i],
    };
    let superlinear_alpha = (minimum.at[ALPHA] == 0.0 && best.at[ALPHA] < 0.0).then_some(best.at[ALPHA]);
    Ok(Usl {
        alpha: parameter(ALPHA),
        beta: parameter(BETA),
        gamma_per_s: parameter(GAMMA),
        superlinear_alpha,
        peak: peak(&minimum, &residual_of, noise, largest),
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

/// The starts of the fit: γ·N/X is linear in 1/γ, α/γ and β/γ, so least squares there, with the weights of the
/// throughputs, is close; and a few shapes with the best γ for each, in case noise spoils that.
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
fn peak(minimum: &Minimum, residual_of: &Residuals<'_>, noise: Noise, largest: f64) -> Peak {
    let (gamma, alpha, beta) = (minimum.at[GAMMA], minimum.at[ALPHA], minimum.at[BETA]);
    let users = laws::usl_peak(alpha, beta);
    let seen = match users {
        users if users.is_infinite() => PeakSeen::Nowhere,
        users if users > largest => PeakSeen::Beyond,
        _ => PeakSeen::Within,
    };
    let throughput_per_s = match seen {
        PeakSeen::Nowhere => gamma / alpha,
        _ => laws::usl(alpha, beta, gamma, users),
    };
    // If one user is best, there is no q for each β.
    if alpha >= 1.0 {
        return Peak { users, interval: (1.0, users), throughput_per_s, seen };
    }
    let curve = |at: &[f64], users: f64| laws::usl(at[ALPHA], (1.0 - at[ALPHA]) * at[BETA], at[GAMMA], users);
    let residuals = |at: &[f64]| residual_of(&|users| curve(at, users));
    let q = beta / (1.0 - alpha);
    let scale = vec![gamma, 0.1, q.max(0.1 / largest.powi(2))];
    let problem = Problem { residuals: &residuals, low: vec![0.0; 3], scale };
    let at = Minimum { at: vec![gamma, alpha, q], sum: minimum.sum };
    let error = problem.standard_errors(&at, noise.freedom)[BETA];
    let (low, high) = problem.interval(&at, BETA, error, noise);
    let peak = |q: f64| if q > 0.0 { (1.0 / q).sqrt().max(1.0) } else { f64::INFINITY };
    Peak { users, interval: (peak(high), peak(low)), throughput_per_s, seen }
}
