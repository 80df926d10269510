//! Least squares for curves of a few parameters with lower bounds: Levenberg and Marquardt's method with an active set,
//! Wald standard errors, and intervals by profile likelihood.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

use crate::student_t;

/// A sum of squares to minimise.
pub struct Problem<'a> {
    /// The residuals, divided by their standard deviations up to a common factor.
    pub residuals: &'a dyn Fn(&[f64]) -> Vec<f64>,
    /// The lower bound of each parameter.
    pub low: Vec<f64>,
    /// The scale of each parameter, for one near zero.
    pub scale: Vec<f64>,
}

/// A minimum of the sum of squares.
#[derive(Clone, Debug)]
pub struct Minimum {
    /// The parameters.
    pub at: Vec<f64>,
    /// The sum of squares there.
    pub sum: f64,
}

/// The derivative by each parameter, column by column.
type Columns = Vec<Vec<f64>>;

impl Problem<'_> {
    /// The sum of squares at these parameters; infinite where it is not a number.
    pub fn sum(&self, at: &[f64]) -> f64 {
        let sum: f64 = (self.residuals)(at).iter().map(|residual| residual * residual).sum();
        if sum.is_nan() { f64::INFINITY } else { sum }
    }

    /// The best minimum from the most promising starts.
    pub fn minimise_from(&self, starts: &[Vec<f64>]) -> Option<Minimum> {
        const PROMISING: usize = 4;
        let mut starts: Vec<(f64, &Vec<f64>)> = starts.iter().map(|start| (self.sum(start), start)).collect();
        starts.sort_by(|a, b| a.0.total_cmp(&b.0));
        let reached = starts.iter().take(PROMISING).map(|(_, start)| self.minimise(start));
        reached.filter(|minimum| minimum.sum.is_finite()).min_by(|a, b| a.sum.total_cmp(&b.sum))
    }

    /// Levenberg–Marquardt (Marquardt 1963), each column scaled to length one; a parameter stays at its bound as long as the sum
    /// decreases outwards.
    pub fn minimise(&self, start: &[f64]) -> Minimum {
        let keep = |(value, low): (&f64, &f64)| value.max(*low);
        let mut at: Vec<f64> = start.iter().zip(&self.low).map(keep).collect();
        let mut sum = self.sum(&at);
        let mut damping = 1e-3;
        for _ in 0..300 {
            let residuals = (self.residuals)(&at);
            let columns = self.columns(&at);
            let slope: Vec<f64> = columns.iter().map(|column| dot(column, &residuals)).collect();
            let free: Vec<usize> = (0..at.len()).filter(|&i| at[i] > self.low[i] || slope[i] < 0.0).collect();
            let mut moved = None;
            while damping < 1e16 {
                let Some(step) = damped(&columns, &slope, &free, damping) else {
                    damping *= 10.0;
                    continue;
                };
                let mut next = at.clone();
                for (&i, step) in free.iter().zip(step) {
                    next[i] = (at[i] - step).max(self.low[i]);
                }
                let reached = self.sum(&next);
                if reached < sum {
                    moved = Some((next, reached));
                    damping = (damping * 0.1).max(1e-12);
                    break;
                }
                damping *= 10.0;
            }
            let Some((next, reached)) = moved else { break };
            let settled = sum - reached <= 1e-10 * sum;
            (at, sum) = (next, reached);
            if settled {
                break;
            }
        }
        Minimum { at, sum }
    }

    /// By central differences; forwards only at a bound.
    fn columns(&self, at: &[f64]) -> Columns {
        let column = |i: usize| {
            let step = 1e-5 * at[i].abs().max(self.scale[i]);
            let (mut below, mut above) = (at.to_vec(), at.to_vec());
            below[i] = (at[i] - step).max(self.low[i]);
            above[i] = at[i] + step;
            let width = above[i] - below[i];
            let (from, to) = ((self.residuals)(&below), (self.residuals)(&above));
            to.iter().zip(&from).map(|(to, from)| (to - from) / width).collect()
        };
        (0..at.len()).map(column).collect()
    }

    /// The standard error of each parameter, by a linear approximation without bounds: √(s²·(JᵀJ)⁻¹), with s² on `freedom` degrees
    /// of freedom. Infinite if the data do not determine the parameter.
    pub fn standard_errors(&self, minimum: &Minimum, freedom: f64) -> Vec<f64> {
        // The bounds are not part of the linear approximation.
        let unbounded = Problem {
            residuals: self.residuals,
            low: vec![f64::NEG_INFINITY; self.low.len()],
            scale: self.scale.clone(),
        };
        let columns = unbounded.columns(&minimum.at);
        let all: Vec<usize> = (0..columns.len()).collect();
        let variance = minimum.sum / freedom;
        let error = |i: usize| {
            let unit: Vec<f64> = all.iter().map(|&j| f64::from(u8::from(i == j))).collect();
            let inverse = damped(&columns, &unit, &all, 0.0).map_or(f64::INFINITY, |column| column[i]);
            (variance * inverse.max(0.0)).sqrt()
        };
        all.iter().map(|&i| error(i)).collect()
    }

    /// The values of parameter `i` that the data do not reject at 95 %: those with which the best fit of all others has a sum of
    /// squares of at most the least one plus variance·c (Bates and Watts 1988, section 6.1). c is Student's t squared, smaller near
    /// the parameter's bound (see `Level::critical`). `error` is its standard error.
    pub fn interval(&self, minimum: &Minimum, i: usize, error: f64, noise: Noise) -> (f64, f64) {
        let scale = self.scale[i].max(minimum.at[i].abs());
        let error = if error.is_finite() && error > 0.0 { error.min(1e3 * scale) } else { scale };
        let level = Level::new(noise, Bound { low: self.low[i], error });
        let side = |towards: f64| {
            let mut profile = Profile { problem: self, i, others: minimum.at.clone(), level: &level };
            let mut inside = minimum.at[i];
            let mut reach = 2.0 * error;
            loop {
                let outside = (inside + towards * reach).max(self.low[i]);
                if outside == inside {
                    return inside;
                }
                let height = profile.height(outside);
                if height > 0.0 {
                    return profile.crossing(inside, (outside, height));
                }
                if outside.abs() > 1e9 * scale {
                    return towards * f64::INFINITY;
                }
                inside = outside;
                reach *= 2.0;
            }
        };
        (side(-1.0), side(1.0))
    }
}

