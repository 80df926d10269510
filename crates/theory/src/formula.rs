//! The answer of queueing theory for a station, or the reason why no formula applies.
//!
//! Where an exact answer is known it is given: as a sum of positive terms, so that neither a hundred thousand servers
//! nor a utilisation of 1 − 10⁻⁹ costs accuracy. Quantiles of M/G/1 are exact for phase-type laws and constant service,
//! and good to about one part in ten thousand for other laws, to one in a thousand above a utilisation of 0.95. Where only an
//! approximation is known, the best one answers and says so ([`By::Formula`]); [`TwoMoments`] has them all, by name.

mod abandon;
mod approximate;
mod capacity;
mod choice;
mod classes;
mod closed;
mod constant;
mod delay;
mod erlang;
mod forks;
mod grid;
mod many;
mod many_phases;
mod matrix;
mod network;
mod phases;
mod poisson;
mod premises;
mod priority;
mod quadrature;
mod renewal;
mod sessions;
mod sharing;
mod shortest;
mod single;
mod sizing;
mod solution;
mod tails;

use kendall_station::{
    Answer, By, Class, ClassAnswer, Discipline, Estimate, Quantile, Servers, Station, StationError, Summary,
};

pub use approximate::TwoMoments;
use choice::solve;
use classes::matters;
pub use closed::{Engset, engset};
pub use erlang::{erlang_b, erlang_c};
pub use forks::{Split, fork_join_response_s, split, split_merge_response_s};
pub use network::{NetworkFormula, NoNetworkFormula, NodeFormula, closed_network, network_formula};
use premises::{poisson_rate, stable, summary};
pub use sizing::{load_for_loss, servers_for_loss, servers_for_p_wait, servers_for_response};
use solution::Solution;

