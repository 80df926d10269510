//! M/G/1 with the shortest remaining service first, preemptive (Schrage and Miller 1966). With ρ(x) the load of the
//! requests of size x or less, their mean response time is, integrated by parts, E\[R\] = ∫ E\[min(S, x)²\] / (2x²(1 −
//! ρ(x))) dx, which is also right for laws with atoms: equal sizes keep their order.

use kendall_station::Law;

use super::quadrature::{integral, places};
use super::solution::Solution;
use super::tails::Tails;

/// Panels per doubling of the size.
const PANELS: i32 = 4;
/// Of more samples than this in a mixture with other laws, the steps are taken as smooth.
const MOST_STEPS: usize = 4000;

/// Mean of M/G/1 with the shortest remaining service first.
pub(super) fn solve(rate_per_s: f64, service: &Law) -> Solution {
    let service_s = service.mean_s();
    let waiting_s = (response_s(rate_per_s, service) - service_s).max(0.0);
    Solution {
        source: "M/G/1 with the shortest remaining service first (Schrage and Miller 1966)",
        approximate: None,
        p_wait: rate_per_s * service_s,
        waiting_s,
        waiting_variance_s2: None,
        response_variance_s2: None,
        service_s,
        throughput_per_s: rate_per_s,
        lost: 0.0,
        tails: Tails::MEANS,
    }
}

fn response_s(rate_per_s: f64, service: &Law) -> f64 {
    let mean_s = service.mean_s();
    if mean_s == 0.0 {
        return 0.0;
    }
    let slack = 1.0 - rate_per_s * mean_s;
    if let Some(steps) = steps(service) {
        return stepwise(&steps, rate_per_s, slack);
    }
    // The load of the larger ones is added to the slack, so that no number near 1 is subtracted from 1.
    let free = |x: f64| {
        let smaller = (service.limited_mean_s(x) - x * service.survival(x)).clamp(0.0, mean_s);
        slack + rate_per_s * (mean_s - smaller)
    };
    // 2x²·(integrand) = 2·∫ t·P(S > t) dt up to x.
    let within = |from: f64, to: f64| 2.0 * integral(from, to, |t| t * service.survival(t));
    let (mut sum, mut square, mut from) = (0.0, 0.0, 0.0);
    for to in edges(service) {
        for (x, weight) in places(from, to) {
            sum += weight * (square + within(from, x)) / (2.0 * x * x * free(x));
        }
        square += within(from, to);
        from = to;
    }
    // Beyond, all but nothing is smaller.
    sum + square / (2.0 * from * free(from))
}

/// The ends of panels: at equal ratios, and wherever the law has a step or a corner, up to where no size is larger or the
/// rest is negligible.
fn edges(service: &Law) -> Vec<f64> {
    let mean_s = service.mean_s();
    let mut edges = Vec::new();
    corners(service, &mut edges);
    let ratio = libm::exp2(1.0 / f64::from(PANELS));
    let mut x = mean_s * 1e-9;
    // Far enough that the load of larger sizes no longer matters, even for a law with a long tail.
    while service.survival(x) * x > 1e-13 * mean_s && edges.len() < 40_000 {
        edges.push(x);
        x *= ratio;
    }
    edges.push(x);
    edges.retain(|&edge| edge > 0.0);
    edges.sort_by(f64::total_cmp);
    edges.dedup();
    edges
}

fn corners(law: &Law, found: &mut Vec<f64>) {
    match law {
        Law::Constant { mean_s } => found.push(*mean_s),
        Law::Uniform { low_s, high_s } => found.extend([*low_s, *high_s]),
        Law::Pareto { shape, mean_s } => found.push(mean_s * (shape - 1.0) / shape),
        Law::Empirical { samples_s } if samples_s.len() <= MOST_STEPS => found.extend(samples_s.iter()),
        Law::Mixture { parts } => parts.iter().for_each(|part| corners(&part.of, found)),
        _ => {}
    }
}

