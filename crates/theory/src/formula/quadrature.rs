//! Integrals of smooth functions by Gauss and Legendre's rule, and expected values over a law of times by nodes.

use std::sync::LazyLock;

use kendall_station::Law;

/// Points of the rule: exact for polynomials to degree 31.
const POINTS: usize = 16;

/// Points between −1 and 1, and their weights.
static RULE: LazyLock<Vec<(f64, f64)>> = LazyLock::new(|| (0..POINTS).map(point).collect());

/// The i-th root of the Legendre polynomial by Newton's method, and its weight (Abramowitz and Stegun 1964, 25.4.29).
fn point(i: usize) -> (f64, f64) {
    let degree = POINTS as f64;
    let mut x = libm::cos(std::f64::consts::PI * (i as f64 + 0.75) / (degree + 0.5));
    let mut slope = 1.0;
    for _ in 0..8 {
        let (mut before, mut now) = (1.0, x);
        for k in 2..=POINTS {
            let k = k as f64;
            (before, now) = (now, ((2.0 * k - 1.0) * x * now - (k - 1.0) * before) / k);
        }
        slope = degree * (x * now - before) / (x * x - 1.0);
        x -= now / slope;
    }
    (x, 2.0 / ((1.0 - x * x) * slope * slope))
}

/// The integral of a smooth function from `low` to `high`.
pub(super) fn integral(low: f64, high: f64, mut of: impl FnMut(f64) -> f64) -> f64 {
    places(low, high).map(|(x, weight)| weight * of(x)).sum()
}

/// The points of evaluation between `low` and `high`, with their weights.
pub(super) fn places(low: f64, high: f64) -> impl Iterator<Item = (f64, f64)> {
    let (middle, half) = (f64::midpoint(low, high), (high - low) / 2.0);
    RULE.iter().map(move |(x, weight)| (middle + half * x, half * weight))
}

/// Times and weights with which a function that is smooth in the logarithm of time, and bounded by its argument, has
/// its expected value over a law: atoms as they are, densities to about 10⁻¹². The weights add up to 1.
pub(super) fn nodes(law: &Law) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    collect(law, 1.0, &mut found);
    let sum: f64 = found.iter().map(|node| node.1).sum();
    found.iter_mut().for_each(|node| node.1 /= sum);
    found
}

fn collect(law: &Law, chance: f64, found: &mut Vec<(f64, f64)>) {
    match law {
        Law::Constant { mean_s } => found.push((*mean_s, chance)),
        Law::Empirical { samples_s } => {
            let each = chance / samples_s.len() as f64;
            found.extend(samples_s.iter().map(|&x| (x, each)));
        }
        Law::Mixture { parts } => {
            parts.iter().for_each(|part| collect(&part.of, chance * part.probability, found));
        }
        Law::Hyperexponential { parts } => {
            for &(p, mean_s) in parts {
                gamma(1, mean_s, chance * p, found);
            }
        }
        Law::Exponential { mean_s } => gamma(1, *mean_s, chance, found),
        Law::Erlang { shape, mean_s } => gamma(*shape, *mean_s, chance, found),
        Law::Uniform { low_s, high_s } => {
            let step_s = (high_s - low_s) / 4.0;
            for panel in 0..4 {
                let from = low_s + f64::from(panel) * step_s;
                let scaled = |(x, weight): (f64, f64)| (x, chance * weight / (high_s - low_s));
                found.extend(places(from, from + step_s).map(scaled));
            }
        }
        Law::LogNormal { mean_s, scv } => {
            let sigma = libm::log1p(*scv).sqrt();
            let middle = libm::log(*mean_s) - sigma * sigma / 2.0;
            // To the right as far as the law weighted with its square reaches. The rule of equal steps converges
            // faster than any power here.
            let step = 0.125f64.min(0.5 / sigma);
            let (from, to) = ((-9.0 / step) as i32, ((9.0 + 2.0 * sigma) / step) as i32);
            found.extend((from..=to).map(|i| {
                let z = f64::from(i) * step;
                let density = libm::exp(-z * z / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
                (libm::exp(middle + sigma * z), chance * step * density)
            }));
        }
        Law::Pareto { shape, mean_s } => {
            let minimum_s = mean_s * (shape - 1.0) / shape;
            // The logarithm of the time is exponential; panels of its scale until its mean has nothing left to come.
            let width = 2.0 / shape;
            let panels = (40.0 / (width * (shape - 1.0))).ceil().min(2000.0) as u32;
            for panel in 0..panels {
                let from = f64::from(panel) * width;
                let place = |(v, weight): (f64, f64)| {
                    (minimum_s * libm::exp(v), chance * weight * shape * libm::exp(-shape * v))
                };
                found.extend(places(from, from + width).map(place));
            }
        }
    }
}

/// The gamma law of whole shape in the logarithm of time, where its density falls faster than exponentially to the
/// right and exponentially to the left.
fn gamma(shape: u32, mean_s: f64, chance: f64, found: &mut Vec<(f64, f64)>) {
    let k = f64::from(shape);
    let step = 0.2 / k.sqrt();
    // Relative to its mode at x = k: x^k e^(−x) = e^(−k(e^u − 1 − u)) with x = k e^u.
    let depth = |u: f64| k * (libm::expm1(u) - u);
    let add = |u: f64, found: &mut Vec<(f64, f64)>| found.push((mean_s * libm::exp(u), libm::exp(-depth(u))));
    let first = found.len();
    add(0.0, found);
    for direction in [-1.0, 1.0] {
        let mut u = direction * step;
        while depth(u) < 40.0 {
            add(u, found);
            u += direction * step;
        }
    }
    let sum: f64 = found[first..].iter().map(|node| node.1).sum();
    found[first..].iter_mut().for_each(|node| node.1 *= chance / sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_is_exact_for_polynomials() {
        let found = integral(1.0, 3.0, |x| x.powi(20));
        assert!((found / ((3f64.powi(21) - 1.0) / 21.0) - 1.0).abs() < 1e-14);
    }

    #[test]
    fn nodes_have_the_mean_and_the_survival_of_their_law() {
        let laws = [
            Law::Exponential { mean_s: 0.3 },
            Law::Erlang { shape: 7, mean_s: 2.0 },
            Law::Hyperexponential { parts: vec![(0.9, 0.5), (0.1, 5.5)] },
            Law::Uniform { low_s: 0.5, high_s: 2.0 },
            Law::LogNormal { mean_s: 1.0, scv: 9.0 },
            Law::Pareto { shape: 2.5, mean_s: 1.0 },
            Law::empirical(vec![0.1, 0.5, 0.5, 2.0]).unwrap(),
        ];
        for law in laws {
            let nodes = nodes(&law);
            let mean: f64 = nodes.iter().map(|(x, w)| x * w).sum();
            assert!((mean / law.mean_s() - 1.0).abs() < 1e-10, "{}: {mean}", law.name());
            // E[e^(−X)] by parts: 1 − ∫ e^(−t) P(X > t) dt.
            let by_nodes: f64 = nodes.iter().map(|(x, w)| w * libm::exp(-x)).sum();
            let by_parts: f64 = 1.0
                - (0..800)
                    .map(|i| f64::from(i) * 0.05)
                    .map(|t| integral(t, t + 0.05, |t| libm::exp(-t) * law.survival(t)))
                    .sum::<f64>();
            assert!((by_nodes - by_parts).abs() < 1e-9, "{}: {by_nodes} {by_parts}", law.name());
        }
    }
}
