//! Survival functions of waiting and response time, and the quantiles that follow from them.

use kendall_station::{Estimate, Law, QUANTILES, Quantile};

/// The distributions of waiting and response time of one model. Each model implements them next to its means.
pub(super) trait Distributions {
    /// P(W > t), for t ≥ 0.
    fn waiting(&self, t_s: f64) -> f64;

    /// Whether the law of the waiting time is known.
    fn knows_waiting(&self) -> bool {
        true
    }

    /// P(R > t), for t ≥ 0.
    fn response(&self, t_s: f64) -> f64;

    /// Quantiles of the waiting time at ascending shares.
    fn waiting_quantiles(&self, shares: &[f64]) -> Vec<f64> {
        inverted(shares, |t_s| self.waiting(t_s))
    }

    /// Quantiles of the response time at ascending shares, given those of the waiting time.
    fn response_quantiles(&self, shares: &[f64], _waiting_s: &[f64]) -> Vec<f64> {
        inverted(shares, |t_s| self.response(t_s))
    }

    /// Quantiles of the response and of the waiting time at ascending shares; fewer if the method ends before.
    fn quantiles(&self, shares: &[f64]) -> (Vec<Quantile>, Vec<Quantile>) {
        let quantile = |(&p, value_s)| Quantile { p, value_s: Estimate::exact(value_s) };
        let all = |values: Vec<f64>| shares.iter().zip(values).map(quantile).collect();
        let waiting_s = self.waiting_quantiles(shares);
        (all(self.response_quantiles(shares, &waiting_s)), all(waiting_s))
    }

    /// P(N ≥ n) at an arbitrary instant; `None` if the model does not provide it.
    fn number_at_least(&self, _n: u64) -> Option<f64> {
        None
    }
}

/// The distributions of waiting and response time: complete, or only the moments.
pub(super) struct Tails(Option<Box<dyn Distributions>>);

impl Tails {
    /// Only the moments.
    pub(super) const MEANS: Self = Self(None);

    /// The distributions of a model.
    pub(super) fn of(distributions: impl Distributions + 'static) -> Self {
        Self(Some(Box::new(distributions)))
    }

    /// The distributions; `None` where only moments are known.
    pub(super) fn known(&self) -> Option<&dyn Distributions> {
        self.0.as_deref()
    }

    /// P(W > t).
    pub(super) fn waiting(&self, t_s: f64) -> Option<f64> {
        let known = self.known().filter(|known| known.knows_waiting());
        survival(t_s, known.map(|known| known.waiting(t_s.max(0.0))))
    }

    /// P(R > t).
    pub(super) fn response(&self, t_s: f64) -> Option<f64> {
        survival(t_s, self.known().map(|known| known.response(t_s.max(0.0))))
    }

    /// All quantiles, of the response and of the waiting time; none where only moments are known.
    pub(super) fn quantiles(&self) -> (Vec<Quantile>, Vec<Quantile>) {
        self.quantiles_at(&QUANTILES)
    }

    /// Quantiles at ascending shares.
    pub(super) fn quantiles_at(&self, shares: &[f64]) -> (Vec<Quantile>, Vec<Quantile>) {
        self.known().map_or_else(Default::default, |known| known.quantiles(shares))
    }
}

/// Before 0, no time has ended, also if only moments are known.
fn survival(t_s: f64, known: Option<f64>) -> Option<f64> {
    if t_s < 0.0 { Some(1.0) } else { known }
}

/// No request waits: the response time is the service time.
pub(super) struct NoWait {
    pub(super) service: Law,
}

impl Distributions for NoWait {
    fn waiting(&self, _t_s: f64) -> f64 {
        0.0
    }

    fn response(&self, t_s: f64) -> f64 {
        self.service.survival(t_s)
    }

    fn response_quantiles(&self, shares: &[f64], _waiting_s: &[f64]) -> Vec<f64> {
        shares.iter().map(|&p| self.service.quantile_s(p)).collect()
    }
}

/// For ascending shares p, the smallest t with P(T > t) ≤ 1 − p, to one part in 10¹².
pub(super) fn inverted(shares: &[f64], survival: impl Fn(f64) -> f64) -> Vec<f64> {
    let (mut before_s, mut gap_s) = (0.0, 0.0);
    shares
        .iter()
        .map(|&p| {
            // The logarithm of a tail is nearly linear, which makes it easy to solve; a tail of zero is far enough
            // down.
            let above = |t_s: f64| libm::log(survival(t_s).max(1e-300) / (1.0 - p));
            let found_s = crossing(before_s, gap_s, above);
            (before_s, gap_s) = (found_s, (found_s - before_s) / 2.0);
            found_s
        })
        .collect()
}

/// Where a falling function crosses zero, beyond `low` and possibly near `step` beyond it; `low` if it is not above
/// zero there.
fn crossing(mut low: f64, mut step: f64, above: impl Fn(f64) -> f64) -> f64 {
    let mut at_low = above(low);
    if at_low <= 0.0 {
        return low;
    }
    // Any unit is suitable as a start; the bracket grows or shrinks to the scale of the law.
    step = if low > 0.0 { step.clamp(1e-6 * low, low) } else { 1.0 };
    let mut high = low + step;
    let mut at_high = above(high);
    while at_high > 0.0 {
        step *= 2.0;
        (low, at_low, high) = (high, at_high, high + step);
        at_high = above(high);
    }
    while low == 0.0 && high > f64::MIN_POSITIVE {
        let half = above(high / 2.0);
        if half > 0.0 {
            (low, at_low) = (high / 2.0, half);
        } else {
            (high, at_high) = (high / 2.0, half);
        }
    }
    narrowed((low, at_low), (high, at_high), above)
}

/// The right end of a bracket, narrowed by inverse quadratic interpolation if that is safe, and by bisection otherwise
/// (Chandrupatla 1997).
fn narrowed(left: (f64, f64), right: (f64, f64), above: impl Fn(f64) -> f64) -> f64 {
    let (mut newest, mut opposite, mut place) = (left, right, 0.5);
    loop {
        let x = newest.0 + place * (opposite.0 - newest.0);
        let found = (x, above(x));
        let dropped = if (found.1 > 0.0) == (newest.1 > 0.0) {
            newest
        } else {
            std::mem::replace(&mut opposite, newest)
        };
        newest = found;
        let width = (opposite.0 - newest.0).abs();
        let least = 2.5e-13 * newest.0.abs().max(opposite.0.abs()) / width;
        if found.1 == 0.0 {
            return found.0;
        }
        if least > 0.25 || width == 0.0 {
            return if newest.1 > 0.0 { opposite.0 } else { newest.0 };
        }
        let ((a, fa), (b, fb), (c, fc)) = (newest, opposite, dropped);
        let (xi, phi) = ((a - b) / (c - b), (fa - fb) / (fc - fb));
        let safe = phi * phi < xi && (1.0 - phi) * (1.0 - phi) < 1.0 - xi;
        place = match safe {
            true => fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb),
            false => 0.5,
        }
        .clamp(least, 1.0 - least);
    }
}
