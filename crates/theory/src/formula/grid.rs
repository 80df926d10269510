//! M/G/1 with any law of finite variance: the waiting time as a geometric sum of residual service times, on a grid.
//!
//! w(t) = ρ·P(Y > t) + ρ·∫ w(t − y) dF(y), with Y the residual service time. On the grid, w runs straight between
//! points and the mass and mean of Y in each cell are kept, so the mean wait is exact and the error falls with the
//! square of the step; only where a step holds many services, above a utilisation of 0.99, it falls with the step (a
//! compound geometric law by Panjer's recursion, 1981, with matched moments: Gerber 1982).

use kendall_station::{Estimate, Law, Quantile};

use super::poisson::Sides;
use super::quadrature::integral;
use super::tails::Distributions;

/// Cells of one grid.
const CELLS: usize = 512;
/// The factor by which each grid of a ladder extends beyond the previous one.
const REACH: f64 = 4.0;

/// The waiting and response times of M/G/1, in order of arrival.
pub(super) struct Grid {
    rho: f64,
    service: Limited,
}

/// A law with its limited moments, E\[min(S, t)\] and E\[min(S, t)²\].
struct Limited {
    law: Law,
    mean_s: f64,
    /// The sums of an empirical law's first samples and of their squares, so that a look-up need not add them all.
    sums: Vec<[f64; 2]>,
}

impl Limited {
    fn new(law: Law) -> Self {
        let mut sums = Vec::new();
        if let Law::Empirical { samples_s } = &law {
            sums.push([0.0; 2]);
            sums.extend(samples_s.iter().scan([0.0; 2], |[sum, squares], x| {
                (*sum, *squares) = (*sum + x, *squares + x * x);
                Some([*sum, *squares])
            }));
        }
        Self { mean_s: law.mean_s(), law, sums }
    }

    /// Both moments of min(S, t).
    fn up_to(&self, t_s: f64) -> [f64; 2] {
        match &self.law {
            Law::Empirical { samples_s } => {
                let below = samples_s.partition_point(|&x| x <= t_s);
                let (n, above) = (samples_s.len() as f64, (samples_s.len() - below) as f64);
                let [sum, squares] = self.sums[below];
                [(sum + t_s * above) / n, (squares + t_s * t_s * above) / n]
            }
            law => [law.limited_mean_s(t_s), limited_square(law, t_s)],
        }
    }
}

/// E\[min(S, t)²\]: the part of S² below t, and t² beyond.
fn limited_square(law: &Law, t_s: f64) -> f64 {
    let beyond = || t_s * t_s * law.survival(t_s);
    match law {
        _ if t_s <= 0.0 => 0.0,
        Law::Constant { mean_s } => t_s.min(*mean_s).powi(2),
        Law::Exponential { mean_s } => limited_square_exponential(*mean_s, t_s),
        Law::Hyperexponential { parts } => {
            parts.iter().map(|&(p, mean_s)| p * limited_square_exponential(mean_s, t_s)).sum()
        }
        // E[S²; S ≤ t] = E[S²]·P(two more stages also end by t).
        Law::Erlang { shape, mean_s } => {
            let (k, x) = (f64::from(*shape), t_s * f64::from(*shape) / mean_s);
            law.moment(2) * libm::exp(Sides::of(k + 1.0, x).ln_more) + beyond()
        }
        Law::Uniform { low_s, high_s } => {
            let end_s = t_s.min(*high_s);
            if end_s <= *low_s {
                return end_s * end_s;
            }
            ((end_s.powi(3) - low_s.powi(3)) / 3.0 + end_s * end_s * (high_s - end_s)) / (high_s - low_s)
        }
        Law::LogNormal { mean_s, scv } => {
            let sigma = libm::log1p(*scv).sqrt();
            let z = (libm::log(t_s / mean_s) + sigma * sigma / 2.0) / sigma;
            law.moment(2) * libm::erfc((2.0 * sigma - z) * std::f64::consts::FRAC_1_SQRT_2) / 2.0 + beyond()
        }
        Law::Pareto { shape, mean_s } => {
            let least_s = mean_s * (shape - 1.0) / shape;
            if t_s <= least_s {
                return t_s * t_s;
            }
            let left = libm::pow(least_s / t_s, shape - 2.0);
            least_s * least_s * (shape * (1.0 - left) / (shape - 2.0) + left)
        }
        Law::Empirical { samples_s } => {
            samples_s.iter().map(|x| x.min(t_s).powi(2)).sum::<f64>() / samples_s.len() as f64
        }
        Law::Mixture { parts } => {
            parts.iter().map(|part| part.probability * limited_square(&part.of, t_s)).sum()
        }
    }
}

