//! M/D/m. Erlang's sum of 1909 and Crommelin's of 1932 alternate and lose all digits where they matter. Here the queue
//! length is a compound Poisson sum by Spitzer's identity, and the tail of the waiting time follows from it as Franx
//! found (Operations Research Letters 29, 2001): all terms are positive.

use super::grid::dot;
use super::poisson::{Sides, ln_chance, short_of_log, stirling};
use super::quadrature::places;
use super::solution::Solution;
use super::tails::{Distributions, Tails};

/// Walks of fewer services than this are added up one by one, longer ones integrated.
const ONE_BY_ONE: u32 = 48;
/// Lengths of the queue that are followed at most before its tail is taken as geometric.
const MOST_LENGTHS: usize = 20_000;
/// The number of complex roots used, and the points of interpolation if these roots are not enough.
const ROOTS: u32 = 120;
const POINTS: usize = 20;

/// The waiting and response times of M/D/m, in order of arrival.
pub(super) struct Constant {
    /// λ·D.
    load: f64,
    servers: f64,
    service_s: f64,
    /// `more[n]` = P(more than n requests wait).
    more: Vec<f64>,
    /// The logarithm of the factor by which it falls from its last entry on.
    ln_ratio: f64,
    p_wait: f64,
    /// The mean of the number waiting, and by how much its variance exceeds that.
    queue: f64,
    dispersion: f64,
}

/// The queue at multiples of the service time is the maximum of a random walk with Poisson(a) − m as its steps. Its
/// generating function is exp(−Σ ν_j (1 − z^j)) with ν_j = Σ_k P(Poisson(ka) = km + j)/k (Spitzer 1956), and for
/// large j, j·ν_j = τ^(−j), with τ > 1 a root of z^m = e^(a(z−1)).
struct Walk {
    load: f64,
    servers: f64,
    /// τ − 1.
    excess: f64,
}

impl Walk {
    fn new(load: f64, servers: f64) -> Self {
        // m·ln(1 + u) = a·u, that is (m − a)·u = m·(u − ln(1 + u)), by Newton's method from above, where it is convex.
        let spare = servers - load;
        let value = |excess: f64| servers * short_of_log(excess) - spare * excess;
        let mut excess = 2.0 * spare / load;
        while value(excess) <= 0.0 {
            excess *= 2.0;
        }
        for _ in 0..100 {
            let step = value(excess) / (servers * excess / (1.0 + excess) - spare);
            // The limit of rounding.
            if step.is_nan() || step <= 1e-15 * excess {
                break;
            }
            excess -= step;
        }
        Self { load, servers, excess }
    }

    /// Σ f(k) over all walks of k services, of several functions at once, which fall geometrically from about 1/(m·u²)
    /// on, u = τ − 1.
    fn sum<const N: usize>(&self, of: impl Fn(f64) -> [f64; N]) -> [f64; N] {
        let negligible = |part: &[f64; N], sum: &[f64; N]| part.iter().zip(sum).all(|(p, s)| *p <= 1e-17 * s);
        let mut sum = [0.0; N];
        let mut recent = Vec::new();
        for k in 1..ONE_BY_ONE {
            let part = of(f64::from(k));
            add(&mut sum, 1.0, &part);
            if negligible(&part, &sum) && sum[0] > 0.0 {
                return sum;
            }
            recent.push(part);
        }
        // The rest by Euler's and Maclaurin's formula; the derivatives from differences, which suffices so far out.
        let k = f64::from(ONE_BY_ONE);
        let (a, b) = (recent[recent.len() - 2], recent[recent.len() - 1]);
        for (part, weight) in [
            (a, -1.0 / 144.0 - 1.0 / 1440.0),
            (b, 8.0 / 144.0 + 2.0 / 1440.0),
            (of(k), 0.5),
            (of(k + 1.0), -8.0 / 144.0 - 2.0 / 1440.0),
            (of(k + 2.0), 1.0 / 144.0 + 1.0 / 1440.0),
        ] {
            add(&mut sum, weight, &part);
        }
        // In the logarithm of k, where a power remains until the geometric fall begins.
        let fall = 1.0 / (self.servers * self.excess * self.excess);
        let mut from = libm::log(k);
        loop {
            let to = from + if libm::exp(from) < 1e-4 * fall { 4.0 } else { 1.0 };
            let mut part = [0.0; N];
            for (v, weight) in places(from, to) {
                let k = libm::exp(v);
                add(&mut part, weight * k, &of(k));
            }
            add(&mut sum, 1.0, &part);
            from = to;
            // A zero function has a zero sum.
            if libm::exp(from) > fall && negligible(&part, &sum) {
                return sum;
            }
        }
    }

