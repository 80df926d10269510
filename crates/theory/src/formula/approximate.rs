//! Approximations of the mean waiting time of GI/G/m from two moments of gaps and of service, each under its name, for
//! comparison. [`crate::formula`] uses the best of them where there is no exact answer.

use kendall_station::{Servers, Station};

use super::NoFormula;
use super::erlang::erlang_c;
use super::premises::open_rate;

/// The moments of an open station with unlimited capacity: rates, and squared coefficients of variation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoMoments {
    rate_per_s: f64,
    service_s: f64,
    servers: Servers,
    gap_scv: f64,
    service_scv: f64,
}

impl TwoMoments {
    /// A station by its moments: requests per second, mean service time in s, servers, and the squared coefficients of
    /// variation of the gaps between arrivals and of the service time.
    ///
    /// # Errors
    /// Fails where utilisation is 1 or more.
    pub fn new(
        rate_per_s: f64,
        service_s: f64,
        servers: Servers,
        gap_scv: f64,
        service_scv: f64,
    ) -> Result<Self, NoFormula> {
        super::premises::stable(rate_per_s, service_s, servers)?;
        Ok(Self { rate_per_s, service_s, servers, gap_scv, service_scv })
    }

    /// The moments of a station with open arrivals.
    ///
    /// # Errors
    /// Fails if the station is invalid or unstable, has no open stream, or infinite variance.
    pub fn of(station: &Station) -> Result<Self, NoFormula> {
        station.validate()?;
        let (gap, rate_per_s) = open_rate(&station.arrivals)?;
        let service = station.service_overall();
        let (gap_scv, service_scv) = (gap.scv(), service.scv());
        if service_scv.is_infinite() {
            return Err(NoFormula::InfiniteVariance { law: service.name() });
        }
        if gap_scv.is_infinite() {
            return Err(NoFormula::InfiniteVariance { law: gap.name() });
        }
        Self::new(rate_per_s, service.mean_s(), station.servers, gap_scv, service_scv)
    }

    fn load(&self) -> f64 {
        self.rate_per_s * self.service_s
    }

    fn m(&self) -> f64 {
        f64::from(self.servers.get())
    }

    fn rho(&self) -> f64 {
        self.load() / self.m()
    }

    /// P(wait) of M/M/m with the same load, which Whitt (1993, section 3) uses for M/G/m.
    pub fn erlang_c(&self) -> f64 {
        erlang_c(self.servers.get(), self.load())
    }

    /// Mean wait of M/M/m with the same load, in s: exact if both laws are exponential.
    pub fn exponential_s(&self) -> f64 {
        self.erlang_c() * self.service_s / (self.m() - self.load())
    }

    /// Mean wait of M/D/m with the same load, in s: exact if gaps are exponential and service constant.
    pub fn constant_s(&self) -> f64 {
        super::constant::mean_s(self.rate_per_s, self.service_s, self.servers.get())
    }

    /// (c_a² + c_s²)/2 times M/M/m (Allen 1990, section 5.3.5; with Poisson arrivals Lee and Longton 1959). Exact for
    /// M/M/m and M/G/1. Off by up to 2.5 % of M/E2/m, and by 16 % of M/H2/4 with c_s² = 5.5 at ρ = 0.7.
    pub fn allen_cunneen_s(&self) -> f64 {
        (self.gap_scv + self.service_scv) / 2.0 * self.exponential_s()
    }

    /// For Poisson arrivals: the mixture of M/D/m and M/M/m with the weights 1 − c_s² and c_s² (Tijms 2003, section
    /// 9.6.2), a line through the two. Within 0.5 % of M/E2/m; valid for c_s² > 1, but overestimates, by 11 % for
    /// M/H2/4 with c_s² = 5.5 at ρ = 0.7.
    pub fn interpolation_s(&self) -> f64 {
        (1.0 - self.service_scv).mul_add(self.constant_s(), self.service_scv * self.exponential_s()).max(0.0)
    }

    /// For Poisson arrivals: the harmonic mixture of M/D/m and M/M/m (Kimura 1986). Within 0.7 % of M/E2/m;
    /// underestimates for c_s² > 1, by 9 % for M/H2/2 with c_s² = 5.5 at ρ = 0.5.
    pub fn kimura_s(&self) -> f64 {
        let (constant_s, exponential_s) = (self.constant_s(), self.exponential_s());
        if constant_s == 0.0 {
            return self.allen_cunneen_s();
        }
        (1.0 + self.service_scv)
            / ((1.0 - self.service_scv) / constant_s + 2.0 * self.service_scv / exponential_s)
    }

    /// For M/D/m, independent of the laws: half the wait of M/M/m, corrected for the servers (Cosmetatos 1975, capped
    /// as in Whitt 1993, equations 2.16 and 2.17). Within 1 % of exact.
    pub fn cosmetatos_s(&self) -> f64 {
        (1.0 + self.correction()) / 2.0 * self.exponential_s()
    }