/// The sizes and probabilities of a law that only has few sizes, or samples.
fn steps(law: &Law) -> Option<Vec<(f64, f64)>> {
    let mut steps = Vec::new();
    atoms(law, 1.0, &mut steps)?;
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(steps)
}

fn atoms(law: &Law, chance: f64, found: &mut Vec<(f64, f64)>) -> Option<()> {
    match law {
        Law::Constant { mean_s } => found.push((*mean_s, chance)),
        Law::Empirical { samples_s } => {
            found.extend(samples_s.iter().map(|&x| (x, chance / samples_s.len() as f64)));
        }
        Law::Mixture { parts } => {
            return parts.iter().try_for_each(|part| atoms(&part.of, chance * part.probability, found));
        }
        _ => return None,
    }
    Some(())
}

/// Between two sizes ρ(x) and P(S > x) are constant, and E\[min(S, x)²\] = A + x²·P(S > x).
fn stepwise(steps: &[(f64, f64)], rate_per_s: f64, slack: f64) -> f64 {
    // From each size on: P(S ≥ x), and the load of these.
    let mut rest = Vec::with_capacity(steps.len() + 1);
    rest.push((0.0, 0.0));
    for &(size, chance) in steps.iter().rev() {
        let (larger, load) = rest[rest.len() - 1];
        rest.push((larger + chance, load + rate_per_s * chance * size));
    }
    rest.pop();
    let (mut sum, mut smaller, mut from) = (0.0, 0.0, 0.0);
    for (i, &(size, chance)) in steps.iter().enumerate() {
        if size > from {
            let (larger, load) = if i == 0 { (1.0, 1.0 - slack) } else { rest[steps.len() - i] };
            let of_smaller = if from > 0.0 { smaller * (size - from) / (from * size) } else { 0.0 };
            sum += (of_smaller + larger * (size - from)) / (2.0 * (slack + load));
            from = size;
        }
        smaller += chance * size * size;
    }
    sum + smaller / (2.0 * from * slack)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of equal sizes the order is that of arrival.
    #[test]
    fn constant_service_is_m_d_1() {
        for rho in [0.1, 0.8, 1.0 - 1e-9] {
            let found = response_s(rho / 3.0, &Law::Constant { mean_s: 3.0 });
            let exact = 3.0 * (1.0 + rho / (2.0 * (1.0 - rho)));
            assert!((found / exact - 1.0).abs() < 1e-7, "{rho}: {found} {exact}");
        }
    }

    /// A law of many steps is nearly the smooth one.
    #[test]
    fn samples_are_nearly_their_law() {
        let law = Law::Uniform { low_s: 0.0, high_s: 2.0 };
        let samples = (0..2000).map(|i| (f64::from(i) + 0.5) / 1000.0).collect();
        let (a, b) = (response_s(0.8, &law), response_s(0.8, &Law::empirical(samples).unwrap()));
        assert!((a / b - 1.0).abs() < 1e-3, "{a} {b}");
    }

    /// Schrage and Miller's double integral as it stands in print, for exponential service.
    #[test]
    fn exponential_service_is_the_integral_in_print() {
        let rho = 0.8f64;
        let load = |x: f64| rho * (1.0 - (1.0 + x) * libm::exp(-x));
        let square = |x: f64| 2.0 * (1.0 - (1.0 + x) * libm::exp(-x));
        let panels = |to: f64, of: &dyn Fn(f64) -> f64| -> f64 {
            (0..40).map(|i| integral(to * f64::from(i) / 40.0, to * f64::from(i + 1) / 40.0, of)).sum()
        };
        let residence = panels(45.0, &|t| libm::exp(-t) / (1.0 - load(t)));
        let waiting = panels(45.0, &|x| libm::exp(-x) * rho * square(x) / (2.0 * (1.0 - load(x)).powi(2)));
        let found = response_s(rho, &Law::Exponential { mean_s: 1.0 });
        assert!((found / (residence + waiting) - 1.0).abs() < 1e-9, "{found} {}", residence + waiting);
    }
}