    /// j·ν_j as its sum over walks.
    fn jump(&self, j: f64) -> f64 {
        let [sum] = self.sum(|k| [libm::exp(ln_chance(k * self.servers + j, k * self.load)) / k]);
        j * sum
    }

    /// j·ν_j for j = 0 (where it is nothing) up to `most` at least. It is the sum of z^(−j) over all roots z outside the unit
    /// circle of z^m = e^(a(z−1)): the residues of −ln(1 − e^(a(z−1))/z^m), whose coefficients ν_j are. Where that takes
    /// too many roots, it is interpolated between its sums over walks.
    fn jumps(&self, roots: &[(f64, f64)], most: usize) -> Vec<f64> {
        let ln_tau = libm::log1p(self.excess);
        let furthest = roots[roots.len() - 1].0 - ln_tau;
        let first = ((39.0 / furthest).ceil() as usize).max(2);
        let mut jumps = vec![0.0];
        if first <= POINTS {
            jumps.extend((1..first).map(|j| self.jump(j as f64)));
        } else {
            jumps.extend(interpolated(1.0, (first - 1) as f64, |j| self.jump(j)));
        }
        // The powers of the roots, step by step, as far as they are relevant.
        let mut powers: Vec<_> = roots.iter().map(|&root| polar(root, -(first as f64))).collect();
        let steps: Vec<_> = roots.iter().map(|&root| polar(root, -1.0)).collect();
        for j in first..=most {
            let real = libm::exp(-ln_tau * j as f64);
            let mut sum = 0.0;
            let mut matter = 0;
            for (power, step) in powers.iter_mut().zip(&steps) {
                let (x, y) = *power;
                if x.abs() + y.abs() < 1e-18 * real {
                    break;
                }
                sum += x;
                *power = (x * step.0 - y * step.1, x * step.1 + y * step.0);
                matter += 1;
            }
            powers.truncate(matter);
            jumps.push((real + 2.0 * sum).max(0.0));
        }
        jumps
    }

    /// The logarithm w of the k-th complex root outside the unit circle, by Newton's method for
    /// a·(e^w − 1) − m·w + 2πik = 0.
    fn ln_root(&self, k: f64) -> (f64, f64) {
        let (a, m, turn) = (self.load, self.servers, 2.0 * std::f64::consts::PI * k);
        // Next to one by the square of w, far from one by the logarithm of what m·w leaves.
        let near = (2.0 * turn / a).sqrt() * std::f64::consts::FRAC_1_SQRT_2;
        let mut w = if near < 1.0 {
            (near + libm::log1p(self.excess) / 2.0, -near)
        } else {
            (libm::log((turn + m) / a), -std::f64::consts::FRAC_PI_2)
        };
        for _ in 0..50 {
            let scale = libm::exp(w.0);
            let (re, im) = (scale * libm::cos(w.1), scale * libm::sin(w.1));
            let value = (a * (re - 1.0) - m * w.0, a * im - m * w.1 + turn);
            let slope = (a * re - m, a * im);
            let size = slope.0 * slope.0 + slope.1 * slope.1;
            let step = (
                (value.0 * slope.0 + value.1 * slope.1) / size,
                (value.1 * slope.0 - value.0 * slope.1) / size,
            );
            w = (w.0 - step.0, w.1 - step.1);
            if step.0.abs() + step.1.abs() < 1e-14 * (w.0.abs() + w.1.abs()) {
                break;
            }
        }
        w
    }

