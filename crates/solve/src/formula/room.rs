//! M/M/m/K: room for K requests; and M/G/m/m, where nobody waits.

use kendall_station::Law;

use super::Solution;
use super::erlang::erlang_b;
use super::poisson::Window;
use super::tails::Tails;

/// The largest room whose states are added up one by one.
pub(super) const MOST: u64 = 10_000_000;

/// The waiting and response times of the accepted requests of M/M/m/K, in order of arrival.
pub(super) struct Room {
    /// The chance that an accepted request finds a free server.
    p_free: f64,
    /// The chances that it finds m, m + 1, …, K − 1 requests before it.
    ahead: Vec<f64>,
    service_s: f64,
    /// m·µ.
    drain_per_s: f64,
}

impl Room {
    /// P(W > t): with j requests waiting before it, fewer than j + 1 departures by t.
    pub(super) fn waiting(&self, t_s: f64) -> f64 {
        let departures = Window::new(self.drain_per_s * t_s);
        let mut few = 0.0;
        self.ahead
            .iter()
            .enumerate()
            .map(|(j, q)| {
                few += departures.at(j);
                q * few
            })
            .sum()
    }

    /// P(R > t) = P(W > t) + P(W ≤ t < W + S). For a wait of j stages of rate θ = mµ the second part is
    /// H_j = ∫ f_j(x) e^(−µ(t−x)) dx, and H_(j−1) = (1 − 1/m)·H_j + Poisson(j−1; θt): positive terms, from above.
    pub(super) fn response(&self, t_s: f64) -> f64 {
        let departures = Window::new(self.drain_per_s * t_s);
        let keep = 1.0 - 1.0 / (self.drain_per_s * self.service_s);
        let stages = self.ahead.len();
        let mut in_service = 0.0;
        let mut sum = self.p_free * libm::exp(-t_s / self.service_s);
        for j in (1..=stages.max(departures.end())).rev() {
            in_service = keep * in_service + departures.at(j);
            if j <= stages {
                sum += self.ahead[j - 1] * in_service;
            }
        }
        sum + self.waiting(t_s)
    }
}

/// Means, variances and tails of M/M/m/K. A load above m is welcome.
pub(super) fn solve(rate_per_s: f64, service_s: f64, servers: u32, capacity: u64) -> Solution {
    let servers_f = f64::from(servers);
    let load = rate_per_s * service_s;
    // p_n up to a factor, from the largest outwards so that nothing overflows.
    let ratio = |n: u64| load / (n as f64).min(servers_f);
    let mode = if load >= servers_f { capacity } else { load.floor() as u64 };
    let mut p = vec![0.0; capacity as usize + 1];
    p[mode as usize] = 1.0;
    for n in (0..mode).rev() {
        p[n as usize] = p[n as usize + 1] / ratio(n + 1);
    }
    for n in mode + 1..=capacity {
        p[n as usize] = p[n as usize - 1] * ratio(n);
    }
    let accepted: f64 = p[..capacity as usize].iter().sum();
    let total = accepted + p[capacity as usize];
    let share: Vec<f64> = p[..capacity as usize].iter().map(|p| p / accepted).collect();
    let (free, ahead) = share.split_at(servers as usize);
    let room = Room {
        p_free: free.iter().sum(),
        ahead: ahead.to_vec(),
        service_s,
        drain_per_s: servers_f / service_s,
    };
    let moment = |of: fn(f64) -> f64| -> f64 {
        ahead.iter().zip(1u64..).map(|(q, stages)| q * of(stages as f64)).sum()
    };
    let waiting_s = moment(|j| j) / room.drain_per_s;
    let second = moment(|j| j * (j + 1.0)) / room.drain_per_s.powi(2);
    let variance = (second - waiting_s * waiting_s).max(0.0);
    Solution {
        source: "M/M/m/K (Gross, Shortle, Thompson and Harris 2008, section 2.5)",
        approximate: None,
        p_wait: ahead.iter().sum(),
        waiting_s,
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s * accepted / total,
        lost: p[capacity as usize] / total,
        tails: Tails::Room(room),
    }
}

/// M/G/m/m: who finds all servers busy is lost, so nobody waits; the loss depends on the law only by its mean.
pub(super) fn loss(rate_per_s: f64, service: Law, servers: u32) -> Solution {
    let service_s = service.mean_s();
    let lost = erlang_b(servers, rate_per_s * service_s);
    Solution {
        source: "M/G/m/m by Erlang's B formula (Sevastyanov 1957)",
        approximate: None,
        p_wait: 0.0,
        waiting_s: 0.0,
        waiting_variance_s2: Some(0.0),
        response_variance_s2: Some(service.moment(2) - service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s * (1.0 - lost),
        lost,
        tails: Tails::Service(service),
    }
}
