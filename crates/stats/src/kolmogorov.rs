//! Kolmogorov's distance between a sample and a law, and between two samples.

use super::Tested;

/// The largest sample with the exact law; beyond, the error of the limit is below 3·10⁻⁵.
const EXACT_UP_TO: u64 = 600;
/// From n·d² = 4 on the two one-sided distances exclude each other except with probability 10⁻¹⁴, so the tail is their
/// sum.
const TAIL_FROM: f64 = 4.0;
/// The largest sample whose tail is summed term by term.
const SUMMED_UP_TO: u64 = 100_000;
/// The largest product of two sample sizes with the exact law.
const PATHS_UP_TO: usize = 250_000;

/// P(Dₙ ≥ d): the probability that Kolmogorov's distance of n values of a continuous law to that law is at least
/// `distance`.
///
/// Exact by the matrix of Marsaglia, Tsang and Wang (2003) for n ≤ 600; by Smirnov's one-sided sum (1944) in the tail,
/// as Simard and L'Ecuyer (2011) recommend; otherwise by Kolmogorov's limit (1933) with Vrbik's correction (2018).
pub fn kolmogorov_survival(n: u64, distance: f64) -> f64 {
    let size = n as f64;
    if n == 0 || distance * size <= 0.5 {
        return 1.0;
    }
    if distance >= 1.0 {
        return 0.0;
    }
    let p = if size * distance * distance >= TAIL_FROM && n <= SUMMED_UP_TO {
        2.0 * one_sided(size, distance)
    } else if n <= EXACT_UP_TO {
        1.0 - by_matrix(n, distance)
    } else {
        let scaled = size.sqrt() * distance;
        limit(scaled + 1.0 / (6.0 * size.sqrt()) + (scaled - 1.0) / (4.0 * size))
    };
    p.clamp(0.0, 1.0)
}

/// Kolmogorov's limit, P(√n·Dₙ ≥ x), by the faster of its two series.
fn limit(x: f64) -> f64 {
    if x < 1.0 {
        // 1 − √(2π)/x Σ exp(−(2k − 1)²π²/8x²)
        let unit = std::f64::consts::PI.powi(2) / (8.0 * x * x);
        let below: f64 = (1..=8).map(|k| libm::exp(-f64::from(2 * k - 1).powi(2) * unit)).sum();
        return 1.0 - (2.0 * std::f64::consts::PI).sqrt() / x * below;
    }
    let term = |k: i32| libm::exp(-2.0 * f64::from(k * k) * x * x);
    2.0 * (1..=8).map(|k| if k % 2 == 1 { term(k) } else { -term(k) }).sum::<f64>()
}

/// P(Dₙ⁺ ≥ d) = d Σ C(n, j) (d + j/n)^(j−1) (1 − d − j/n)^(n−j), all terms positive.
fn one_sided(n: f64, d: f64) -> f64 {
    let ways = |j: f64| libm::lgamma(n + 1.0) - libm::lgamma(j + 1.0) - libm::lgamma(n - j + 1.0);
    let term = |j: u64| {
        let j = j as f64;
        let (reached, rest) = (d + j / n, 1.0 - d - j / n);
        if rest <= 0.0 {
            return 0.0;
        }
        libm::exp(ways(j) + (j - 1.0) * libm::log(reached) + (n - j) * libm::log(rest))
    };
    d * (0..=(n * (1.0 - d)).floor() as u64).map(term).sum::<f64>()
}

/// P(Dₙ < d) by the n-th power of a matrix (Marsaglia, Tsang and Wang 2003, section 2).
fn by_matrix(n: u64, d: f64) -> f64 {
    let scaled = n as f64 * d;
    let k = scaled.floor() as usize + 1;
    let h = k as f64 - scaled;
    let size = 2 * k - 1;
    let mut start = vec![0.0; size * size];
    for row in 0..size {
        for column in 0..=(row + 1).min(size - 1) {
            start[row * size + column] = 1.0;
        }
    }
    for i in 0..size {
        start[i * size] -= h.powi(i as i32 + 1);
        start[(size - 1) * size + i] -= h.powi((size - i) as i32);
    }
    if 2.0 * h > 1.0 {
        start[(size - 1) * size] += (2.0 * h - 1.0).powi(size as i32);
    }
    for row in 0..size {
        for column in 0..=(row + 1).min(size - 1) {
            // Divided by (row − column + 1)!.
            for factor in 1..=(row + 1 - column) {
                start[row * size + column] /= factor as f64;
            }
        }
    }
    let (power, mut exponent) = matrix_power(&start, size, n);
    let mut chance = power[(k - 1) * size + k - 1];
    for i in 1..=n {
        chance *= i as f64 / n as f64;
        if chance < 1e-140 {
            chance *= 1e140;
            exponent -= 140;
        }
    }
    chance * 10f64.powi(exponent)
}

