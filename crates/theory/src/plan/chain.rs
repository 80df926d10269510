//! Stations whose number of requests is a birth–death process: exponential service, and arrivals that are Poisson or from a
//! population with exponential think times; with or without limited capacity.
//!
//! The times of all requests added up are the integral of a function f of the number n in the station: n itself for response
//! times, those beyond the servers for waiting times. With w the mean of a request, ∫f − w·(arrivals) has a mean of zero, and
//! its variance grows as Σ λₙπₙ((dₙ − w)² + dₙ²) per unit of time, with dₙ = Σ_{i>n} πᵢ(fᵢ − wλᵢ)/(λₙπₙ): the extra cost of one
//! more request on top of n (a martingale argument; Whitt 1992, "Asymptotic formulas for Markov processes with applications
//! to simulation", has it for f alone). Each dₙ is added up from the side on which all terms are positive.

use kendall_station::{Arrivals, Discipline, Knows, Law, Station};

use super::{Basis, Moments, Spread};
use crate::erlang_c;

/// The most states that are added up one by one.
const MOST: u64 = 10_000_000;

/// The process.
struct Chain {
    births: Births,
    servers: f64,
    /// The rate of one server, in 1/s.
    rate_per_s: f64,
    /// The largest number of requests; `None` is unlimited.
    top: Option<usize>,
}

/// The arrival rate while n of them are present.
#[derive(Clone, Copy)]
enum Births {
    Poisson { per_s: f64 },
    Population { users: f64, think_s: f64 },
}

/// The integrated time.
#[derive(Clone, Copy)]
enum Time {
    Response,
    Waiting,
}

/// `None` if the number of requests is not such a process.
pub(super) fn spread(station: &Station) -> Option<Spread> {
    let chain = Chain::of(station)?;
    let (p, tail) = chain.probabilities();
    let rate_per_s = chain.throughput_per_s(&p);
    let of = |time| chain.moments(time, &p, tail, rate_per_s);
    Some(Spread {
        basis: Basis::Exact,
        rate_per_s,
        utilisation: rate_per_s / (chain.servers * chain.rate_per_s),
        response: of(Time::Response),
        waiting: of(Time::Waiting),
    })
}

/// The percentage by which the mean response grows if the service time grows by one per cent, all laws taken as exponential.
/// `None` for a station of too many states.
pub(super) fn elasticity(station: &Station, response_s: f64) -> Option<f64> {
    const STEP: f64 = 1e-4;
    let mean_s = |factor: f64| {
        let service = Law::Exponential { mean_s: factor * station.service_overall().mean_s() };
        let arrivals = match &station.arrivals {
            Arrivals::Closed { population, think } => Arrivals::Closed {
                population: *population,
                think: Law::Exponential { mean_s: think.mean_s().max(1e-3 * response_s) },
            },
            open => Arrivals::poisson(open.rate_per_s()?),
        };
        let classes = Vec::new();
        let discipline = Discipline::Fifo;
        let chain = Chain::of(&Station { service, arrivals, classes, discipline, ..station.clone() })?;
        let (p, tail) = chain.probabilities();
        Some(chain.mean_s(Time::Response, &p, tail, chain.throughput_per_s(&p)))
    };
    let (shorter, longer) = (mean_s(1.0 - STEP)?, mean_s(1.0 + STEP)?);
    Some(libm::log(longer / shorter) / (2.0 * STEP))
}

impl Chain {
    fn of(station: &Station) -> Option<Self> {
        let Law::Exponential { mean_s } = station.service else { return None };
        // Unknown sizes change nothing, because the rest of an exponential one has the same mean as at first.
        let knows_sizes = station.discipline.knows() == Knows::Size;
        if knows_sizes
            || !station.conditions.are_none()
            || station.classes.iter().any(|class| class.service.is_some())
        {
            return None;
        }
        let (births, users) = match station.arrivals {
            Arrivals::Open { gap: Law::Exponential { mean_s } } => {
                (Births::Poisson { per_s: 1.0 / mean_s }, None)
            }
            Arrivals::Closed { population, think: Law::Exponential { mean_s } } => {
                (Births::Population { users: f64::from(population), think_s: mean_s }, Some(population))
            }
            _ => return None,
        };
        let top = match (station.capacity, users) {
            (Some(capacity), Some(users)) if capacity < u64::from(users) => return None,
            (_, Some(users)) => Some(u64::from(users)),
            (capacity, None) => capacity,
        };
        let top = match top {
            Some(top) if top > MOST => return None,
            top => top.map(|top| top as usize),
        };
        Some(Self { births, servers: f64::from(station.servers.get()), rate_per_s: 1.0 / mean_s, top })
    }

    fn birth_per_s(&self, n: usize) -> f64 {
        match self.births {
            _ if self.top == Some(n) => 0.0,
            Births::Poisson { per_s } => per_s,
            Births::Population { users, think_s } => (users - n as f64) / think_s,
        }
    }

    fn death_per_s(&self, n: usize) -> f64 {
        (n as f64).min(self.servers) * self.rate_per_s
    }

    /// The states up to the top, or below the number of servers without a top; and the probability of all beyond.
    fn probabilities(&self) -> (Vec<f64>, f64) {
        let servers = self.servers as usize;
        let last = self.top.unwrap_or(servers - 1);
        let ratio = |n: usize| self.birth_per_s(n - 1) / self.death_per_s(n);
        // From the largest outwards, so that nothing overflows. The ratios fall, so the first one below 1 is behind it.
        let mode = (0..last).take_while(|&n| ratio(n + 1) >= 1.0).count();
        let mut p = vec![0.0; last + 1];
        p[mode] = 1.0;
        for n in (0..mode).rev() {
            p[n] = p[n + 1] / ratio(n + 1);
        }
        for n in mode + 1..=last {
            p[n] = p[n - 1] * ratio(n);
        }
        let tail = match (self.top, self.births) {
            (None, Births::Poisson { per_s }) => erlang_c(self.servers as u32, per_s / self.rate_per_s),
            _ => 0.0,
        };
        let total: f64 = p.iter().sum();
        p.iter_mut().for_each(|p| *p *= (1.0 - tail) / total);
        (p, tail)
    }

