//! GI/M/m: gaps of any law, exponential service. A request that waits has an exponential wait (Kendall 1953; Takács 1962, chapter
//! 2); the share that waits follows from the requests found by arrivals, as a sum of positive terms.

use kendall_station::Law;

use super::delay::Delay;
use super::quadrature::{nodes, places};
use super::solution::Solution;
use super::tails::Tails;

/// Beyond this number of operations an approximation answers.
const MOST_WORK: usize = 4_000_000;

/// Means, variances and tails of GI/M/m under FIFO. `None` if there are too many servers, or samples of gaps, to be exact within
/// some milliseconds.
pub(super) fn solve(gap: &Law, service_s: f64, servers: u32) -> Option<Solution> {
    let gaps = Gaps::of(gap, service_s);
    if servers > 1 && gaps.nodes.len() * (servers as usize).pow(2) > MOST_WORK {
        return None;
    }
    let slack = gaps.slack(servers);
    let p_wait = gaps.p_wait(slack, servers);
    let delay = Delay { p_wait, service_s, spare: f64::from(servers) * slack };
    let variance = delay.variance_s2();
    Some(Solution {
        source: match servers {
            1 => "GI/M/1 (Kendall 1953; Kleinrock 1975, section 6.4)",
            _ => "GI/M/m (Kendall 1953; Takács 1962, chapter 2)",
        },
        approximate: None,
        p_wait,
        waiting_s: delay.mean_s(),
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + service_s * service_s),
        service_s,
        throughput_per_s: 1.0 / gap.mean_s(),
        lost: 0.0,
        tails: Tails::of(delay),
    })
}

/// The law of the gaps in units of the mean service time.
struct Gaps {
    mean: f64,
    nodes: Vec<(f64, f64)>,
}

impl Gaps {
    fn of(gap: &Law, service_s: f64) -> Self {
        let scaled = |(x, weight): (f64, f64)| (x / service_s, weight);
        Self { mean: gap.mean_s() / service_s, nodes: nodes(gap).into_iter().map(scaled).collect() }
    }

    fn expect(&self, of: impl Fn(f64) -> f64) -> f64 {
        self.nodes.iter().map(|&(x, weight)| weight * of(x)).sum()
    }

    /// x = 1 − σ, where σ is the root of σ = E\[e^(−m(1−σ)A)\] below 1: E\[e^(−mxA) − 1 + mxA\] = x·(mE\[A\] − 1). The
    /// left side is convex, so Newton's method from x = 1 falls to the root.
    fn slack(&self, servers: u32) -> f64 {
        let m = f64::from(servers);
        let spare = m * self.mean - 1.0;
        let mut x = 1.0;
        for _ in 0..200 {
            let value = self.expect(|gap| short_of_exponential(m * x * gap)) - spare * x;
            let slope = self.expect(|gap| -m * gap * libm::expm1(-m * x * gap)) - spare;
            let step = value / slope;
            // The limit of rounding.
            if step.is_nan() || slope <= 0.0 || step <= 1e-15 * x {
                break;
            }
            x -= step;
        }
        x.clamp(f64::MIN_POSITIVE, 1.0)
    }

    /// The share of arrivals that find all servers busy. With π_i the share that find i requests: across each cut
    /// between j and j + 1, π_j·P(no departure in a gap) = Σ_(i>j) π_i·P(down to j or fewer in a gap). From m − 1 on
    /// the π are geometric with ratio σ.
    fn p_wait(&self, slack: f64, servers: u32) -> f64 {
        let sigma = 1.0 - slack;
        if servers == 1 {
            return sigma;
        }
        let m = servers as usize;
        let (fewer, queued) = self.descents(slack, m);
        // All shares relative to those of m − 1 and more.
        let mut shares = vec![0.0; m];
        let mut sum = 1.0;
        for j in (0..m - 1).rev() {
            let down: f64 = (j + 1..m - 1).map(|i| shares[i] * fewer[i + 1][j]).sum();
            let stay = self.expect(|gap| libm::exp(-(j as f64 + 1.0) * gap));
            shares[j] = (queued[j] + down) / stay;
            sum += shares[j];
            if sum.is_nan() || sum > 1e250 {
                return 0.0;
            }
        }
        sigma / sum
    }