fn limited_square_exponential(mean_s: f64, t_s: f64) -> f64 {
    let x = t_s / mean_s;
    // 2·m²·P(two stages end by t), where x is small by its series.
    let two =
        if x < 1e-3 { x * x * (0.5 - x * (1.0 / 3.0 - x / 8.0)) } else { 1.0 - (1.0 + x) * libm::exp(-x) };
    2.0 * mean_s * mean_s * two
}

impl Grid {
    pub(super) fn new(rho: f64, service: Law) -> Self {
        Self { rho, service: Limited::new(service) }
    }
}

impl Distributions for Grid {
    /// P(W > t), from a grid that ends at t.
    fn waiting(&self, t_s: f64) -> f64 {
        if t_s == 0.0 { self.rho } else { Rung::extrapolated(self, t_s).waiting[CELLS] }
    }

    /// P(R > t).
    fn response(&self, t_s: f64) -> f64 {
        if t_s == 0.0 {
            return 1.0 - (1.0 - self.rho) * (1.0 - self.service.law.survival(0.0));
        }
        Rung::extrapolated(self, t_s).response(self, CELLS)
    }

    /// Quantiles at ascending shares, of the response and of the waiting time, each from the shortest grid that contains it.
    fn quantiles(&self, shares: &[f64]) -> (Vec<Quantile>, Vec<Quantile>) {
        let (mut response, mut waiting) = (Vec::new(), Vec::new());
        let mut reach_s = self.service.mean_s;
        // The quantiles if all waits were exponential; none is far below that, and those grids are skipped.
        let scale_s = 0.1 * self.service.law.moment(2) / self.service.mean_s / (2.0 * (1.0 - self.rho));
        while response.len() < shares.len() && reach_s < f64::MAX / REACH {
            if reach_s < scale_s * libm::log(self.rho / (1.0 - shares[response.len().min(waiting.len())])) {
                reach_s *= REACH;
                continue;
            }
            let rung = Rung::extrapolated(self, reach_s);
            let wait_at = |i| rung.waiting[i];
            let response_at = |i| rung.response(self, i);
            while let Some(&p) = shares.get(waiting.len()) {
                let Some(t_s) = crossing(p, rung.step_s, wait_at) else { break };
                waiting.push(Quantile { p, value_s: Estimate::exact(t_s) });
            }
            while let Some(&p) = shares.get(response.len()) {
                let Some(t_s) = crossing(p, rung.step_s, response_at) else { break };
                response.push(Quantile { p, value_s: Estimate::exact(t_s) });
            }
            reach_s *= REACH;
        }
        (response, waiting)
    }
}

/// Where a falling function of the grid's points crosses 1 − p, exponential between points; `None` if beyond the grid.
fn crossing(p: f64, step_s: f64, survival: impl Fn(usize) -> f64) -> Option<f64> {
    let level = 1.0 - p;
    if survival(0) <= level {
        return Some(0.0);
    }
    if survival(CELLS) > level {
        return None;
    }
    let (mut low, mut high) = (0, CELLS);
    while high - low > 1 {
        let middle = usize::midpoint(low, high);
        if survival(middle) > level { low = middle } else { high = middle }
    }
    // A tail is straighter in its logarithm.
    let (above, below) = (survival(low), survival(high).max(f64::MIN_POSITIVE));
    Some(step_s * (low as f64 + libm::log(above / level) / libm::log(above / below)))
}

