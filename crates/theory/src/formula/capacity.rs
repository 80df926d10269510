//! M/M/m/K: capacity K; and M/G/m/m, where no request waits.

use kendall_station::Law;

use super::erlang::erlang_b;
use super::poisson::{Sides, Window, ln_chance};
use super::solution::Solution;
use super::tails::{Distributions, NoWait, Tails};

/// The largest capacity with an answer.
pub(super) const MOST: u64 = 10_000_000;
/// Up to this number of waiting positions, tails are added up one by one; beyond, their sums have a closed form.
const FEW: u64 = 64;
/// Where the ratio of the chances differs from one by less than this over all places, their logarithm is taken as
/// small: the closed sums would lose digits there, and the neglected square is smaller still.
const ALL_BUT_EQUAL: f64 = 1e-5;

/// The waiting and response times of the accepted requests of M/M/m/K, in order of arrival.
pub(super) struct LimitedTimes {
    /// The probability that an accepted request finds a free server.
    p_free: f64,
    /// Probabilities that it finds m, m + 1, …, K − 1 requests before it: their number, the logarithm of the first one, and ρ, the
    /// ratio of each to the one before.
    places: u64,
    ln_first: f64,
    load: f64,
    servers: f64,
    service_s: f64,
}

impl Distributions for LimitedTimes {
    /// P(W > t): with j requests waiting before it, fewer than j + 1 departures by t.
    fn waiting(&self, t_s: f64) -> f64 {
        let departures = self.servers * t_s / self.service_s;
        if self.places <= FEW {
            let window = Window::new(departures);
            let mut few = 0.0;
            return (0..self.places)
                .map(|j| {
                    few += window.at(j as usize);
                    self.ahead(j) * few
                })
                .sum();
        }
        self.still_waiting(self.ln_first, self.places as f64, departures)
    }

    /// P(R > t) = P(W > t) + P(W ≤ t < W + S).
    fn response(&self, t_s: f64) -> f64 {
        let departures = self.servers * t_s / self.service_s;
        if self.places <= FEW {
            return self.p_free * libm::exp(-t_s / self.service_s)
                + self.in_service_one_by_one(departures)
                + self.waiting(t_s);
        }
        if self.servers == 1.0 {
            // Its own service is one more of the same stages.
            return self.still_waiting(self.ln_first - self.ln_ratio(), self.places as f64 + 1.0, departures);
        }
        self.p_free * libm::exp(-t_s / self.service_s) + self.waiting(t_s) + self.in_service(departures)
    }
}

impl LimitedTimes {
    fn ahead(&self, j: u64) -> f64 {
        libm::exp(self.ln_first + j as f64 * self.ln_ratio())
    }

    fn ln_ratio(&self) -> f64 {
        ln_quotient(self.load, self.servers)
    }

    /// For a wait of j stages of rate θ = mµ, P(W ≤ t < W + S) is H_j = ∫ f_j(x) e^(−µ(t−x)) dx, and
    /// H_(j−1) = (1 − 1/m)·H_j + Poisson(j−1; θt): positive terms, from above.
    fn in_service_one_by_one(&self, departures: f64) -> f64 {
        let window = Window::new(departures);
        let keep = 1.0 - 1.0 / self.servers;
        let (mut in_service, mut sum) = (0.0, 0.0);
        for j in (1..=(self.places as usize).max(window.end())).rev() {
            in_service = keep * in_service + window.at(j);
            if j as u64 <= self.places {
                sum += self.ahead(j as u64 - 1) * in_service;
            }
        }
        sum
    }

    /// Σ q·ρ^j·P(N ≤ j) over j < J for N Poisson with mean x: summed by parts,
    /// q·(e^(−x(1−ρ))·P(N' < J) − ρ^J·P(N < J))/(1 − ρ) with N' of mean ρx.
    fn still_waiting(&self, ln_first: f64, places: f64, x: f64) -> f64 {
        let (slack, ln_ratio) = ((self.servers - self.load) / self.servers, self.ln_ratio());
        let at_most = libm::exp(Sides::of(places - 1.0, x).ln_at_most);
        if (places * ln_ratio).abs() < ALL_BUT_EQUAL {
            // To first order in ln ρ, from the factorial moments of the law cut off at J.
            let (one, two) = (chance(places - 1.0, x), chance(places - 2.0, x));
            let sum = places * at_most - x * (at_most - one);
            let slope = (places * (places - 1.0) * at_most - x * x * (at_most - one - two)) / 2.0;
            return (libm::exp(ln_first) * (sum + ln_ratio * slope)).max(0.0);
        }
        let thinned = Sides::of(places - 1.0, x * self.load / self.servers).ln_at_most;
        let falling = libm::exp(ln_first - x * slack + thinned);
        let cut = libm::exp(ln_first + places * ln_ratio) * at_most;
        ((falling - cut) / slack).max(0.0)
    }