/// The reason why queueing theory has no answer for a station, and an alternative.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoFormula {
    #[error(
        "unstable: utilisation would be {rho:.2}, the queue grows by {growth_per_s:.1} requests per second; \
         add servers, or lower the arrival rate"
    )]
    Unstable { rho: f64, growth_per_s: f64 },
    #[error(
        "unstable: utilisation would be {rho:.2}, the queue grows by {growth_per_s:.1} requests per second{}; add \
         servers, or lower the arrival rate",
        whose(keeping, growing)
    )]
    UnstableClasses { rho: f64, growth_per_s: f64, keeping: Vec<String>, growing: Vec<String> },
    #[error("the formulas {why} need Poisson arrivals, and these are not Poisson; use the simulation")]
    NeedsPoisson { why: &'static str },
    #[error(
        "the arrivals are a recorded trace, which has no formula; give the distribution of the gaps, or use the simulation"
    )]
    Trace,
    #[error(
        "this formula needs exponential service times at the {servers} servers, and these are {law}; use the simulation"
    )]
    NeedsExponential { law: &'static str, servers: u32 },
    #[error(
        "with a closed population, waiting in order and these service times, {law}, there is no formula; it needs exponential service \
         times, shared servers, or a server for each user; use the simulation"
    )]
    ClosedService { law: &'static str },
    #[error(
        "this formula is for an open stream, but the arrivals come from a closed population; use `formula`"
    )]
    Closed,
    #[error("{population} users are more than the formulas' limit of ten million; use the simulation")]
    Users { population: u32 },
    #[error(
        "the service takes no time at all, so nothing limits a closed population; give a service time above zero"
    )]
    NoServiceTime,
    #[error("there is no formula here for the discipline {0}; use the simulation")]
    Discipline(Discipline),
    #[error(
        "there is no formula here for classes of different priority with limited capacity; leave the capacity unlimited, or use the \
         simulation"
    )]
    Classes,
    #[error("the formula of this station gives only moments, no distribution; use the simulation")]
    OnlyMeans,
    #[error(
        "the variance of the {law} law is infinite, and so is the mean waiting time or every formula for it; simulate a run of the \
         length that matters"
    )]
    InfiniteVariance { law: &'static str },
    #[error(
        "with capacity {capacity} the formulas need exponential service times, and these are {law}; use the simulation"
    )]
    Capacity { capacity: u64, law: &'static str },
    #[error(
        "a capacity of {capacity} requests is more than the formulas' limit of ten million; leave the capacity unlimited, or use the \
         simulation"
    )]
    Room { capacity: u64 },
    #[error(
        "the rate of the arrivals changes over time, and the formulas need a constant rate; use the simulation"
    )]
    Varying,
    #[error("the number of users changes over time, and the formulas need a constant number; simulate runs")]
    Attended,
    #[error("there is no formula here for a station with {0}; use the simulation")]
    Conditions(&'static str),
    #[error("the station is not valid: {0}")]
    Impossible(#[from] StationError),
}

/// The classes that keep up, if there are any.
fn whose(keeping: &[String], growing: &[String]) -> String {
    if keeping.is_empty() {
        return String::new();
    }
    format!("; the classes that keep up: {}; that do not: {}", keeping.join(", "), growing.join(", "))
}

/// The answer of queueing theory, without intervals: within about a millisecond at any utilisation and up to ten
/// thousand servers, and within some for a hundred thousand with constant service.
///
/// Exact: M/M/m and M/M/m/K, M/G/m/m, M/G/1, M/D/m, M/PH/m of up to 24 states, GI/M/m, M/M/m with exponential patience; M/M/m//N for
/// any law of thinking, with or without limited room; M/M/1 with processor sharing; the means of other processor sharing
/// and of shortest-remaining at one server; priorities at one server, and at several if all service is alike and
/// exponential. Approximate, and labelled so: M/G/m, GI/G/m, priorities of other laws at several servers. LIFO has the
/// means of FIFO. A priority discipline without classes is FIFO.
///
/// # Errors
/// Fails if the station is unstable or invalid, or there is no formula for it.
pub fn formula(station: &Station) -> Result<Answer, NoFormula> {
    station.validate()?;
    if let Some((open, odd)) = sessions::as_open(station) {
        let answer = formula(&open)?;
        let by = of_sessions(&answer.by, odd);
        return Ok(Answer { by, ..answer });
    }
    if let Some(patience_s) = abandon::patience_s(station) {
        return abandon::answer(station, patience_s);
    }
    if let Some(condition) = station.conditions.first() {
        return Err(NoFormula::Conditions(condition));
    }
    if matters(station) {
        let rate_per_s = poisson_rate(&station.arrivals, "for priorities")?;
        return match station.capacity {
            None => priority::answer(station, rate_per_s),
            Some(_) => Err(NoFormula::Classes),
        };
    }
    let solution = solve(station)?;
    let (response, waiting) = solution.summaries();
    let in_system = solution.throughput_per_s * (solution.waiting_s + solution.service_s);
    let classes = class_answers(station, &solution, &response, &waiting);
    let weighted_s = match classes.as_slice() {
        [] => response.mean_s.value,
        classes => {
            let cost_s = |(class, answer): (&Class, &ClassAnswer)| {
                class.share * class.weight * answer.response.mean_s.value
            };
            station.classes.iter().zip(classes).map(cost_s).sum()
        }
    };
    Ok(Answer {
        by: By::Formula { source: solution.source.into(), approximate: solution.approximate.map(Into::into) },
        response,
        waiting,
        p_wait: Estimate::exact(solution.p_wait),
        throughput_per_s: Estimate::exact(solution.throughput_per_s),
        utilisation: Estimate::exact(
            solution.throughput_per_s * solution.service_s / f64::from(station.servers.get()),
        ),
        in_system: Estimate::exact(in_system),
        lost: Estimate::exact(solution.lost),
        weighted_response_s: Some(Estimate::exact(weighted_s)),
        classes,
    })
}

/// P(waiting time > t) of the accepted requests.
///
/// # Errors
/// As [`formula`], and where only means are known.
pub fn waiting_survival(station: &Station, t_s: f64) -> Result<f64, NoFormula> {
    let tails = solve(station)?.tails;
    tails.waiting(t_s).ok_or(NoFormula::OnlyMeans)
}

/// P(response time > t) of the accepted requests.
///
/// # Errors
/// As [`formula`], and where only means are known.
pub fn response_survival(station: &Station, t_s: f64) -> Result<f64, NoFormula> {
    let tails = solve(station)?.tails;
    tails.response(t_s).ok_or(NoFormula::OnlyMeans)
}

/// The quantile `p` of the response time and of the waiting time, in s, for any `p` between 0 and 1.
///
/// # Errors
/// As [`formula`], and where only means are known.
pub fn quantiles(station: &Station, p: f64) -> Result<(f64, f64), NoFormula> {
    let (response, waiting) = solve(station)?.tails.quantiles_at(&[p]);
    match (response.first(), waiting.first()) {
        (Some(response), Some(waiting)) => Ok((response.value_s.value, waiting.value_s.value)),
        _ => Err(NoFormula::OnlyMeans),
    }
}

/// The quantile `p` of the response time, in s, for any `p` between 0 and 1: also if that of the waiting time is not known, as
/// under processor sharing.
///
/// # Errors
/// As [`quantiles`].
pub fn response_quantile(station: &Station, p: f64) -> Result<f64, NoFormula> {
    let (response, _) = solve(station)?.tails.quantiles_at(&[p]);
    response.first().map(|response| response.value_s.value).ok_or(NoFormula::OnlyMeans)
}

/// Quantiles of the response time at ascending shares between 0 and 1, from one solution of the station; fewer if the method ends before.
///
/// # Errors
/// As [`quantiles`].
pub fn response_quantiles(station: &Station, shares: &[f64]) -> Result<Vec<Quantile>, NoFormula> {
    let (response, _) = solve(station)?.tails.quantiles_at(shares);
    if response.is_empty() { Err(NoFormula::OnlyMeans) } else { Ok(response) }
}

/// Mean response time, in s, of a request that needs `size_s` at M/G/1 with processor sharing: x/(1 − ρ), whatever the
/// law of service (Kleinrock 1967).
///
/// # Errors
/// Fails where utilisation is 1 or more.
pub fn sharing_response_s(rate_per_s: f64, service_s: f64, size_s: f64) -> Result<f64, NoFormula> {
    stable(rate_per_s, service_s, Servers::MIN)?;
    Ok(size_s / (1.0 - rate_per_s * service_s))
}

/// P(at least n requests in the station) for M/M/m, at an arbitrary instant (Gross et al. 2008, section 2.3).
///
/// # Errors
/// As [`formula`]; also for service that is not exponential and for stations of limited room.
pub fn number_at_least(station: &Station, n: u64) -> Result<f64, NoFormula> {
    let tails = solve(station)?.tails;
    let known = tails.known().ok_or(NoFormula::OnlyMeans)?;
    known.number_at_least(n).ok_or_else(|| NoFormula::NeedsExponential {
        law: station.service_overall().name(),
        servers: station.servers.get(),
    })
}

/// The theorem by which the formula of an open stream holds for sessions, and its assumptions.
fn of_sessions(by: &By, odd: Option<&str>) -> By {
    let By::Formula { source, approximate } = by else { return by.clone() };
    let approximate: Vec<&str> = odd.into_iter().chain(approximate.as_deref()).collect();
    By::Formula {
        source: format!("{}; {source}", sessions::SOURCE),
        approximate: (!approximate.is_empty()).then(|| approximate.join("; ")),
    }
}

/// If the discipline ignores classes, they differ at most in their own service time. Excludes the deviation of a class with its own
/// law beyond the mean, and the waiting time under sharing, which grows with the service time.
fn class_answers(
    station: &Station,
    solution: &Solution,
    response: &Summary,
    waiting: &Summary,
) -> Vec<ClassAnswer> {
    let mean_only = |mean_s| summary(mean_s, None, Vec::new());
    let answer = |class: &Class| {
        let (response, waiting) = match &class.service {
            None if station.classes.iter().all(|class| class.service.is_none()) => {
                (response.clone(), waiting.clone())
            }
            own => {
                let own_s = own.as_ref().unwrap_or(&station.service).mean_s();
                let stretch = (solution.waiting_s + solution.service_s) / solution.service_s;
                match station.discipline.shares() {
                    true => (mean_only(own_s * stretch), mean_only(own_s * (stretch - 1.0))),
                    false => (mean_only(solution.waiting_s + own_s), waiting.clone()),
                }
            }
        };
        ClassAnswer {
            name: class.name.clone(),
            response,
            waiting,
            throughput_per_s: Estimate::exact(class.share * solution.throughput_per_s),
        }
    };
    station.classes.iter().map(answer).collect()
}
