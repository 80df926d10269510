//! One station with a fixed number of users: the machine-repair model, and Engset's without a queue.
//!
//! Users who think are an infinite-server station, so only the mean of their law matters (Baskett, Chandy, Muntz and
//! Palacios 1975). The number present is a birth–death chain, added up from its most likely state outwards in positive
//! terms; an accepted request sees it as if its own user were not there (Lavenberg and Reiser 1980).

use kendall_station::{Estimate, Law, Quantile, Servers, Station};

use super::NoFormula;
use super::classes::matters;
use super::poisson::Window;
use super::premises::exponential_mean;
use super::solution::{Order, Solution, order};
use super::tails::{Distributions, NoWait, Tails};

/// The most users, and the largest capacity, whose states are added up one by one.
const MOST: u64 = 10_000_000;

/// M/M/m/K//N by its mean think time, and the other stations with the same answer.
pub(super) fn solve(station: &Station, population: u32, think: &Law) -> Result<Solution, NoFormula> {
    let order = order(station)?;
    let service = station.service_overall();
    let servers = station.servers.get();
    let users = u64::from(population);
    let room = station.capacity.unwrap_or(users).min(users);
    if room > MOST {
        return Err(NoFormula::Users { population });
    }
    let waits = room > u64::from(servers);
    if waits && matters(station) {
        return Err(NoFormula::Classes);
    }
    if waits && order == Order::Shortest {
        return Err(NoFormula::Discipline(station.discipline));
    }
    if waits && order != Order::Sharing && exponential_mean(&service).is_none() {
        return Err(NoFormula::ClosedService { law: service.name() });
    }
    if service.mean_s() == 0.0 {
        return Err(NoFormula::NoServiceTime);
    }
    let chain = Chain::new(population, think.mean_s(), service.mean_s(), station.servers, room);
    let solution = chain.solution();
    Ok(if waits && order == Order::Sharing {
        let source = "M/G/m//N with processor sharing: means of the machine-repair model, insensitive to the laws of \
                      service and thinking (Baskett, Chandy, Muntz and Palacios 1975)";
        Solution { source, ..solution.ordered(order) }
    } else if waits {
        solution.ordered(order)
    } else {
        let variance_s2 = service.moment(2) - service.mean_s().powi(2);
        Solution { response_variance_s2: Some(variance_s2), tails: Tails::of(NoWait { service }), ..solution }
    })
}

/// The loss of Engset's station (1918): N sources, each of which sends, when idle, `ratio` requests per mean service time,
/// to one of m servers, and is rejected if all are busy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Engset {
    /// The share of the requests that is rejected.
    pub call_congestion: f64,
    /// The share of the time in which all servers are busy.
    pub time_congestion: f64,
    /// The mean number of busy servers.
    pub busy: f64,
}

/// Engset's formulas (1918), insensitive to the laws of service and idle times (Cohen 1957).
pub fn engset(sources: u32, servers: Servers, ratio: f64) -> Engset {
    let room = u64::from(servers.get().min(sources));
    if ratio <= 0.0 {
        return Engset { call_congestion: 0.0, time_congestion: 0.0, busy: 0.0 };
    }
    let chain = Chain::new(sources, 1.0 / ratio, 1.0, servers, room);
    let full = sources >= servers.get();
    Engset {
        call_congestion: chain.lost(),
        time_congestion: if full { chain.p.last().copied().unwrap_or(0.0) } else { 0.0 },
        busy: chain.busy(),
    }
}

/// The distribution of the number of requests present.
struct Chain {
    users: f64,
    think_s: f64,
    service_s: f64,
    servers: f64,
    /// The probabilities of n present, n = 0 … capacity.
    p: Vec<f64>,
}