    /// Σ q·ρ^j·P(W_j ≤ t < W_j + S). With κ = 1 − 1/m and N'' Poisson with mean κx, P(W_j ≤ t < W_j + S) is
    /// e^(−x/m)·κ^(−j−1)·P(N'' > j); by parts as above with σ = ρ/κ.
    fn in_service(&self, x: f64) -> f64 {
        let (places, others) = (self.places as f64, self.servers - 1.0);
        let (keep, ln_ratio) = (others / self.servers, ln_quotient(self.load, others));
        let ln_alone = self.ln_first - x / self.servers;
        let most = Sides::of(places - 1.0, keep * x);
        if (places * ln_ratio).abs() < ALL_BUT_EQUAL {
            let (y, more) = (keep * x, libm::exp(most.ln_more));
            let few = libm::exp(most.ln_at_most) - chance(places - 1.0, y);
            let sum = places * more + y * few;
            let slope = (places * (places - 1.0) * more + y * y * (few - chance(places - 2.0, y))) / 2.0;
            return libm::exp(ln_alone) / keep * (sum + ln_ratio * slope);
        }
        let thinned = Sides::of(places - 1.0, x * self.load / self.servers).ln_at_most;
        let falling = libm::exp(self.ln_first - x * (self.servers - self.load) / self.servers + thinned);
        let cut = libm::exp(ln_alone + places * ln_ratio + most.ln_more);
        let sum = falling + cut - libm::exp(ln_alone);
        (sum * self.servers / (self.load - others)).max(0.0)
    }
}

/// ln(a/b), also where the two are all but the same.
fn ln_quotient(a: f64, b: f64) -> f64 {
    let excess = (a - b) / b;
    if excess.abs() < 0.1 { libm::log1p(excess) } else { libm::log(a / b) }
}

fn chance(n: f64, mean: f64) -> f64 {
    if mean > 0.0 { libm::exp(ln_chance(n, mean)) } else { f64::from(n == 0.0) }
}

/// Σ r^k, Σ k·r^k and Σ k²·r^k over k < n for r ≤ 1, by doubling n: positive terms all.
#[derive(Clone, Copy)]
struct Geometric {
    power: f64,
    sums: [f64; 3],
}

impl Geometric {
    fn new(r: f64, n: u64) -> Self {
        let (mut found, mut terms) = (Self { power: 1.0, sums: [0.0; 3] }, 0.0);
        let one = Self { power: r, sums: [1.0, 0.0, 0.0] };
        for bit in (0..u64::BITS - n.leading_zeros()).rev() {
            found = found.then(terms, found);
            terms *= 2.0;
            if n >> bit & 1 == 1 {
                found = found.then(terms, one);
                terms += 1.0;
            }
        }
        found
    }

    /// The sums over `n` terms of this one and then those of `next`.
    fn then(self, n: f64, next: Self) -> Self {
        let ([a, b, c], [x, y, z]) = (self.sums, next.sums);
        let shifted = [x, y + n * x, z + 2.0 * n * y + n * n * x];
        Self {
            power: self.power * next.power,
            sums: [a + self.power * shifted[0], b + self.power * shifted[1], c + self.power * shifted[2]],
        }
    }
}

/// Means, variances and tails of M/M/m/K with K > m. A load above m is valid.
pub(super) fn solve(rate_per_s: f64, service_s: f64, servers: u32, capacity: u64) -> Solution {
    let (moments, room) = moments(rate_per_s, service_s, servers, capacity);
    Solution { tails: Tails::of(room), ..moments }
}