    /// Of a walk of k services, over k: P(S ≥ 0), P(S > 0), E\[S⁺\] and E\[S⁺(S⁺ − 1)\], with S + n Poisson of mean y,
    /// n = km and y = ka. As functions of y they are integrals of the chance of n − 1, or of n: P(N ≥ n) = ∫ p_(n−1)(t) dt
    /// for t up to y, and the moments the same with (y − t) and its square.
    fn excesses(&self, k: f64) -> [f64; 4] {
        let (n, y, short) = (k * self.servers, k * self.load, k * (self.servers - self.load));
        // The difference of t = y − s from n, so that no digits are lost where y is close to n.
        let start = short_of_log(-short / n);
        let height = libm::exp(-n * start - stirling(n)) / (2.0 * std::f64::consts::PI * n).sqrt() / k;
        let depth = |s: f64| n * (start - short_of_log(-(short + s) / n));
        // Panels of four standard deviations, or of four times the length in which a far tail falls.
        let width = 4.0 * n.sqrt().min(n / short);
        let (mut sums, mut from) = ([0.0; 4], 0.0);
        while from < y {
            let to = (from + width).min(y);
            for (s, weight) in places(from, to) {
                let chance = weight * libm::exp(depth(s));
                let fewer = chance * n / (y - s);
                add(&mut sums, 1.0, &[fewer, chance, fewer * s, fewer * s * s]);
            }
            from = to;
            if to < y && depth(to) < -45.0 {
                break;
            }
        }
        sums.map(|sum| sum * height)
    }
    /// P(more than n wait) from n = 0 until it falls geometrically, from the chance that none waits: the lengths by
    /// Panjer's recursion, 1981.
    fn lengths(&self, p_none: f64) -> Vec<f64> {
        let ratio = 1.0 / (1.0 + self.excess);
        let roots: Vec<(f64, f64)> = (1..=ROOTS).map(|k| self.ln_root(f64::from(k))).collect();
        // The number up to which the first complex root causes deviations from geometric, with a margin.
        let mut most = (30.0 / (roots[0].0 - libm::log1p(self.excess))) as usize + 16;
        let mut backwards: Vec<f64> = Vec::new();
        let (mut chances, mut steady) = (vec![p_none], 0);
        while steady < 4 && chances.len() < MOST_LENGTHS {
            let n = chances.len();
            if n > backwards.len() {
                backwards = self.jumps(&roots, most).iter().skip(1).rev().copied().collect();
                most *= 2;
            }
            let next = dot(&backwards[backwards.len() - n..], &chances) / n as f64;
            let there = (next - ratio * chances[n - 1]).abs() <= 1e-11 * next || next < 1e-40;
            steady = if there { steady + 1 } else { 0 };
            chances.push(next);
        }
        // P(Q > n) from the tail inwards.
        let end = chances.len() - 1;
        let mut more = vec![chances[end] / self.excess; end + 1];
        for n in (0..end).rev() {
            more[n] = more[n + 1] + chances[n + 1];
        }
        more
    }
}

fn add<const N: usize>(to: &mut [f64; N], weight: f64, part: &[f64; N]) {
    to.iter_mut().zip(part).for_each(|(to, part)| *to += weight * part);
}

/// z^j by the logarithm of z, as real and imaginary part.
fn polar((ln_size, angle): (f64, f64), j: f64) -> (f64, f64) {
    let size = libm::exp(ln_size * j);
    (size * libm::cos(angle * j), size * libm::sin(angle * j))
}

/// A smooth function at the whole numbers from `low` to `high`, by the polynomial through Chebyshev's points.
fn interpolated(low: f64, high: f64, of: impl Fn(f64) -> f64) -> Vec<f64> {
    let last = (POINTS - 1) as f64;
    let point = |i: usize| {
        let x =
            f64::midpoint(low, high) - (high - low) / 2.0 * libm::cos(std::f64::consts::PI * i as f64 / last);
        let sign = if i.is_multiple_of(2) { 1.0 } else { -1.0 };
        (x, sign * if i == 0 || i == POINTS - 1 { 0.5 } else { 1.0 }, of(x))
    };
    let points: Vec<_> = (0..POINTS).map(point).collect();
    let at = |x: f64| {
        let (mut above, mut below) = (0.0, 0.0);
        for &(place, weight, value) in &points {
            if x == place {
                return value;
            }
            let share = weight / (x - place);
            above += share * value;
            below += share;
        }
        above / below
    };
    (low as usize..=high as usize).map(|j| at(j as f64)).collect()
}