/// One grid from 0 to its reach.
struct Rung {
    step_s: f64,
    /// P(W > t) at the points.
    waiting: Vec<f64>,
    /// E\[min(S, t)\] at the points.
    limited_s: Vec<f64>,
    /// By how much the second moment of Y grew as the mass of each cell went to its two ends.
    spread_s2: f64,
}

impl Rung {
    /// A grid, corrected by one of half as many cells: the error goes with what the cells add to the second moment of Y,
    /// which is the square of a small step and all but the step itself where that holds whole services. Between the
    /// points of the coarse grid it is taken to run straight.
    fn extrapolated(grid: &Grid, reach_s: f64) -> Self {
        let step_s = reach_s / CELLS as f64;
        let limited: Vec<[f64; 2]> = (0..=CELLS).map(|i| grid.service.up_to(i as f64 * step_s)).collect();
        let half: Vec<[f64; 2]> = limited.iter().step_by(2).copied().collect();
        let (coarse, mut fine) = (Self::new(grid, 2.0 * step_s, &half), Self::new(grid, step_s, &limited));
        let gain = coarse.spread_s2 / fine.spread_s2 - 1.0;
        let pairs = coarse.waiting.iter().zip(fine.waiting.iter().step_by(2));
        let errors: Vec<f64> = pairs.map(|(coarse, fine)| (fine - coarse) / gain).collect();
        for (i, waiting) in fine.waiting.iter_mut().enumerate() {
            *waiting += f64::midpoint(errors[i / 2], errors[i.div_ceil(2)]);
        }
        fine
    }

    /// From both limited moments at the points.
    fn new(grid: &Grid, step_s: f64, limited: &[[f64; 2]]) -> Self {
        let (rho, service, cells) = (grid.rho, &grid.service, limited.len() - 1);
        let mean_s = service.mean_s;
        let limited_s: Vec<f64> = limited.iter().map(|moments| moments[0]).collect();
        let residual = |limited_s: f64| limited_s / mean_s;
        // Mass and mass times mean place of the residual law in each cell, place 0 to 1: its density is P(S > t)/E[S],
        // the integral of t·P(S > t) half the limited square.
        let (mut mass, mut far) = (vec![0.0; cells + 1], vec![0.0; cells + 1]);
        for j in 1..=cells {
            let ([low_s, low], [high_s, high]) = (limited[j - 1], limited[j]);
            mass[j] = residual(high_s - low_s).max(0.0);
            let before = (j - 1) as f64;
            far[j] = ((high - low) / (2.0 * mean_s * step_s) - before * mass[j]).clamp(0.0, mass[j]);
        }
        // Weights of w at the distance of j points: the far part of cell j and the near part of cell j + 1. They are
        // kept from the back, so that the sum below runs forwards through both arrays.
        let weight = |j: usize| if j < cells { far[j] + mass[j + 1] - far[j + 1] } else { far[j] };
        let backwards: Vec<f64> = (0..=cells).rev().map(weight).collect();
        let mut waiting = Vec::with_capacity(cells + 1);
        waiting.push(rho);
        for i in 1..=cells {
            let before = dot(&backwards[cells - i + 1..cells], &waiting[1..i]);
            let beyond = 1.0 - residual(limited_s[i]);
            waiting.push(rho * (beyond + before + far[i] * rho) / (1.0 - rho * (mass[1] - far[1])));
        }
        // A smooth mass spreads by a sixth of the step's square; the first cells may hold whole services, and the very first
        // is evaluated on every scale from theirs upwards.
        let spread = |low_s: f64, from_s: f64, to_s: f64| {
            integral(from_s, to_s, |t_s| {
                (t_s - low_s) * (low_s + step_s - t_s) * service.law.survival(t_s) / mean_s
            })
        };
        let scales = std::iter::successors(Some(mean_s.min(step_s) / 4.0), |&to_s| {
            (to_s < step_s).then(|| step_s.min(2.0 * to_s))
        });
        let ends: Vec<f64> = std::iter::once(0.0).chain(scales).collect();
        let first: f64 = ends.windows(2).map(|ends| spread(0.0, ends[0], ends[1])).sum();
        let few: f64 =
            (1..4).map(|j| f64::from(j) * step_s).map(|low_s| spread(low_s, low_s, low_s + step_s)).sum();
        let rest: f64 = mass[5..].iter().sum();
        let spread_s2 = first + few + rest * step_s * step_s / 6.0;
        Self { step_s, waiting, limited_s, spread_s2 }
    }