/// Means and variances, and the distribution for the tails.
fn moments(rate_per_s: f64, service_s: f64, servers: u32, capacity: u64) -> (Solution, LimitedTimes) {
    let (m, load, places) = (f64::from(servers), rate_per_s * service_s, capacity - u64::from(servers));
    let j = places as f64;
    // Up to a factor: the chances of fewer than m requests together, of exactly m, and of K; and the sums over the
    // places from the likelier end, so that nothing overflows.
    let (free, first, full, sums) = if load <= m {
        let (blocked, sums) = (erlang_b(servers, load), Geometric::new(load / m, places));
        (1.0 - blocked, blocked, blocked * sums.power, sums)
    } else {
        let sums = Geometric::new(m / load, places);
        let first = sums.power * load / m;
        (m / (load * erlang_b(servers - 1, load)) * first, first, load / m, sums)
    };
    let [all, ahead, squares] = sums.sums;
    let scale = if load <= m { first } else { 1.0 };
    let accepted = free + scale * all;
    let p_wait = scale * all / accepted;
    // The number of stages to wait for is one more than those ahead, which are counted from either end.
    let (mean, square) = (ahead / all, squares / all);
    let stages = if load <= m { mean + 1.0 } else { j - mean };
    let drain_per_s = m / service_s;
    let waiting_s = p_wait * stages / drain_per_s;
    // For waiting requests, Var W = (E[J] + Var J)/θ²; for all, p·(Var + (1 − p)·mean²).
    let spread = (square - mean * mean).max(0.0) + stages;
    let variance = p_wait * (spread + (1.0 - p_wait) * stages * stages) / drain_per_s.powi(2);
    let ln_first = if load <= m {
        libm::log(first / accepted)
    } else {
        (j - 1.0) * ln_quotient(m, load) - libm::log(accepted)
    };
    let room = LimitedTimes { p_free: free / accepted, places, ln_first, load, servers: m, service_s };
    let moments = Solution {
        source: "M/M/m/K (Gross, Shortle, Thompson and Harris 2008, section 2.5)",
        approximate: None,
        p_wait,
        waiting_s,
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s * accepted / (accepted + full),
        lost: full / (accepted + full),
        tails: Tails::MEANS,
    };
    (moments, room)
}

/// M/G/m/m: a request that finds all servers busy is lost, so no request waits; the loss depends only on the mean of the distribution.
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
        tails: Tails::of(NoWait { service }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The closed sums compared with the sums one by one, below saturation, at it, next to it and above.
    #[test]
    fn the_closed_sums_are_those_of_the_places() {
        let (places, service_s) = (60u64, 0.5);
        for servers in [1u32, 2, 7, 50] {
            let m = f64::from(servers);
            // The last but one has σ = 1, and is as accurate as its neighbour.
            let loads = [0.3 * m, 0.97 * m, m * (1.0 - 1e-9), m, m * (1.0 + 1e-6), 1.3 * m, 5.0 * m, m - 1.0];
            for load in loads.into_iter().filter(|load| *load > 0.0) {
                let (_, room) = moments(load / service_s, service_s, servers, u64::from(servers) + places);
                for x in [0.0, 0.5, 10.0, 55.0, 70.0, 200.0] {
                    let t_s = x / m * service_s;
                    let near = |found: f64, exact: f64| {
                        assert!((found - exact).abs() < 1e-10, "{servers} {load} {x}: {found} {exact}");
                    };
                    near(room.still_waiting(room.ln_first, places as f64, x), room.waiting(t_s));
                    if servers > 1 {
                        near(room.in_service(x), room.in_service_one_by_one(x));
                    } else {
                        let closed =
                            room.still_waiting(room.ln_first - room.ln_ratio(), places as f64 + 1.0, x);
                        near(closed, room.response(t_s));
                    }
                }
            }
        }
    }

    #[test]
    fn sums_by_doubling_are_sums() {
        for (r, n) in [(0.3f64, 1u64), (0.9, 7), (1.0, 100), (1.0 - 1e-9, 37)] {
            let found = Geometric::new(r, n);
            for (power, found) in (0..).zip(found.sums) {
                let exact: f64 = (0..n).map(|k| (k as f64).powi(power) * r.powi(k as i32)).sum();
                assert!((found - exact).abs() <= 1e-12 * exact, "{r} {n} {power}: {found} {exact}");
            }
            assert!((found.power - r.powi(n as i32)).abs() < 1e-12);
        }
    }
}