/// The reference for a sum of squares.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// The least sum that any fit has.
    pub least: f64,
    /// The variance of a residual, known with the given degrees of freedom.
    pub variance: f64,
    /// Degrees of freedom.
    pub freedom: f64,
}

impl Noise {
    /// Estimated from the least sum of squares.
    pub fn of(least: f64, freedom: f64) -> Self {
        Self { least, variance: least / freedom, freedom }
    }
}

/// The bound of a parameter's estimates, and their standard error.
struct Bound {
    low: f64,
    error: f64,
}

/// The largest sum of squares that does not reject a value.
struct Level {
    noise: Noise,
    bound: Bound,
    law: StudentsT,
    /// Student's quantiles for one side and for two.
    one_sided: f64,
    two_sided: f64,
}

impl Level {
    fn new(noise: Noise, bound: Bound) -> Self {
        let freedom = noise.freedom;
        let law = StudentsT::new(0.0, 1.0, freedom).expect("degrees of freedom are positive");
        let (one_sided, two_sided) = (student_t(freedom, 0.95), student_t(freedom, 0.975));
        Self { noise, bound, law, one_sided, two_sided }
    }

    /// The deviation, in standard errors, at which a value is rejected at 95 % if estimates stop at the bound: one-sided for the
    /// bound itself, two-sided far from it, and between the two so that the best-fitting 95 % are kept (Feldman and Cousins 1998,
    /// with Student's law for the normal one).
    fn critical(&self, value: f64) -> f64 {
        let above = (value - self.bound.low) / self.bound.error;
        if above >= self.two_sided {
            return self.two_sided;
        }
        // An estimate at the bound fits worse than it would below.
        let held =
            |t: f64| if above > 0.0 { self.law.cdf(-(above * above + t * t) / (2.0 * above)) } else { 0.0 };
        let (mut low, mut high) = (self.one_sided, self.two_sided);
        while high - low > 1e-5 * high {
            let middle = f64::midpoint(low, high);
            if self.law.cdf(middle) - held(middle) < 0.95 { low = middle } else { high = middle }
        }
        high
    }

    /// The number of standard errors by which a sum of squares exceeds the limit of rejection.
    fn height(&self, value: f64, sum: f64) -> f64 {
        ((sum - self.noise.least).max(0.0) / self.noise.variance).sqrt() - self.critical(value)
    }
}

/// The best sum of squares with one parameter fixed.
struct Profile<'a> {
    problem: &'a Problem<'a>,
    i: usize,
    /// The last fit, from which the next one starts.
    others: Vec<f64>,
    level: &'a Level,
}

