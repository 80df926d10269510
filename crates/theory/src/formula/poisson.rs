//! Poisson probabilities as positive terms that add up to one to the last digit, however large the mean.

use super::quadrature::integral;

/// The relevant Poisson probabilities: those of `first`, `first` + 1, and so on.
pub(super) struct Window {
    pub(super) first: usize,
    pub(super) terms: Vec<f64>,
}

impl Window {
    /// All terms above 10⁻²² of the largest. They are built from the largest outwards and then normalised, so no
    /// logarithm of a factorial costs digits.
    pub(super) fn new(mean: f64) -> Self {
        const LEAST: f64 = 1e-22;
        let mode = mean.floor() as usize;
        let mut below = Vec::new();
        let (mut term, mut k) = (1.0, mode);
        while k > 0 && term > LEAST {
            term *= k as f64 / mean;
            k -= 1;
            below.push(term);
        }
        let first = mode - below.len();
        below.reverse();
        let mut terms = below;
        (term, k) = (1.0, mode);
        while term > LEAST {
            terms.push(term);
            k += 1;
            term *= mean / k as f64;
        }
        let total: f64 = terms.iter().sum();
        terms.iter_mut().for_each(|term| *term /= total);
        Self { first, terms }
    }

    /// The probability of exactly `k`.
    pub(super) fn at(&self, k: usize) -> f64 {
        k.checked_sub(self.first).and_then(|i| self.terms.get(i)).copied().unwrap_or(0.0)
    }

    /// One past the last relevant value.
    pub(super) fn end(&self) -> usize {
        self.first + self.terms.len()
    }
}

/// The logarithm of the Poisson probability of `n`, which need not be whole: by Stirling's series and the deviance, so
/// that nothing large cancels (Loader 2000).
pub(super) fn ln_chance(n: f64, mean: f64) -> f64 {
    if n < 0.5 {
        return n * libm::log(mean) - mean - libm::lgamma(n + 1.0);
    }
    let deviance = n * short_of_log((mean - n) / n);
    -deviance - 0.5 * libm::log(2.0 * std::f64::consts::PI * n) - stirling(n)
}

/// The two sides of a Poisson law, as logarithms, so that neither underflows however far out it lies.
pub(super) struct Sides {
    /// ln P(N ≤ n).
    pub(super) ln_at_most: f64,
    /// ln P(N > n).
    pub(super) ln_more: f64,
}

impl Sides {
    /// On both sides of `n`, which is whole. The smaller side is the area under the chance of exactly `n` as a function
    /// of the mean: P(N ≤ n) = ∫ from the mean on, P(N > n) = ∫ up to the mean (Abramowitz and Stegun 1964, 26.4.21).
    pub(super) fn of(n: f64, mean: f64) -> Self {
        if n < 0.0 {
            return Self { ln_at_most: f64::NEG_INFINITY, ln_more: 0.0 };
        }
        if mean <= 0.0 {
            return Self { ln_at_most: 0.0, ln_more: f64::NEG_INFINITY };
        }
        let ln_smaller = ln_chance(n, mean) + libm::log(smaller_side(n, mean));
        let ln_larger = libm::log1p(-libm::exp(ln_smaller).min(1.0));
        if mean > n {
            Self { ln_at_most: ln_smaller, ln_more: ln_larger }
        } else {
            Self { ln_at_most: ln_larger, ln_more: ln_smaller }
        }
    }
}