    /// P(R > t) at point i: the service exceeds t minus the wait. Within a cell W is taken as uniform, and the service's
    /// survival function is averaged exactly.
    fn response(&self, grid: &Grid, i: usize) -> f64 {
        let within: f64 = (0..i)
            .map(|j| {
                let outlasts = (self.limited_s[i - j] - self.limited_s[i - j - 1]) / self.step_s;
                (self.waiting[j] - self.waiting[j + 1]) * outlasts
            })
            .sum();
        let at_once = (1.0 - grid.rho) * grid.service.law.survival(i as f64 * self.step_s);
        at_once + within + self.waiting[i]
    }
}

/// The inner product, in four strands that the processor runs in parallel.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut strands = [0.0; 4];
    let (quads_a, quads_b) = (a.chunks_exact(4), b.chunks_exact(4));
    let rest: f64 = quads_a.remainder().iter().zip(quads_b.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in quads_a.zip(quads_b) {
        for (strand, (x, y)) in strands.iter_mut().zip(x.iter().zip(y)) {
            *strand += x * y;
        }
    }
    strands.iter().sum::<f64>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Panjer's recursion with every residual time rounded down, or up, to the grid bounds P(W > t) rigorously.
    fn bound(rho: f64, law: &Law, t_s: f64, cells: usize, up: usize) -> f64 {
        let step_s = t_s / cells as f64;
        let residual = |i: usize| law.limited_mean_s(i as f64 * step_s) / law.mean_s();
        let mut mass = vec![0.0; cells + 2];
        for j in 0..=cells {
            mass[j + up] += residual(j + 1) - residual(j);
        }
        let mut w = vec![0.0; cells + 1];
        let mut sum = 0.0;
        for i in 0..=cells {
            let hit: f64 = (1..=i).map(|j| mass[j] * w[i - j]).sum();
            w[i] = (f64::from(i == 0) * (1.0 - rho) + rho * hit) / (1.0 - rho * mass[0]);
            sum += w[i];
        }
        1.0 - sum
    }

    #[test]
    fn the_tail_lies_between_rigorous_bounds() {
        let laws = [
            Law::Uniform { low_s: 0.0, high_s: 2.0 },
            Law::LogNormal { mean_s: 1.0, scv: 3.0 },
            Law::Pareto { shape: 2.5, mean_s: 1.0 },
            Law::empirical(vec![0.1, 0.5, 0.5, 2.0, 3.0]).unwrap(),
        ];
        for law in laws {
            for rho in [0.5, 0.9] {
                let grid = Grid::new(rho, law.clone());
                for t in [0.7, 4.0] {
                    let (low, high) = (bound(rho, &law, t, 2000, 0), bound(rho, &law, t, 2000, 1));
                    let found = grid.waiting(t);
                    assert!(low <= found && found <= high, "{} {rho} {t}: {low} {found} {high}", law.name());
                }
            }
        }
    }

    /// In heavy traffic W is exponential with mean (1 + c²)·E\[S\]/(2(1−ρ)) (Kingman 1962).
    #[test]
    fn it_lives_next_to_saturation() {
        let (quantiles, _) = Grid::new(1.0 - 1e-9, Law::Uniform { low_s: 0.0, high_s: 2.0 })
            .quantiles(&kendall_station::QUANTILES);
        let p90 = quantiles.iter().find(|quantile| quantile.p == 0.9).unwrap().value_s.value;
        let exact = (4.0 / 3.0) / 2e-9 * 10f64.ln();
        assert!((p90 / exact - 1.0).abs() < 2e-3, "{p90} {exact}");
    }
}