/// The n-th power of a square matrix, as a matrix and a power of ten.
fn matrix_power(start: &[f64], size: usize, n: u64) -> (Vec<f64>, i32) {
    if n == 1 {
        return (start.to_vec(), 0);
    }
    let (half, exponent) = matrix_power(start, size, n / 2);
    let square = product(&half, &half, size);
    let (mut power, mut exponent) = if n.is_multiple_of(2) {
        (square, 2 * exponent)
    } else {
        (product(start, &square, size), 2 * exponent)
    };
    if power[(size / 2) * size + size / 2] > 1e140 {
        power.iter_mut().for_each(|value| *value *= 1e-140);
        exponent += 140;
    }
    (power, exponent)
}

fn product(a: &[f64], b: &[f64], size: usize) -> Vec<f64> {
    let mut out = vec![0.0; size * size];
    for (row, into) in a.chunks_exact(size).zip(out.chunks_exact_mut(size)) {
        for (value, other) in row.iter().zip(b.chunks_exact(size)) {
            into.iter_mut().zip(other).for_each(|(sum, x)| *sum += value * x);
        }
    }
    out
}

/// Kolmogorov's distance of values between 0 and 1, in any order, to the uniform law there. `None` without values, or if
/// one is outside.
pub fn uniform_distance(values: &[f64]) -> Option<Tested> {
    if values.is_empty() || !values.iter().all(|value| (0.0..=1.0).contains(value)) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let distance = distance_to_uniform(&sorted);
    Some(Tested { statistic: distance, p_value: kolmogorov_survival(values.len() as u64, distance) })
}

/// The distance of values in ascending order, without the p-value.
pub(super) fn distance_to_uniform(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let off = |(i, &u): (usize, &f64)| ((i + 1) as f64 / n - u).max(u - i as f64 / n);
    sorted.iter().enumerate().map(off).fold(0.0, f64::max)
}

/// The two-sample test of Kolmogorov and Smirnov: the largest distance between the two empirical distribution functions.
/// Its p-value is exact, by counting lattice paths (Hodges 1957), if the product of the sizes is up to 250,000 and the
/// law is continuous; otherwise by Kolmogorov's limit at n·m/(n + m) with the correction of Stephens (1970). With ties
/// it errs on the large side. `None` if a sample is empty or has a value that is not a number.
pub fn two_samples(first: &[f64], second: &[f64]) -> Option<Tested> {
    if first.is_empty() || second.is_empty() || first.iter().chain(second).any(|x| x.is_nan()) {
        return None;
    }
    let sorted = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        sorted
    };
    let (a, b) = (sorted(first), sorted(second));
    let (mut i, mut j, mut largest) = (0, 0, 0u64);
    let (n, m) = (a.len() as u64, b.len() as u64);
    while i < a.len() && j < b.len() {
        let at = a[i].min(b[j]);
        i += a[i..].iter().take_while(|&&x| x <= at).count();
        j += b[j..].iter().take_while(|&&x| x <= at).count();
        // The difference of i/n and j/m, in units of 1/nm so that ties of the distance are exact.
        largest = largest.max((i as u64 * m).abs_diff(j as u64 * n));
    }
    let distance = largest as f64 / (n as f64 * m as f64);
    let p_value = if a.len().saturating_mul(b.len()) <= PATHS_UP_TO {
        paths_reaching(n, m, largest)
    } else {
        let size = (n as f64 / (n + m) as f64 * m as f64).sqrt();
        limit((size + 0.12 + 0.11 / size) * distance).clamp(0.0, 1.0)
    };
    Some(Tested { statistic: distance, p_value })
}

