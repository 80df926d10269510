//! M/G/1, exactly, from the moments of its waiting time.
//!
//! After a request that leaves work x behind it, the waiting times of all later ones together exceed their mean by
//! λx²/(2(1 − ρ)), up to a constant: the work falls at the rate 1 − ρ, and what bursts of arrivals add to that is linear in
//! x and cancels against the mean. So the covariances of a waiting time with all later ones add up to
//! λ·Cov(W, (W + S)²)/(2(1 − ρ)), and the moments of W are Takács's (1962). For M/M/1 this is Daley's formula (1968).

use kendall_station::{Arrivals, Knows, Law, Servers, Station};
use statrs::distribution::{ContinuousCDF as _, Normal};

use super::{Basis, Moments, Spread};

/// `None` if the station is not an M/G/1 whose order ignores sizes and never preempts: such orders change neither the number in the
/// station nor, so, the sum of all times.
pub(super) fn spread(station: &Station) -> Option<Spread> {
    let Arrivals::Open { gap: Law::Exponential { mean_s: gap_s } } = station.arrivals else { return None };
    let order = station.discipline;
    let blind = !order.preempts() && matches!(order.knows(), Knows::Nothing | Knows::Weight);
    let alike = station.classes.iter().all(|class| class.service.is_none());
    if !blind
        || !alike
        || !station.conditions.are_none()
        || station.servers != Servers::MIN
        || station.capacity.is_some()
    {
        return None;
    }
    let rate_per_s = 1.0 / gap_s;
    let service = [1, 2, 3, 4].map(|n| station.service.moment(n));
    let rho = rate_per_s * service[0];
    let per_idle = rate_per_s / (1.0 - rho);
    // Takács: E[W^k] = λ/(1 − ρ) · Σ C(k, i) E[S^(i+1)]/(i + 1) E[W^(k−i)].
    let w1 = per_idle * service[1] / 2.0;
    let w2 = per_idle * (service[1] * w1 + service[2] / 3.0);
    let w3 = per_idle * (1.5 * service[1] * w2 + service[2] * w1 + service[3] / 4.0);
    let [s1, s2, s3, _] = service;
    let (r1, r2) = (w1 + s1, w2 + 2.0 * w1 * s1 + s2);
    let r3 = w3 + 3.0 * (w2 * s1 + w1 * s2) + s3;
    let waiting_variance = w2 - w1 * w1;
    // Cov(W, (W + S)²) = Cov(W, W²) + 2 E[S] Var W; Cov(R, R²) likewise without the split.
    let with_later = w3 - w1 * w2 + 2.0 * s1 * waiting_variance;
    let deficit_s = Some(per_idle * w2 / 2.0);
    Some(Spread {
        basis: Basis::Exact,
        rate_per_s,
        utilisation: rho,
        response: Moments {
            mean_s: r1,
            asymptotic_variance_s2: r2 - r1 * r1 + per_idle * (r3 - r1 * r2),
            deficit_s,
        },
        waiting: Moments {
            mean_s: w1,
            asymptotic_variance_s2: waiting_variance + per_idle * with_later,
            deficit_s,
        },
    })
}

/// The asymptotic variance of the mean waiting time of M/M/1, in the square of the unit of 1/`service_rate`
/// (Daley 1968): ρ(2 + 5ρ − 4ρ² + ρ³)/(µ²(1 − ρ)⁴).
pub fn mm1_waiting_variance(utilisation: f64, service_rate: f64) -> f64 {
    let (rho, idle) = (utilisation, 1.0 - utilisation);
    rho * (2.0 + rho * (5.0 - rho * (4.0 - rho))) / ((service_rate * service_rate) * idle.powi(4))
}

/// The z of a two-sided interval of this confidence, strictly between 0 and 1: 1.96 for 0.95.
pub(crate) fn normal_quantile(confidence: f64) -> f64 {
    let normal = Normal::standard();
    // statrs inverts to about 1e-9; one step of Newton's method makes that exact to rounding.
    let p = f64::midpoint(1.0, confidence);
    let z = normal.inverse_cdf(p);
    let density = libm::exp(-z * z / 2.0) / (2.0 * std::f64::consts::PI).sqrt();
    z - (normal.cdf(z) - p) / density
}
