//! M/M/m with unlimited room.

use super::Solution;
use super::erlang::erlang_c;
use super::tails::Tails;

/// The waiting and response times of M/M/m, in order of arrival.
pub(super) struct Many {
    p_wait: f64,
    load: f64,
    servers: f64,
    service_s: f64,
    /// m·µ − λ.
    spare_per_s: f64,
}

impl Many {
    pub(super) fn new(rate_per_s: f64, service_s: f64, servers: u32) -> Self {
        let load = rate_per_s * service_s;
        let p_wait = erlang_c(servers, load);
        let servers = f64::from(servers);
        Self { p_wait, load, servers, service_s, spare_per_s: (servers - load) / service_s }
    }

    /// P(W > t) = C·e^(−(mµ−λ)t).
    pub(super) fn waiting(&self, t_s: f64) -> f64 {
        self.p_wait * libm::exp(-self.spare_per_s * t_s)
    }

    /// P(R > t) = e^(−µt) + C·(e^(−µt) − e^(−µt(m−a)))/(m−1−a), written so that nothing cancels or overflows
    /// where m − 1 is near a or on either side of it.
    pub(super) fn response(&self, t_s: f64) -> f64 {
        let x = t_s / self.service_s;
        let gap = self.servers - 1.0 - self.load;
        let y = x * gap.abs();
        let shape = if y > 0.0 { -libm::expm1(-y) / y } else { 1.0 };
        libm::exp(-x) + self.p_wait * libm::exp(-x * (gap + 1.0).min(1.0)) * x * shape
    }

    /// The quantile of the waiting time, in closed form.
    pub(super) fn waiting_quantile(&self, p: f64) -> f64 {
        (libm::log(self.p_wait / (1.0 - p)) / self.spare_per_s).max(0.0)
    }

    /// P(N ≥ n) = C·ρ^(n−m) from m on; below, what is missing is the sum of p_n … p_(m−1), from p_m downwards.
    pub(super) fn number_at_least(&self, n: u64) -> f64 {
        let (n, rho) = (n as f64, self.load / self.servers);
        if n >= self.servers {
            return self.p_wait * libm::pow(rho, n - self.servers);
        }
        let mut sum = self.p_wait;
        // p_m = C·(1 − ρ), and p_(k−1) = p_k·k/a.
        let mut p = self.p_wait * (1.0 - rho);
        let mut k = self.servers;
        while k > n {
            p *= k / self.load;
            sum += p;
            k -= 1.0;
        }
        sum.min(1.0)
    }
}

/// Means, variances and tails of M/M/m.
pub(super) fn solve(rate_per_s: f64, service_s: f64, servers: u32) -> Solution {
    let many = Many::new(rate_per_s, service_s, servers);
    let variance = many.p_wait * (2.0 - many.p_wait) / many.spare_per_s.powi(2);
    Solution {
        source: match servers {
            1 => "M/M/1 (Kleinrock 1975, section 3.2)",
            _ => "M/M/m by Erlang's C formula (Gross, Shortle, Thompson and Harris 2008, section 2.3)",
        },
        p_wait: many.p_wait,
        waiting_s: many.p_wait / many.spare_per_s,
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s,
        lost: 0.0,
        tails: Tails::Many(many),
    }
}