    fn throughput_per_s(&self, p: &[f64]) -> f64 {
        match (self.top, self.births) {
            (None, Births::Poisson { per_s }) => per_s,
            _ => p.iter().enumerate().map(|(n, p)| p * self.birth_per_s(n)).sum(),
        }
    }

    /// f of a state.
    fn counted(&self, time: Time, n: usize) -> f64 {
        match time {
            Time::Response => n as f64,
            Time::Waiting => (n as f64 - self.servers).max(0.0),
        }
    }

    fn mean_s(&self, time: Time, p: &[f64], tail: f64, rate_per_s: f64) -> f64 {
        let mut counted: f64 = p.iter().enumerate().map(|(n, p)| p * self.counted(time, n)).sum();
        if let Some(tail) = self.tail(tail) {
            counted += tail.chance * (self.counted(time, self.servers as usize) + tail.further);
        }
        counted / rate_per_s
    }

    /// The part beyond the states that are added up one by one: geometric from the number of servers upwards.
    fn tail(&self, chance: f64) -> Option<Tail> {
        let (None, Births::Poisson { per_s }) = (self.top, self.births) else { return None };
        let idle = (self.servers * self.rate_per_s - per_s) / (self.servers * self.rate_per_s);
        Some(Tail { chance, idle, further: (1.0 - idle) / idle, per_s })
    }

    fn moments(&self, time: Time, p: &[f64], tail: f64, rate_per_s: f64) -> Moments {
        let w = self.mean_s(time, p, tail, rate_per_s);
        let extra = self.extra(time, p, tail, w);
        let mut above = tail + p.iter().sum::<f64>();
        let (mut variance, mut deficit_s) = (0.0, 0.0);
        for (n, (p, d)) in p.iter().zip(&extra).enumerate() {
            variance += self.birth_per_s(n) * p * ((d - w).powi(2) + d * d);
            above = (above - p).max(0.0);
            deficit_s += d * above;
            deficit_s -= p * self.left_s(time, n);
        }
        if let Some(tail) = self.tail(tail) {
            let (at, step) = tail.extra(time, self.servers);
            let Tail { chance, idle, further, per_s } = tail;
            let square =
                |at: f64| at * at + 2.0 * at * step * further + step * step * further * (1.0 + 2.0 * further);
            variance += per_s * chance * (square(at - w) + square(at));
            deficit_s += chance * further * (at + step * further);
            let service_s = 1.0 / self.rate_per_s;
            let queued_s = further * (1.0 + further) * service_s / self.servers;
            deficit_s -= match time {
                Time::Waiting => chance * queued_s,
                Time::Response => chance * (queued_s + (self.servers + further) * service_s),
            };
            debug_assert!(idle > 0.0, "an unstable station is refused");
        }
        Moments {
            mean_s: w,
            asymptotic_variance_s2: variance / rate_per_s,
            deficit_s: Some(deficit_s.max(0.0)),
        }
    }

    /// The expected remaining time of all requests present, added up; an arrival counts it in full.
    fn left_s(&self, time: Time, n: usize) -> f64 {
        let service_s = 1.0 / self.rate_per_s;
        let queued = (n as f64 - self.servers).max(0.0);
        let queued_s = queued * (queued + 1.0) / 2.0 * service_s / self.servers;
        match time {
            Time::Waiting => queued_s,
            Time::Response => queued_s + n as f64 * service_s,
        }
    }

    /// dₙ: the total cost of one more request on top of n.
    fn extra(&self, time: Time, p: &[f64], tail: f64, w: f64) -> Vec<f64> {
        let last = p.len() - 1;
        let excess = |n: usize| self.counted(time, n) - w * self.birth_per_s(n);
        // The excess grows with n.
        let pivot = (0..=last).take_while(|&n| excess(n) <= 0.0).count();
        let mut extra = vec![0.0; last + 1];
        for n in 0..pivot {
            let before = if n > 0 { self.death_per_s(n) * extra[n - 1] } else { 0.0 };
            extra[n] = (before - excess(n)) / self.birth_per_s(n).max(f64::MIN_POSITIVE);
        }
        // A full station admits no arrivals.
        extra[last] = self.tail(tail).map_or(0.0, |tail| {
            let (at, step) = tail.extra(time, self.servers);
            at - step
        });
        for n in (pivot..last).rev() {
            extra[n] = (excess(n + 1) + self.birth_per_s(n + 1) * extra[n + 1]) / self.death_per_s(n + 1);
        }
        extra
    }
}

/// The states from the number of servers on: their probability, and the mean number of requests beyond the servers.
struct Tail {
    chance: f64,
    idle: f64,
    further: f64,
    per_s: f64,
}

impl Tail {
    /// dₙ with as many requests as servers, and by how much it grows with each one more.
    fn extra(&self, time: Time, servers: f64) -> (f64, f64) {
        let step = self.further / self.per_s;
        let free = match time {
            Time::Waiting => 0.0,
            Time::Response => servers * self.idle,
        };
        let at = step * (free + (1.0 - self.chance * (1.0 - self.idle)) / self.idle);
        (at, step)
    }
}