    /// P(at most j of n requests in service are still there after a gap), and the same from the geometric queue: with probability 1 − σ
    /// no request waits, otherwise until an exponential time of rate θ = m(1−σ) has passed.
    fn descents(&self, slack: f64, m: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut fewer = vec![vec![0.0; m]; m];
        let mut queued = vec![0.0; m];
        let drain = m as f64 * slack;
        for &(gap, weight) in &self.nodes {
            let mut still = vec![1.0];
            for (n, fewer) in fewer.iter_mut().enumerate().skip(1) {
                serve_one_more(&mut still, gap);
                add_cumulative(&mut fewer[..n], weight, &still);
            }
            serve_one_more(&mut still, gap);
            add_cumulative(&mut queued, weight * slack, &still);
            // The queue was empty after u; the remainder, if that is long before the end, is e^(−40).
            let (first, last) = ((gap - 60.0).max(0.0), gap.min(40.0 / drain));
            if first >= last {
                queued.iter_mut().for_each(|sum| *sum += weight * (1.0 - slack));
                continue;
            }
            let width = (4.0 / drain).min(16.0 / m as f64).min(0.5);
            let panels = ((last - first) / width).ceil() as u32;
            let width = (last - first) / f64::from(panels);
            for panel in 0..panels {
                let from = first + f64::from(panel) * width;
                for (u, share) in places(from, from + width) {
                    let density = drain * libm::exp(-drain * u);
                    add_cumulative(&mut queued, weight * (1.0 - slack) * share * density, &left(m, gap - u));
                }
            }
            let at_once = weight * (1.0 - slack) * -libm::expm1(-drain * first);
            queued.iter_mut().for_each(|sum| *sum += at_once);
        }
        (fewer, queued)
    }
}

/// From the law of how many of n requests are still in service after a time, that of n + 1.
fn serve_one_more(still: &mut Vec<f64>, time: f64) {
    let (stays, leaves) = (libm::exp(-time), -libm::expm1(-time));
    still.push(0.0);
    for k in (1..still.len()).rev() {
        still[k] = stays * still[k - 1] + leaves * still[k];
    }
    still[0] *= leaves;
}

/// The law of how many of m requests are still in service after a time, from its largest term outwards.
fn left(m: usize, time: f64) -> Vec<f64> {
    let (stays, leaves) = (libm::exp(-time), -libm::expm1(-time));
    let mode = (((m + 1) as f64 * stays) as usize).min(m);
    let mut law = vec![0.0; m + 1];
    law[mode] = 1.0;
    for k in (0..mode).rev() {
        law[k] = law[k + 1] * (k + 1) as f64 / (m - k) as f64 * leaves / stays;
    }
    for k in mode + 1..=m {
        law[k] = law[k - 1] * (m - k + 1) as f64 / k as f64 * stays / leaves;
    }
    let sum: f64 = law.iter().sum();
    law.iter_mut().for_each(|p| *p /= sum);
    law
}

fn add_cumulative(to: &mut [f64], weight: f64, law: &[f64]) {
    let mut at_most = 0.0;
    for (to, p) in to.iter_mut().zip(law) {
        at_most += p;
        *to += weight * at_most;
    }
}

/// e^(−y) − 1 + y for y ≥ 0, also where y is small.
fn short_of_exponential(y: f64) -> f64 {
    if y > 0.5 {
        return libm::expm1(-y) + y;
    }
    let (mut term, mut sum, mut k) = (y * y / 2.0, 0.0, 2.0);
    while term.abs() > 1e-18 * y * y {
        sum += term;
        k += 1.0;
        term *= -y / k;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formula::many;

    #[test]
    fn poisson_arrivals_are_m_m_m() {
        for (servers, rho) in [(1u32, 0.3), (1, 0.999_999), (2, 0.05), (3, 0.7), (20, 0.9), (60, 0.99)] {
            let rate = rho * f64::from(servers);
            let found = solve(&Law::exponential_rate(rate), 1.0, servers).unwrap();
            let exact = many::solve(rate, 1.0, servers);
            let (a, b) = (found.p_wait, exact.p_wait);
            assert!((a / b - 1.0).abs() < 1e-9, "{servers} {rho}: {a} {b}");
            assert!((found.waiting_s / exact.waiting_s - 1.0).abs() < 1e-8, "{servers} {rho}");
        }
    }

    /// Of two exponential phases of gaps, σ is the root of a cubic equation that has 1 as another root.
    #[test]
    fn erlang_gaps_have_the_root_in_closed_form() {
        let found = solve(&Law::Erlang { shape: 2, mean_s: 1.0 }, 0.8, 1).unwrap();
        // With u = 1 − σ and c = 2·0.8: (1 − u)(1 + u/c)² = 1, and u divided out: u² + (2c − 1)u + c² − 2c = 0.
        let c = 1.6f64;
        let sigma = 1.0 - (1.0 - 2.0 * c + (1.0 + 4.0 * c).sqrt()) / 2.0;
        assert!((found.p_wait - sigma).abs() < 1e-12, "{} {sigma}", found.p_wait);
    }

    /// Next to saturation the wait is exponential with mean (1 + c²)/(2m(1 − ρ)) services (Kingman 1962).
    #[test]
    fn it_lives_next_to_saturation() {
        for servers in [1u32, 4] {
            let gap = Law::Constant { mean_s: (1.0 + 1e-8) / f64::from(servers) };
            let found = solve(&gap, 1.0, servers).unwrap();
            let exact = 0.5e8 / f64::from(servers);
            assert!((found.waiting_s / exact - 1.0).abs() < 1e-6, "{}", found.waiting_s);
        }
    }
}