    /// γ of Whitt 1993, equation 2.17.
    fn correction(&self) -> f64 {
        let (m, rho) = (self.m(), self.rho());
        ((1.0 - rho) * (m - 1.0) * ((4.0 + 5.0 * m).sqrt() - 2.0) / (16.0 * m * rho)).min(0.24)
    }

    /// The approximation of Whitt (Production and Operations Management 2, 1993, equations 2.16 to 2.25). Within 3 % of
    /// M/H2/m with c_s² = 5.5 where ρ ≥ 0.7, 9.5 % below for two servers at ρ = 0.5; within 0.8 % of M/E2/m.
    pub fn whitt_s(&self) -> f64 {
        let (gap, service) = (self.gap_scv, self.service_scv);
        let both = f64::midpoint(gap, service);
        if both == 0.0 {
            return 0.0;
        }
        let rho = self.rho();
        let constant_service = 1.0 + self.correction();
        let constant_gaps = (1.0 - 4.0 * self.correction()) * libm::exp(-2.0 * (1.0 - rho) / (3.0 * rho));
        let equal = if both >= 1.0 {
            1.0
        } else {
            libm::pow(f64::midpoint(constant_service, constant_gaps).min(1.0), 2.0 * (1.0 - both))
        };
        let factor = if gap >= service {
            let whole = 4.0 * gap - 3.0 * service;
            4.0 * (gap - service) / whole * constant_service + service / whole * equal
        } else {
            let whole = 2.0 * (gap + service);
            (service - gap) / whole * constant_gaps + (service + 3.0 * gap) / whole * equal
        };
        factor * both * self.exponential_s()
    }

    /// The approximation of Kraemer and Langenbach-Belz (1976) for one server: (c_a² + c_s²)/2 times M/M/1, corrected
    /// for gaps that are not exponential. For several servers the same correction of Allen and Cunneen's.
    pub fn kraemer_langenbach_belz_s(&self) -> f64 {
        let (gap, service, slack) = (self.gap_scv, self.service_scv, 1.0 - self.rho());
        if gap + service == 0.0 {
            return 0.0;
        }
        let exponent = if gap <= 1.0 {
            2.0 * slack * (1.0 - gap).powi(2) / (3.0 * self.rho() * (gap + service))
        } else {
            slack * (gap - 1.0) / (gap + 4.0 * service)
        };
        libm::exp(-exponent) * self.allen_cunneen_s()
    }

    /// An upper bound of the mean wait of GI/G/1, in s: λ(σ_a² + σ_s²)/(2(1 − ρ)) (Kingman 1962). `None` for several
    /// servers, for which it does not hold.
    pub fn kingman_bound_s(&self) -> Option<f64> {
        let variance =
            self.gap_scv / self.rate_per_s.powi(2) + self.service_scv * self.service_s * self.service_s;
        (self.servers.get() == 1).then(|| self.rate_per_s * variance / (2.0 * (1.0 - self.rho())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All approximations agree with the exact answer where they claim to be exact.
    #[test]
    fn they_meet_where_they_are_exact() {
        for servers in [1, 2, 7, 40] {
            let of = |service_scv| {
                let servers = Servers::new(servers).unwrap();
                TwoMoments::new(0.8 * f64::from(servers.get()), 1.0, servers, 1.0, service_scv).unwrap()
            };
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-12, "{servers}: {a} {b}");
            let exponential = of(1.0);
            near(exponential.allen_cunneen_s(), exponential.exponential_s());
            near(exponential.interpolation_s(), exponential.exponential_s());
            near(exponential.kimura_s(), exponential.exponential_s());
            near(exponential.whitt_s(), exponential.exponential_s());
            near(exponential.kraemer_langenbach_belz_s(), exponential.exponential_s());
            let constant = of(0.0);
            near(constant.interpolation_s(), constant.constant_s());
            near(constant.kimura_s(), constant.constant_s());
            near(constant.whitt_s(), constant.cosmetatos_s());
            let off = constant.cosmetatos_s() / constant.constant_s() - 1.0;
            assert!(off.abs() < 0.01, "{servers}: {off}");
        }
    }

    /// Kingman's bound lies above Kraemer and Langenbach-Belz and is tight in heavy traffic.
    #[test]
    fn the_bound_is_above() {
        for (gap, service) in [(0.0, 1.0), (0.5, 0.5), (4.0, 2.0)] {
            for rho in [0.1, 0.7, 0.999] {
                let of = TwoMoments::new(rho, 1.0, Servers::MIN, gap, service).unwrap();
                let (bound_s, near_s) = (of.kingman_bound_s().unwrap(), of.kraemer_langenbach_belz_s());
                assert!(bound_s >= near_s, "{gap} {service} {rho}");
                assert!(rho < 0.99 || bound_s / near_s < 1.01, "{gap} {service}: {bound_s} {near_s}");
            }
        }
    }
}