impl Chain {
    fn new(users: u32, think_s: f64, service_s: f64, servers: Servers, room: u64) -> Self {
        let (users, servers) = (f64::from(users), f64::from(servers.get()));
        let room = room as usize;
        // p(n)/p(n − 1), which falls with n.
        let ratio = |n: usize| (users - n as f64 + 1.0) * service_s / (think_s * (n as f64).min(servers));
        let (mut low, mut high) = (0, room);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if ratio(middle) >= 1.0 { low = middle } else { high = middle - 1 }
        }
        let mut p = vec![0.0; room + 1];
        p[low] = 1.0;
        for n in (0..low).rev() {
            p[n] = p[n + 1] / ratio(n + 1);
            if p[n] == 0.0 {
                break;
            }
        }
        for n in low + 1..=room {
            p[n] = p[n - 1] * ratio(n);
            if p[n] == 0.0 {
                break;
            }
        }
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p /= total);
        Self { users, think_s, service_s, servers, p }
    }

    fn busy(&self) -> f64 {
        self.p.iter().enumerate().map(|(n, p)| p * (n as f64).min(self.servers)).sum()
    }

    fn throughput_per_s(&self) -> f64 {
        self.busy() / self.service_s
    }

    /// The share of the requests that find the station full.
    fn lost(&self) -> f64 {
        let room = self.p.len() - 1;
        let outside = self.users - room as f64;
        if outside <= 0.0 {
            return 0.0;
        }
        // Times the think time, so that a think time of zero works like any other.
        let lost = self.p[room] * outside;
        lost / (lost + self.throughput_per_s() * self.think_s)
    }

    fn solution(&self) -> Solution {
        // As many requests find n present as leave n behind.
        let found = |(n, p): (usize, &f64)| p * (n as f64).min(self.servers);
        let mut sees: Vec<f64> = self.p.iter().enumerate().skip(1).map(found).collect();
        let total: f64 = sees.iter().sum();
        sees.iter_mut().for_each(|share| *share /= total);
        let (free, ahead) = sees.split_at((self.servers as usize).min(sees.len()));
        let drain_per_s = self.servers / self.service_s;
        let moment = |of: fn(f64) -> f64| -> f64 {
            ahead.iter().zip(1u64..).map(|(share, stages)| share * of(stages as f64)).sum()
        };
        let mean_stages = moment(|j| j);
        let spread = |(share, stages): (&f64, u64)| share * (stages as f64 - mean_stages).powi(2);
        // The variance of a sum of J stages is E[J] + Var[J]; a request that finds a free server has none.
        let free: f64 = free.iter().sum();
        let var_stages = free * mean_stages * mean_stages + ahead.iter().zip(1u64..).map(spread).sum::<f64>();
        let waiting_s = mean_stages / drain_per_s;
        let variance_s2 = (mean_stages + var_stages) / drain_per_s.powi(2);
        let p_wait: f64 = ahead.iter().sum();
        let response_variance_s2 = variance_s2 + self.service_s.powi(2);
        let scale_s = response_variance_s2.sqrt();
        let times =
            ClosedTimes::new(free, ahead, self.service_s, drain_per_s, waiting_s + self.service_s, scale_s);
        Solution {
            source: "M/M/m//N, the machine-repair model (Gross, Shortle, Thompson and Harris 2008, section 2.8), for \
                     any law of thinking",
            approximate: None,
            p_wait,
            waiting_s,
            waiting_variance_s2: Some(variance_s2),
            response_variance_s2: Some(response_variance_s2),
            service_s: self.service_s,
            throughput_per_s: self.throughput_per_s(),
            lost: self.lost(),
            tails: Tails::of(times),
        }
    }
}

/// The waiting and response times, in order of arrival, by the number of requests that an arrival finds.
pub(super) struct ClosedTimes {
    /// The probability to find a free server.
    p_free: f64,
    /// The least relevant number of departures to wait for, minus one.
    first: usize,
    /// The probabilities of waiting for `first` + 1 departures, `first` + 2, and so on.
    ahead: Vec<f64>,
    service_s: f64,
    /// m·µ.
    drain_per_s: f64,
    /// The location of the response time, and its spread.
    mean_s: f64,
    spread_s: f64,
}

impl ClosedTimes {
    /// Shares below one part in 10²² of the largest change no digit and are omitted.
    fn new(p_free: f64, ahead: &[f64], service_s: f64, drain_per_s: f64, mean_s: f64, spread_s: f64) -> Self {
        let least = ahead.iter().copied().fold(p_free, f64::max) * 1e-22;
        let first = ahead.iter().position(|share| *share > least).unwrap_or(0);
        let end = ahead.iter().rposition(|share| *share > least).map_or(0, |last| last + 1);
        let ahead = ahead[first..end.max(first)].to_vec();
        Self { p_free, first, ahead, service_s, drain_per_s, mean_s, spread_s }
    }

