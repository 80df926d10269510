//! Response times of M/M/1 with processor sharing, by an integral over the spectrum of the queue.
//!
//! Its means and those of other laws of service are insensitive: see [`super::solution`].

use std::f64::consts::PI;

use kendall_station::{Estimate, Quantile};

use super::quadrature::places;
use super::tails::{Distributions, inverted};

/// Panels of the integral for each unit of the stretched angle.
const PANELS: f64 = 2.0;

/// M/M/1 with processor sharing.
///
/// The response time is distributed as the wait of the requests that wait in M/M/1 with service in random order (Borst, Boxma, Morrison
/// and Núñez-Queija 2003, "The equivalence between processor sharing and service in random order", Operations Research Letters 31), which
/// Pollaczek (1946) and Flatto (1997, "The waiting time distribution for the random order service M/M/1 queue", Annals of Applied
/// Probability 7) gave:
///
/// P(R > t) = 2(1 − ρ) ∫₀^π e^((2φ + θ) cot θ) / (1 + e^(π cot θ)) · sin θ / c(θ)² · e^(−c(θ) μ t) dθ,
/// where c(θ) = 1 + ρ − 2 √ρ cos θ and φ = arctan(√ρ sin θ / (1 − √ρ cos θ)).
pub(super) struct SharedServer {
    rho: f64,
    /// Rates per second and their weights, which add up to 1: the law is a mixture of exponential ones.
    parts: Vec<(f64, f64)>,
}

impl SharedServer {
    /// At this utilisation, below 1, with this mean service time.
    pub(super) fn new(rho: f64, service_s: f64) -> Self {
        let root = rho.sqrt();
        // Near the angle 0 the integrand changes within this.
        let scale = (1.0 - root).max(1e-12);
        let end = libm::asinh(PI / scale);
        let panels = (PANELS * end).ceil() as u32;
        let width = end / f64::from(panels);
        let bounds = (0..panels).map(|panel| (f64::from(panel) * width, f64::from(panel + 1) * width));
        let mut parts = Vec::new();
        for (place, weight) in bounds.flat_map(|(low, high)| places(low, high)) {
            let angle = (scale * libm::sinh(place)).min(PI);
            let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
            // 1 + ρ − 2 √ρ cos θ without the difference of two numbers that are nearly alike.
            let half = libm::sin(angle / 2.0);
            let rate = (1.0 - root) * (1.0 - root) + 4.0 * root * half * half;
            let phi = libm::atan2(root * sine, 1.0 - root * cosine);
            let cotangent = cosine / sine;
            let (rise, fall) = ((2.0 * phi + angle) * cotangent, PI * cotangent);
            let ratio = if fall > 0.0 {
                libm::exp(rise - fall) / (1.0 + libm::exp(-fall))
            } else {
                libm::exp(rise) / (1.0 + libm::exp(fall))
            };
            let density = 2.0 * (1.0 - rho) * ratio * sine / (rate * rate);
            let weight = weight * scale * libm::cosh(place) * density;
            if weight.is_finite() && weight > 0.0 {
                parts.push((rate / service_s, weight));
            }
        }
        let sum: f64 = parts.iter().map(|part| part.1).sum();
        parts.iter_mut().for_each(|part| part.1 /= sum);
        Self { rho, parts }
    }
}

impl Distributions for SharedServer {
    /// No request waits. The slowdown by other requests is not counted as waiting.
    fn waiting(&self, _t_s: f64) -> f64 {
        0.0
    }

    fn knows_waiting(&self) -> bool {
        false
    }

    fn response(&self, t_s: f64) -> f64 {
        self.parts.iter().map(|(rate, weight)| weight * libm::exp(-rate * t_s)).sum()
    }

    fn quantiles(&self, shares: &[f64]) -> (Vec<Quantile>, Vec<Quantile>) {
        let values = inverted(shares, |t_s| self.response(t_s));
        let quantile = |(&p, value_s)| Quantile { p, value_s: Estimate::exact(value_s) };
        (shares.iter().zip(values).map(quantile).collect(), Vec::new())
    }

    fn number_at_least(&self, n: u64) -> Option<f64> {
        Some(libm::pow(self.rho, n as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The moments that Coffman, Muntz and Trotter (1970) derived by another method.
    #[test]
    fn mean_and_variance_are_the_known_ones() {
        for rho in [1e-3, 0.1, 0.5, 0.7, 0.9, 0.99, 0.9999] {
            let shared = SharedServer::new(rho, 2.0);
            let moment = |power: i32| -> f64 {
                shared.parts.iter().map(|(rate, weight)| weight / rate.powi(power)).sum()
            };
            let (mean, variance) = (moment(1), 2.0 * moment(2) - moment(1).powi(2));
            assert!((mean * (1.0 - rho) / 2.0 - 1.0).abs() < 1e-9, "{rho}: {mean}");
            let known = 4.0 * (2.0 + rho) / ((1.0 - rho).powi(2) * (2.0 - rho));
            assert!((variance / known - 1.0).abs() < 1e-8, "{rho}: {variance} {known}");
        }
    }

    /// Without other requests, the response time is the service time.
    #[test]
    fn a_server_that_is_hardly_loaded_takes_the_service_time() {
        let shared = SharedServer::new(1e-9, 1.0);
        let (quantiles, waiting) = shared.quantiles(&[0.5, 0.99]);
        assert!((quantiles[0].value_s.value - std::f64::consts::LN_2).abs() < 1e-6, "{quantiles:?}");
        assert!((quantiles[1].value_s.value - 100.0_f64.ln()).abs() < 1e-6 && waiting.is_empty());
    }
}