/// The share of the lattice paths from (0, 0) to (n, m) that come `reach`/nm or more from the diagonal.
fn paths_reaching(n: u64, m: u64, reach: u64) -> f64 {
    // share[j]: the share of all paths to (i, j) that have reached it. A path's last step comes from the left with
    // probability i/(i + j).
    let outside = |i: u64, j: u64| (i * m).abs_diff(j * n) >= reach;
    let mut share = vec![0.0; m as usize + 1];
    for i in 0..=n {
        for j in 0..=m {
            let at = j as usize;
            share[at] = match (i, j) {
                _ if outside(i, j) => 1.0,
                (0, 0) => 0.0,
                (0, _) => share[at - 1],
                (_, 0) => share[at],
                _ => (i as f64 * share[at] + j as f64 * share[at - 1]) / (i + j) as f64,
            };
        }
    }
    share[m as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples_have_the_law_of_their_closed_form() {
        // n = 1: P(D < d) = 2d − 1. n = 2: 1 − 2(1 − d)² for d ≥ 1/2, and 8(d − 1/4)² for d < 1/2.
        for step in 1..50 {
            let d = 0.5 + f64::from(step) / 100.0;
            assert!((kolmogorov_survival(1, d) - (2.0 - 2.0 * d)).abs() < 1e-13, "{d}");
            assert!((kolmogorov_survival(2, d) - 2.0 * (1.0 - d).powi(2)).abs() < 1e-13, "{d}");
            let d = 0.25 + f64::from(step) / 200.0;
            assert!((kolmogorov_survival(2, d) - (1.0 - 8.0 * (d - 0.25).powi(2))).abs() < 1e-13, "{d}");
        }
        // In exact fractions, by the determinant of Steck (1971); the first is also Marsaglia, Tsang and Wang's example.
        assert!((1.0 - kolmogorov_survival(10, 0.274) - 0.628_479_615_456_504_3).abs() < 1e-13);
        assert!((1.0 - kolmogorov_survival(20, 0.25) - 0.862_374_301_632_823_8).abs() < 1e-13);
    }

    #[test]
    fn the_three_methods_agree_at_their_limits() {
        for n in [100u64, 300, 600] {
            let d = (TAIL_FROM / n as f64).sqrt();
            let (tail, exact) = (2.0 * one_sided(n as f64, d), 1.0 - by_matrix(n, d));
            assert!((tail / exact - 1.0).abs() < 1e-9, "n = {n}: {tail} and {exact}");
        }
        for scaled in [0.4, 0.7, 1.0, 1.4, 1.9] {
            let n = EXACT_UP_TO;
            let exact = kolmogorov_survival(n, scaled / (n as f64).sqrt());
            let beyond = kolmogorov_survival(n + 1, scaled / ((n + 1) as f64).sqrt());
            assert!((exact - beyond).abs() < 3e-5, "{scaled}: {exact} and {beyond}");
        }
        assert!((limit(0.999_999_999) - limit(1.0)).abs() < 1e-8);
    }

    #[test]
    fn probabilities_are_valid_for_any_size_and_distance() {
        for n in [1u64, 2, 7, 99, 601, 5_000, 100_001, 1_000_000_000] {
            let mut last = 1.0;
            for step in 0..200 {
                let p = kolmogorov_survival(n, f64::from(step) / 190.0);
                assert!((0.0..=last + 1e-5).contains(&p), "n = {n}, step {step}: {p} after {last}");
                last = p;
            }
        }
    }

    #[test]
    fn two_samples_apart_and_two_alike() {
        // Of C(6, 3) = 20 orders, 2 keep the samples apart.
        let apart = two_samples(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0]).unwrap();
        assert!((apart.statistic - 1.0).abs() < 1e-15 && (apart.p_value - 0.1).abs() < 1e-15);
        let same = two_samples(&[1.0, 1.0, 2.0], &[1.0, 1.0, 2.0]).unwrap();
        assert!(same.statistic == 0.0 && same.p_value == 1.0);
        assert_eq!(two_samples(&[], &[1.0]), None);
        // The exact law and its limit, at the same distance.
        let (n, m) = (400u64, 600u64);
        let reach = 20_000; // d = 1/12
        let size = (n as f64 * m as f64 / (n + m) as f64).sqrt();
        let by_limit = limit((size + 0.12 + 0.11 / size) / 12.0);
        assert!((paths_reaching(n, m, reach) - by_limit).abs() < 3e-3);
    }
}