/// P(N ≤ n) if the mean is above `n`, otherwise P(N > n), divided by the probability of exactly `n`.
pub(super) fn smaller_side(n: f64, mean: f64) -> f64 {
    // Term by term if they are few, or fall fast.
    let few = n < 300.0 || n < 0.8 * mean || mean < 0.8 * n;
    let (mut sum, mut term) = (0.0, 1.0);
    if few && mean > n {
        let mut k = n;
        while term > 1e-18 * sum {
            sum += term;
            term *= k / mean;
            k -= 1.0;
        }
        return sum;
    }
    if few {
        let mut k = n + 1.0;
        term = mean / k;
        while term > 1e-18 * sum {
            sum += term;
            k += 1.0;
            term *= mean / k;
        }
        return sum;
    }
    // Panels of four standard deviations, or of four times the length in which the far tail falls.
    let width = 4.0 * n.sqrt().min(n.max(mean) / (n - mean).abs());
    let step = if mean > n { width } else { -width };
    let start = short_of_log((mean - n) / n);
    let depth = |t: f64| n * (start - short_of_log((t - n) / n));
    let mut from = mean;
    loop {
        let to = (from + step).max(0.0);
        sum += integral(from.min(to), from.max(to), |t| libm::exp(depth(t)));
        from = to;
        if to == 0.0 || depth(to) < -40.0 {
            return sum;
        }
    }
}

/// x − ln(1 + x) for x > −1, also where x is small.
pub(super) fn short_of_log(x: f64) -> f64 {
    if x.abs() > 0.1 {
        return x - libm::log1p(x);
    }
    // ln(1 + x) = 2·artanh(y) with y = x/(2 + x), and x − 2y = xy: an all but alternating sum.
    let y = x / (2.0 + x);
    let (square, mut power, mut sum, mut k) = (y * y, y * y * y, 0.0, 3.0);
    while power.abs() / k > 1e-18 * (x * y).abs() {
        sum += power / k;
        power *= square;
        k += 2.0;
    }
    x * y - 2.0 * sum
}

/// ln n! beyond (n + ½) ln n − n + ½ ln 2π.
pub(super) fn stirling(n: f64) -> f64 {
    if n < 15.0 {
        let half_ln_two_pi = 0.5 * libm::log(2.0 * std::f64::consts::PI);
        return libm::lgamma(n + 1.0) - ((n + 0.5) * libm::log(n) - n + half_ln_two_pi);
    }
    let square = n * n;
    (1.0 / 12.0 - (1.0 / 360.0 - (1.0 / 1260.0 - 1.0 / (1680.0 * square)) / square) / square) / n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_the_terms() {
        for mean in [0.3, 7.0, 300.0, 1e5] {
            let window = Window::new(mean);
            for (i, p) in window.terms.iter().enumerate().filter(|(_, p)| **p > 1e-15) {
                let found = ln_chance((window.first + i) as f64, mean);
                assert!((found - libm::log(*p)).abs() < 1e-10, "{mean} {i}: {found}");
            }
        }
    }

    #[test]
    fn the_sides_are_the_sums_of_the_terms() {
        for mean in [0.3, 7.0, 290.0, 310.0, 1e4, 1e6] {
            let window = Window::new(mean);
            for deviations in [-5.0f64, -1.0, -0.01, 0.01, 1.0, 5.0] {
                let n = (mean + deviations * mean.sqrt()).floor();
                if n < 0.0 {
                    continue;
                }
                let (below, above) = window.terms.split_at(n as usize + 1 - window.first);
                let (below, above): (f64, f64) = (below.iter().sum(), above.iter().rev().sum());
                let sides = Sides::of(n, mean);
                for (ln_found, exact) in [(sides.ln_at_most, below), (sides.ln_more, above)] {
                    let off = libm::exp(ln_found) / exact - 1.0;
                    assert!(off.abs() < 2e-11, "{mean} {n}: {off}");
                }
            }
        }
    }

    #[test]
    fn the_terms_are_poisson() {
        for mean in [0.0, 1e-9, 0.3, 7.0, 1e4, 1e8] {
            let window = Window::new(mean);
            let sum: f64 = window.terms.iter().sum();
            let first: f64 = window.terms.iter().zip(window.first..).map(|(p, k)| p * k as f64).sum();
            assert!(
                (sum - 1.0).abs() < 1e-12 && (first - mean).abs() <= 1e-9 * mean,
                "{mean}: {sum} {first}"
            );
        }
        assert!((Window::new(0.3).at(0) - (-0.3f64).exp()).abs() < 1e-15);
    }
}
