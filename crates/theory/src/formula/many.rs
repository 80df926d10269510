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

    /// P(N ≥ n) = C·ρ^(n−m) from m on; below, the share of the states from n on, by p_k = p_(k−1)·a/k. They are relative to the most
    /// likely state, because p_m of many lightly loaded servers is smaller than any number.
    fn at_least(&self, n: u64) -> f64 {
        let (n, m, load) = (n as f64, self.servers, self.load);
        if n >= m {
            return self.delay.p_wait * libm::pow(load / m, n - m);
        }
        let (mut below_n, mut from_n) = (0.0, 0.0);
        let mut add = |k: f64, p: f64| if k < n { below_n += p } else { from_n += p };
        let likeliest = load.floor();
        let (mut k, mut p) = (likeliest, 1.0);
        while k > 0.0 && p > 0.0 {
            p *= k / load;
            k -= 1.0;
            add(k, p);
        }
        (k, p) = (likeliest, 1.0);
        while k < m && p > 0.0 {
            add(k, p);
            k += 1.0;
            p *= load / k;
        }
        // From p_m on the states are a geometric series.
        add(m, p / (1.0 - load / m));
        from_n / (below_n + from_n)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A thousand servers are as good as infinitely many for a load of 100, so the number is Poisson.
    #[test]
    fn many_lightly_loaded_servers_are_a_poisson_law() {
        let many = Many::new(100.0, 1.0, 1000);
        let mut below = 0.0;
        for n in 0..1000u32 {
            let (found, k) = (many.at_least(u64::from(n)), f64::from(n));
            assert!((found - (1.0 - below)).abs() < 1e-12, "{n}: {found}");
            below += libm::exp(k * libm::log(100.0) - 100.0 - libm::lgamma(k + 1.0));
        }
        assert!(many.at_least(50) > 0.999_999 && (many.at_least(100) - 0.513).abs() < 1e-3);
    }

    /// M/M/2 at one half: p_0 = 1/3, p_1 = 1/3, and from then on each state is half as likely as the one before.
    #[test]
    fn few_servers_have_the_textbook_states() {
        let many = Many::new(1.0, 1.0, 2);
        for (n, exact) in [(0, 1.0), (1, 2.0 / 3.0), (2, 1.0 / 3.0), (3, 1.0 / 6.0)] {
            assert!((many.at_least(n) - exact).abs() < 1e-14, "{n}");
        }
    }
}