impl Constant {
    /// `load` = λ·D is below the number of servers.
    pub(super) fn new(load: f64, service_s: f64, servers: u32) -> Self {
        let servers = f64::from(servers);
        if load == 0.0 {
            let (more, ln_ratio) = (vec![0.0], f64::NEG_INFINITY);
            return Self {
                load,
                servers,
                service_s,
                more,
                ln_ratio,
                p_wait: 0.0,
                queue: 0.0,
                dispersion: 0.0,
            };
        }
        let walk = Walk::new(load, servers);
        let [busy, some, queue, dispersion] = walk.sum(|k| walk.excesses(k));
        let more = walk.lengths(libm::exp(-some));
        let ln_ratio = -libm::log1p(walk.excess);
        Self { load, servers, service_s, more, ln_ratio, p_wait: -libm::expm1(-busy), queue, dispersion }
    }
}

impl Distributions for Constant {
    /// P(W > t). With t between the (k−1)-th and k-th multiple of the service time: j arrivals in what is missing to
    /// the k-th, and more than km − 1 − j requests waiting.
    fn waiting(&self, t_s: f64) -> f64 {
        if self.load == 0.0 {
            return 0.0;
        }
        let multiples = t_s / self.service_s;
        let k = multiples.floor() + 1.0;
        let mean = self.load * (k - multiples);
        let (last, most) = (self.more.len() - 1, k * self.servers - 1.0);
        let more = |waiting: f64| match waiting - last as f64 {
            past if past > 0.0 => self.more[last] * libm::exp(self.ln_ratio * past),
            _ => self.more[waiting as usize],
        };
        // More arrivals than `most` make it certain. Fewer are added up from the likely ones, in both directions.
        let mut sum = libm::exp(Sides::of(most, mean).ln_more);
        let start = mean.floor().min(most);
        let likely = libm::exp(ln_chance(start, mean));
        let (mut arrivals, mut chance) = (start, likely);
        while arrivals <= most {
            let part = chance * more(most - arrivals);
            sum += part;
            arrivals += 1.0;
            chance *= mean / arrivals;
            if part <= 1e-18 * sum {
                break;
            }
        }
        (arrivals, chance) = (start - 1.0, likely * start / mean);
        while arrivals >= 0.0 && chance > 1e-18 * sum {
            sum += chance * more(most - arrivals);
            chance *= arrivals / mean;
            arrivals -= 1.0;
        }
        sum
    }

    /// P(R > t) = P(W > t − D).
    fn response(&self, t_s: f64) -> f64 {
        if t_s < self.service_s { 1.0 } else { self.waiting(t_s - self.service_s) }
    }

    fn response_quantiles(&self, _shares: &[f64], waiting_s: &[f64]) -> Vec<f64> {
        waiting_s.iter().map(|t_s| t_s + self.service_s).collect()
    }
}

/// The mean wait of M/D/m alone.
pub(super) fn mean_s(rate_per_s: f64, service_s: f64, servers: u32) -> f64 {
    let load = rate_per_s * service_s;
    if load == 0.0 {
        0.0
    } else {
        let walk = Walk::new(load, f64::from(servers));
        let [mean] = walk.sum(|k| [walk.excesses(k)[2]]);
        mean / rate_per_s
    }
}

