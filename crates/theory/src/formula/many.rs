//! M/M/m with unlimited room.

use super::delay::Delay;
use super::erlang::erlang_c;
use super::solution::Solution;
use super::tails::{Distributions, Tails};

/// The waiting and response times of M/M/m, in order of arrival.
pub(super) struct Many {
    delay: Delay,
    load: f64,
    servers: f64,
}

impl Many {
    pub(super) fn new(rate_per_s: f64, service_s: f64, servers: u32) -> Self {
        let load = rate_per_s * service_s;
        let p_wait = erlang_c(servers, load);
        let servers = f64::from(servers);
        Self { delay: Delay { p_wait, service_s, spare: servers - load }, load, servers }
    }

    /// P(N ≥ n) = C·ρ^(n−m) from m on; below, what is missing is the sum of p_n … p_(m−1), from p_m downwards.
    fn at_least(&self, n: u64) -> f64 {
        let (n, rho) = (n as f64, self.load / self.servers);
        if n >= self.servers {
            return self.delay.p_wait * libm::pow(rho, n - self.servers);
        }
        let mut sum = self.delay.p_wait;
        // p_m = C·(1 − ρ), and p_(k−1) = p_k·k/a.
        let mut p = self.delay.p_wait * (1.0 - rho);
        let mut k = self.servers;
        while k > n {
            p *= k / self.load;
            sum += p;
            k -= 1.0;
        }
        sum.min(1.0)
    }
}

impl Distributions for Many {
    fn waiting(&self, t_s: f64) -> f64 {
        self.delay.waiting(t_s)
    }

    fn response(&self, t_s: f64) -> f64 {
        self.delay.response(t_s)
    }

    fn waiting_quantiles(&self, shares: &[f64]) -> Vec<f64> {
        self.delay.waiting_quantiles(shares)
    }

    fn number_at_least(&self, n: u64) -> Option<f64> {
        Some(self.at_least(n))
    }
}

/// Means, variances and tails of M/M/m.
pub(super) fn solve(rate_per_s: f64, service_s: f64, servers: u32) -> Solution {
    let many = Many::new(rate_per_s, service_s, servers);
    let variance = many.delay.variance_s2();
    Solution {
        source: match servers {
            1 => "M/M/1 (Kleinrock 1975, section 3.2)",
            _ => "M/M/m by Erlang's C formula (Gross, Shortle, Thompson and Harris 2008, section 2.3)",
        },
        approximate: None,
        p_wait: many.delay.p_wait,
        waiting_s: many.delay.mean_s(),
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s,
        lost: 0.0,
        tails: Tails::of(many),
    }
}
