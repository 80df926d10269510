//! M/D/m. Erlang's sum of 1909 and Crommelin's of 1932 alternate and lose all digits where they matter. Here the queue
//! length is a compound Poisson sum by Spitzer's identity, and the tail of the waiting time follows from it as Franx
//! found (Operations Research Letters 29, 2001): all terms are positive.

use super::Solution;
use super::poisson::{Window, ln_chance, short_of_log};
use super::quadrature::integral;
use super::tails::Tails;

/// Walks of fewer services than this are added up one by one, longer ones integrated.
const ONE_BY_ONE: u32 = 48;
/// Lengths of the queue that are followed before its tail is taken as geometric.
const MOST_LENGTHS: usize = 20_000;

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
            // Where rounding decides.
            if step.is_nan() || step <= 1e-15 * excess {
                break;
            }
            excess -= step;
        }
        Self { load, servers, excess }
    }

    /// j·ν_j.
    fn jump(&self, j: f64) -> f64 {
        let chance = |k: f64| libm::exp(ln_chance(k * self.servers + j, k * self.load)) / k;
        let (mut sum, mut k) = (0.0, 1.0);
        // The terms rise to k = j/(m − a) at most, and fall from there.
        let peak = j / (self.servers - self.load);
        while k < f64::from(ONE_BY_ONE) {
            let term = chance(k);
            sum += term;
            k += 1.0;
            if k > peak && term <= 1e-18 * sum {
                return j * sum;
            }
        }
        // The rest by Euler's and Maclaurin's formula; the derivatives from differences, which suffices so far out.
        let (a, b, c, d) = (chance(k - 2.0), chance(k - 1.0), chance(k + 1.0), chance(k + 2.0));
        let first = (a - 8.0 * b + 8.0 * c - d) / 12.0;
        let third = (-a + 2.0 * b - 2.0 * c + d) / 2.0;
        sum += chance(k) / 2.0 - first / 12.0 + third / 720.0;
        let mut from = libm::log(k);
        loop {
            let to = from + 1.0;
            let part = integral(from, to, |v| {
                let k = libm::exp(v);
                k * chance(k)
            });
            sum += part;
            from = to;
            if libm::exp(from) > peak && part <= 1e-15 * sum {
                return j * sum;
            }
        }
    }
}

