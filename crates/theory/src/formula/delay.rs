//! A wait that is zero with some probability, and otherwise exponential: exact for M/M/m and GI/M/m, and the usual approximation if
//! only its mean is known.

use kendall_station::Law;

use super::quadrature::integral;
use super::tails::Distributions;

/// Such a wait, before exponential service.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    pub(super) p_wait: f64,
    pub(super) service_s: f64,
    /// The mean service time over the mean wait of waiting requests: m − a for M/M/m.
    pub(super) spare: f64,
}

impl Delay {
    pub(super) fn mean_s(&self) -> f64 {
        if self.p_wait == 0.0 { 0.0 } else { self.p_wait * self.service_s / self.spare }
    }

    /// C(2 − C)/θ².
    pub(super) fn variance_s2(&self) -> f64 {
        if self.p_wait == 0.0 {
            return 0.0;
        }
        self.p_wait * (2.0 - self.p_wait) * (self.service_s / self.spare).powi(2)
    }

    /// The quantile of the waiting time, in closed form.
    pub(super) fn waiting_quantile(&self, p: f64) -> f64 {
        if self.p_wait <= 1.0 - p {
            return 0.0;
        }
        libm::log(self.p_wait / (1.0 - p)) * self.service_s / self.spare
    }

    /// P(R > t) if the following service has another law of the same mean: (1 − C)·P(S > t) + C·(e^(−θt) + ∫ θ e^(−θu) P(S > t − u)
    /// du).
    fn response_with(&self, service: &Law, t_s: f64) -> f64 {
        let at_once = (1.0 - self.p_wait) * service.survival(t_s);
        if self.p_wait == 0.0 {
            return at_once;
        }
        let rate_per_s = self.spare / self.service_s;
        // Panels of the shorter of the two scales; the wait is over after forty times its own scale.
        let end_s = t_s.min(40.0 / rate_per_s);
        let panels = (end_s * rate_per_s / 2.0).max(4.0 * (end_s / self.service_s).min(16.0)).ceil().max(1.0);
        let width_s = end_s / panels;
        let after_wait: f64 = (0..panels as u32)
            .map(|panel| {
                let from_s = f64::from(panel) * width_s;
                integral(from_s, from_s + width_s, |u| {
                    rate_per_s * libm::exp(-rate_per_s * u) * service.survival(t_s - u)
                })
            })
            .sum();
        at_once + self.p_wait * (libm::exp(-rate_per_s * t_s) + after_wait)
    }
}

impl Distributions for Delay {
    /// P(W > t) = C·e^(−θt).
    fn waiting(&self, t_s: f64) -> f64 {
        if self.p_wait == 0.0 { 0.0 } else { self.p_wait * libm::exp(-self.spare / self.service_s * t_s) }
    }

    /// P(R > t) = e^(−µt) + C·(e^(−µt) − e^(−θt))/(θ/µ − 1), written so that nothing cancels or overflows where θ is
    /// near µ or on either side of it.
    fn response(&self, t_s: f64) -> f64 {
        let x = t_s / self.service_s;
        let gap = self.spare - 1.0;
        let y = x * gap.abs();
        let shape = if y > 0.0 { -libm::expm1(-y) / y } else { 1.0 };
        libm::exp(-x) + self.p_wait * libm::exp(-x * self.spare.min(1.0)) * x * shape
    }

    fn waiting_quantiles(&self, shares: &[f64]) -> Vec<f64> {
        shares.iter().map(|&p| self.waiting_quantile(p)).collect()
    }
}

/// A wait fitted to its mean, and then service of any law.
pub(super) struct Fitted {
    pub(super) delay: Delay,
    pub(super) service: Law,
}

impl Distributions for Fitted {
    fn waiting(&self, t_s: f64) -> f64 {
        self.delay.waiting(t_s)
    }

    fn response(&self, t_s: f64) -> f64 {
        self.delay.response_with(&self.service, t_s)
    }

    fn waiting_quantiles(&self, shares: &[f64]) -> Vec<f64> {
        self.delay.waiting_quantiles(shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponential_service_is_the_closed_form() {
        let law = Law::Exponential { mean_s: 2.0 };
        for (p_wait, spare) in [(0.0, 1.0), (0.3, 0.2), (0.9, 1.0), (0.5, 7.0)] {
            let delay = Delay { p_wait, service_s: 2.0, spare };
            for t in [0.0, 0.5, 3.0, 40.0] {
                let (one, other) = (delay.response(t), delay.response_with(&law, t));
                assert!((one - other).abs() < 1e-10, "{p_wait} {spare} {t}: {one} {other}");
            }
        }
    }
}