impl Profile<'_> {
    /// The number of standard errors by which a value exceeds the limit of rejection; almost linear.
    fn height(&mut self, value: f64) -> f64 {
        let i = self.i;
        let with = |others: &[f64]| {
            let mut all = others.to_vec();
            all.insert(i, value);
            all
        };
        let residuals = |others: &[f64]| (self.problem.residuals)(&with(others));
        let without = |all: &[f64]| {
            let mut others = all.to_vec();
            others.remove(i);
            others
        };
        let held = Problem {
            residuals: &residuals,
            low: without(&self.problem.low),
            scale: without(&self.problem.scale),
        };
        let minimum = held.minimise(&without(&self.others));
        self.others = with(&minimum.at);
        self.level.height(value, minimum.sum)
    }

    /// Where the height crosses zero between two values, to one part in 10⁵ of their distance, by the Illinois form of
    /// regula falsi.
    fn crossing(&mut self, mut inside: f64, outside: (f64, f64)) -> f64 {
        let (mut outside, mut above) = outside;
        let width = (outside - inside).abs();
        let mut below = self.height(inside).min(0.0);
        let mut last_inside = None;
        for _ in 0..60 {
            if (outside - inside).abs() <= 1e-5 * width || above - below <= 0.0 {
                break;
            }
            let middle = inside - below * (outside - inside) / (above - below);
            let found = self.height(middle);
            if found.abs() <= 1e-5 {
                return middle;
            }
            let now_inside = found < 0.0;
            if now_inside {
                (inside, below) = (middle, found);
                if last_inside == Some(true) {
                    above /= 2.0;
                }
            } else {
                (outside, above) = (middle, found);
                if last_inside == Some(false) {
                    below /= 2.0;
                }
            }
            last_inside = Some(now_inside);
        }
        f64::midpoint(inside, outside)
    }
}

/// Solves (JᵀJ + damping·diag)·step = slope over the free parameters, columns scaled to length one.
fn damped(columns: &Columns, slope: &[f64], free: &[usize], damping: f64) -> Option<Vec<f64>> {
    let length = |i: usize| dot(&columns[i], &columns[i]).sqrt();
    let lengths: Vec<f64> = free.iter().map(|&i| length(i)).collect();
    if lengths.iter().any(|length| !(*length > 0.0 && length.is_finite())) {
        return None;
    }
    let entry = |a: usize, b: usize| {
        let cosine = dot(&columns[free[a]], &columns[free[b]]) / (lengths[a] * lengths[b]);
        if a == b { cosine + damping } else { cosine }
    };
    let size = free.len();
    let matrix = (0..size).map(|a| (0..size).map(|b| entry(a, b)).collect()).collect();
    let right = free.iter().zip(&lengths).map(|(&i, length)| slope[i] / length).collect();
    let solved = solved(matrix, right)?;
    Some(solved.iter().zip(&lengths).map(|(x, length)| x / length).collect())
}

/// Gauss's elimination with row pivots; `None` for a singular matrix.
pub fn solved(mut matrix: Vec<Vec<f64>>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let size = right.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|&a, &b| matrix[a][column].abs().total_cmp(&matrix[b][column].abs()))?;
        let size_of_pivot = matrix[pivot][column].abs();
        if size_of_pivot.is_nan() || size_of_pivot <= 1e-14 {
            return None;
        }
        matrix.swap(column, pivot);
        right.swap(column, pivot);
        for row in column + 1..size {
            let factor = matrix[row][column] / matrix[column][column];
            let (upper, lower) = matrix.split_at_mut(row);
            for (below, above) in lower[0].iter_mut().zip(&upper[column]).skip(column) {
                *below -= factor * above;
            }
            right[row] -= factor * right[column];
        }
    }
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| matrix[row][column] * right[column]).sum();
        right[row] = (right[row] - known) / matrix[row][row];
    }
    Some(right)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Akaike's criterion for least squares with Gaussian noise of unknown variance, corrected for few points (Hurvich and Tsai 1989),
/// without the constant that all curves of the same points share. `parameters` includes the noise. Infinite if there are too few
/// points for it.
pub fn aicc(sum_of_squares: f64, points: usize, parameters: usize) -> f64 {
    let (n, k) = (points as f64, parameters as f64);
    if n <= k + 1.0 {
        return f64::INFINITY;
    }
    n * libm::log(sum_of_squares / n) + 2.0 * k + 2.0 * k * (k + 1.0) / (n - k - 1.0)
}

/// Akaike's criterion (1974) for least squares with Gaussian noise of unknown variance, with its constant. `parameters` are those
/// of the curve; the noise adds one.
pub fn aic_gaussian(sum_of_squares: f64, points: usize, parameters: usize) -> f64 {
    let n = points as f64;
    let deviance = n * (libm::log(2.0 * std::f64::consts::PI * sum_of_squares / n) + 1.0);
    deviance + 2.0 * (parameters as f64 + 1.0)
}