    /// Where a survival function falls to a level, to one part in 10¹³: from a bracket about the mean by the Illinois form
    /// of regula falsi, which on the logarithm of a tail is quick.
    fn crossing(&self, level: f64, survival: &dyn Fn(f64) -> f64) -> f64 {
        if survival(0.0) <= level {
            return 0.0;
        }
        let height = |t_s: f64| libm::log(survival(t_s).max(f64::MIN_POSITIVE) / level);
        let (mut low, mut above) = (0.0, height(0.0));
        let mut reach = self.spread_s;
        let mut high = self.mean_s;
        let mut below = height(high);
        while below > 0.0 {
            (low, above) = (high, below);
            high += reach;
            reach *= 2.0;
            below = height(high);
        }
        let start = self.mean_s - 3.0 * self.spread_s;
        if low == 0.0 && start > 0.0 {
            match height(start) {
                found if found > 0.0 => (low, above) = (start, found),
                found => (high, below) = (start, found),
            }
        }
        let mut kept_low = None;
        for _ in 0..200 {
            if high - low <= 1e-13 * high || below == 0.0 {
                break;
            }
            let straight = low + (high - low) * above / (above - below);
            let middle = if straight > low && straight < high { straight } else { f64::midpoint(low, high) };
            let found = height(middle);
            if found > 0.0 {
                (low, above) = (middle, found);
                if kept_low == Some(false) {
                    below /= 2.0;
                }
                kept_low = Some(false);
            } else {
                (high, below) = (middle, found);
                if kept_low == Some(true) {
                    above /= 2.0;
                }
                kept_low = Some(true);
            }
        }
        high
    }
}

impl Distributions for ClosedTimes {
    /// P(W > t): with j + 1 departures to wait for, at most j by t.
    fn waiting(&self, t_s: f64) -> f64 {
        let departures = Window::new(self.drain_per_s * t_s);
        let before = self.first.saturating_sub(departures.first).min(departures.terms.len());
        let mut few: f64 = departures.terms[..before].iter().sum();
        let mut sum = 0.0;
        for (share, j) in self.ahead.iter().zip(self.first..) {
            few += departures.at(j);
            sum += share * few;
        }
        sum
    }

    /// P(R > t) = P(W > t) + P(W ≤ t < W + S). For a wait of j stages of rate θ = mµ the second part is
    /// H_j = ∫ f_j(x) e^(−µ(t−x)) dx, and H_(j−1) = (1 − 1/m)·H_j + Poisson(j−1; θt): positive terms, from above.
    fn response(&self, t_s: f64) -> f64 {
        let departures = Window::new(self.drain_per_s * t_s);
        let keep = 1.0 - 1.0 / (self.drain_per_s * self.service_s);
        let last = self.first + self.ahead.len();
        let mut in_service = 0.0;
        let mut sum = self.p_free * libm::exp(-t_s / self.service_s);
        // H is zero above both windows, and between them it only shrinks.
        for j in (departures.first.max(last + 1)..departures.end()).rev() {
            in_service = keep * in_service + departures.at(j);
        }
        in_service *= libm::pow(keep, departures.first.saturating_sub(last + 1) as f64);
        for j in (self.first + 1..=last).rev() {
            in_service = keep * in_service + departures.at(j);
            sum += self.ahead[j - 1 - self.first] * in_service;
        }
        sum + self.waiting(t_s)
    }

    /// Quantiles at the given shares, of the response and of the waiting time.
    fn quantiles(&self, shares: &[f64]) -> (Vec<Quantile>, Vec<Quantile>) {
        let all = |survival: &dyn Fn(f64) -> f64| {
            let at = |&p: &f64| Quantile { p, value_s: Estimate::exact(self.crossing(1.0 - p, survival)) };
            shares.iter().map(at).collect()
        };
        (all(&|t_s| self.response(t_s)), all(&|t_s| self.waiting(t_s)))
    }
}
