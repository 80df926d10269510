//! Poisson probabilities as positive terms that add up to one to the last digit, however large the mean.

/// The Poisson probabilities that matter: those of `first`, `first` + 1, and so on.
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

    /// One past the last value that matters.
    pub(super) fn end(&self) -> usize {
        self.first + self.terms.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