impl Walk {
    /// All j·ν_j until they fall geometrically; their sum, which is the mean of the queue; and Σ (j − 1)·j·ν_j, by which
    /// its variance exceeds that.
    fn jumps(&self) -> (Vec<f64>, f64, f64) {
        let ln_ratio = -libm::log1p(self.excess);
        let settled = |j: usize| libm::exp(ln_ratio * j as f64);
        let mut jumps = vec![0.0];
        let (mut mean, mut steady) = (0.0, 0);
        while steady < 4 && jumps.len() < MOST_LENGTHS {
            let j = jumps.len();
            let jump = self.jump(j as f64);
            mean += jump;
            jumps.push(jump);
            let rest = settled(j) / self.excess;
            let there = (jump - settled(j)).abs() <= 1e-12 * settled(j) || rest.max(jump) <= 1e-18 * mean;
            steady = if there || mean == 0.0 { steady + 1 } else { 0 };
        }
        let last = jumps.len() - 1;
        // Beyond, a geometric sum: Σ r^j, and Σ (j − 1) r^j.
        let rest = settled(last) / self.excess;
        let pairs: f64 = jumps.iter().enumerate().skip(1).map(|(j, jump)| (j as f64 - 1.0) * jump).sum();
        (jumps, mean + rest, pairs + rest * (last as f64 + 1.0 / self.excess))
    }
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
        let (jumps, queue, dispersion) = walk.jumps();
        let (more, p_wait) = Self::lengths(&walk, &jumps);
        let ln_ratio = -libm::log1p(walk.excess);
        Self { load, servers, service_s, more, ln_ratio, p_wait, queue, dispersion }
    }

    /// P(more than n wait), until it falls geometrically, and P(all servers are busy). The lengths by Panjer's
    /// recursion, 1981.
    fn lengths(walk: &Walk, jumps: &[f64]) -> (Vec<f64>, f64) {
        let ratio = 1.0 / (1.0 + walk.excess);
        let last = jumps.len() - 1;
        // Σ ν_j: what lies beyond is r^j/j.
        let mut sum = 0.0;
        for (j, jump) in jumps.iter().enumerate().skip(1).rev() {
            sum += jump / j as f64;
        }
        let beyond = -libm::log(walk.excess / (1.0 + walk.excess))
            - (1..=last).rev().map(|j| libm::pow(ratio, j as f64) / j as f64).sum::<f64>();
        let mut chances = vec![libm::exp(-(sum + beyond.max(0.0)))];
        let (mut jumps, mut steady) = (jumps.to_vec(), 0);
        while steady < 4 && chances.len() < MOST_LENGTHS {
            let n = chances.len();
            if n > last {
                jumps.push(libm::pow(ratio, n as f64));
            }
            let next =
                jumps[1..=n].iter().zip(chances.iter().rev()).map(|(j, q)| j * q).sum::<f64>() / n as f64;
            let there = (next - ratio * chances[n - 1]).abs() <= 1e-13 * next || next < 1e-40;
            steady = if there { steady + 1 } else { 0 };
            chances.push(next);
        }
        // P(Q > n) from the tail inwards.
        let end = chances.len() - 1;
        let mut more = vec![chances[end] / walk.excess; end + 1];
        for n in (0..end).rev() {
            more[n] = more[n + 1] + chances[n + 1];
        }
        // N = Q + A: all are busy when A ≥ m, or Q > m − 1 − A.
        let busy = Window::new(walk.load);
        let enough = |arrivals: f64| match walk.servers - 1.0 - arrivals {
            free if free < 0.0 => 1.0,
            free if free as usize <= end => more[free as usize],
            free => more[end] * libm::pow(ratio, free - end as f64),
        };
        let p_wait = (busy.first..).zip(&busy.terms).map(|(a, chance)| chance * enough(a as f64)).sum();
        (more, p_wait)
    }

    /// P(W > t). With t between the (k−1)-th and k-th multiple of the service time: j arrivals in what is missing to
    /// the k-th, and more than km − 1 − j requests waiting.
    pub(super) fn waiting(&self, t_s: f64) -> f64 {
        if self.load == 0.0 {
            return 0.0;
        }
        let multiples = t_s / self.service_s;
        let k = multiples.floor() + 1.0;
        let arrivals = Window::new(self.load * (k - multiples));
        let (last, most) = (self.more.len() - 1, k * self.servers - 1.0);
        let more = |n: f64| match n - last as f64 {
            _ if n < 0.0 => 1.0,
            past if past > 0.0 => self.more[last] * libm::exp(self.ln_ratio * past),
            _ => self.more[n as usize],
        };
        (arrivals.first..).zip(&arrivals.terms).map(|(j, chance)| chance * more(most - j as f64)).sum()
    }

    /// P(R > t) = P(W > t − D).
    pub(super) fn response(&self, t_s: f64) -> f64 {
        if t_s < self.service_s { 1.0 } else { self.waiting(t_s - self.service_s) }
    }

    /// The quantile of the response time from that of the waiting time.
    pub(super) fn response_quantile(&self, waiting_s: f64) -> f64 {
        waiting_s + self.service_s
    }
}

/// The mean wait of M/D/m alone.
pub(super) fn mean_s(rate_per_s: f64, service_s: f64, servers: u32) -> f64 {
    let load = rate_per_s * service_s;
    if load == 0.0 { 0.0 } else { Walk::new(load, f64::from(servers)).jumps().1 / rate_per_s }
}

/// Means, variances and tails of M/D/m. The number left waiting by who enters service is what arrived during its wait,
/// so Var Q − E\[Q\] = λ²·Var W (Haji and Newell 1971); Var Q = Σ j²·ν_j.
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
        tails: Tails::Constant(constant),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Erlang's own sum, where it still has digits: P(W ≤ t) = (1−ρ) Σ (ρ(i−t))^i/i! · e^(−ρ(i−t)), i ≤ t.
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
            let Tails::Constant(constant) = &solution.tails else { panic!("of constant service") };
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
            assert!((constant.waiting(mean) - (-1.0f64).exp()).abs() < 1e-4, "{servers}");
            assert!((constant.queue / (mean * m) - 1.0).abs() < 1e-5, "{servers}: {}", constant.queue);
        }
    }
}