/// Means, variances and tails of M/D/m. The number left waiting by a request that enters service is the number that arrived
/// during its wait, so Var Q − E\[Q\] = λ²·Var W (Haji and Newell 1971); Var Q = Σ j²·ν_j.
pub(super) fn solve(rate_per_s: f64, service_s: f64, servers: u32) -> Solution {
    let constant = Constant::new(rate_per_s * service_s, service_s, servers);
    let waiting_s = constant.queue / rate_per_s;
    let variance = constant.dispersion / (rate_per_s * rate_per_s);
    Solution {
        source: match servers {
            1 => "M/D/1 (Erlang 1909; tail by Franx 2001)",
            _ => "M/D/m (Crommelin 1932, by Spitzer's identity; tail by Franx 2001)",
        },
        approximate: None,
        p_wait: constant.p_wait,
        waiting_s,
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance),
        service_s,
        throughput_per_s: rate_per_s,
        lost: 0.0,
        tails: Tails::of(constant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::quadrature::integral;

    /// Erlang's own sum, where it still has accurate digits: P(W ≤ t) = (1−ρ) Σ (ρ(i−t))^i/i! · e^(−ρ(i−t)), i ≤ t.
    #[test]
    fn one_server_agrees_with_erlangs_sum() {
        for rho in [0.3f64, 0.7, 0.9] {
            let constant = Constant::new(rho, 1.0, 1);
            for t in [0.0f64, 0.4, 1.0, 2.5, 6.3] {
                let mut factorial = 1.0;
                let mut sum = 0.0;
                for i in 0..=t.floor() as i32 {
                    factorial *= f64::from(i.max(1));
                    let x = rho * (f64::from(i) - t);
                    sum += x.powi(i) / factorial * (-x).exp();
                }
                let erlang = 1.0 - (1.0 - rho) * sum;
                assert!((constant.waiting(t) - erlang).abs() < 1e-11, "{rho} {t}");
            }
        }
    }

    /// Pollaczek and Khinchine's mean and Takács's variance, however near to saturation.
    #[test]
    fn one_server_has_the_moments_of_m_g_1() {
        for slack in [0.9, 0.5, 0.1, 1e-3, 1e-6, 1e-9] {
            let rho = 1.0 - slack;
            let solution = solve(rho, 1.0, 1);
            let mean = rho / (2.0 * slack);
            let variance = mean * mean + rho / (3.0 * slack);
            // A rate of 1 − 10⁻⁹ is itself known to 10⁻⁷ of its slack.
            let error = 1e-10 + 1e-15 / slack;
            assert!((solution.waiting_s / mean - 1.0).abs() < error, "{rho} {}", solution.waiting_s / mean);
            let found = solution.waiting_variance_s2.unwrap();
            assert!((found / variance - 1.0).abs() < 3.0 * error, "{rho} {}", found / variance);
            assert!((solution.p_wait - rho).abs() < 1e-9, "{rho} {}", solution.p_wait);
        }
    }

    /// The mean is the integral of the tail, whose method is another.
    #[test]
    fn the_tail_has_the_mean() {
        for (servers, rho) in [(2u32, 0.5), (4, 0.9), (30, 0.95), (3, 0.99)] {
            let solution = solve(rho * f64::from(servers), 1.0, servers);
            let constant = Constant::new(rho * f64::from(servers), 1.0, servers);
            let steps = (20.0 * solution.waiting_s / solution.p_wait).ceil() as u32;
            let area: f64 =
                (0..steps).map(|k| integral(f64::from(k), f64::from(k + 1), |t| constant.waiting(t))).sum();
            assert!((area / solution.waiting_s - 1.0).abs() < 1e-6, "{servers} {rho}: {area}");
            assert!((constant.waiting(0.0) / solution.p_wait - 1.0).abs() < 1e-10);
        }
    }

    /// In heavy traffic W is exponential with mean ρD/(2m(1−ρ)) (Köllerström 1974).
    #[test]
    fn it_lives_next_to_saturation() {
        let slack = 1e-9;
        for servers in [1u32, 5, 1000] {
            let m = f64::from(servers);
            let constant = Constant::new((1.0 - slack) * m, 1.0, servers);
            let mean = 0.5 / slack / m;
            let found = constant.waiting(mean);
            assert!((found - (-1.0f64).exp()).abs() < 1e-4, "{servers}: {found}");
            assert!((constant.queue / (mean * m) - 1.0).abs() < 1e-5, "{servers}: {}", constant.queue);
        }
    }
}
