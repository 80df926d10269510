//! What queueing theory says of a station, or why it says nothing.
//!
//! Every number here is exact for its model: a sum of positive terms, so that neither a hundred thousand servers nor
//! a utilisation of 1 − 10⁻⁹ costs accuracy. Quantiles of M/G/1 are exact for phase-type laws and constant service,
//! and good to about one part in ten thousand for other laws, to one in five hundred next to saturation. Approximations (M/G/m) have no place here.

mod closed;
mod constant;
mod erlang;
mod grid;
mod many;
mod phases;
mod poisson;
mod room;
mod single;
mod tails;

use kendall_station::{
    Answer, Arrivals, By, Class, ClassAnswer, Discipline, Estimate, Law, Station, StationError, Summary,
};

pub use closed::{Engset, engset};
pub use erlang::{erlang_b, erlang_c, servers_for_p_wait, servers_for_response};
use tails::Tails;

/// Why queueing theory has no answer for a station, and what to do instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoFormula {
    #[error(
        "unstable: utilisation would be {rho:.2}, the queue grows by {growth_per_s:.1} requests per second; \
         add servers, or lower the arrival rate"
    )]
    Unstable { rho: f64, growth_per_s: f64 },
    #[error("the formulas need Poisson arrivals, and these are not; ask the simulation")]
    NeedsPoisson,
    #[error(
        "with {servers} servers the formulas need exponential service times, and these are {law}; ask the \
         simulation"
    )]
    NeedsExponential { law: &'static str, servers: u32 },
    #[error(
        "with a closed population, waiting in order and these service times, {law}, there is no formula; it needs \
         exponential ones, shared servers, or a server for each user; ask the simulation"
    )]
    ClosedService { law: &'static str },
    #[error("{population} users are more than the formulas add up (ten million); ask the simulation")]
    Users { population: u32 },
    #[error(
        "the service takes no time at all, so nothing limits a closed population; give a service time above zero"
    )]
    NoServiceTime,
    #[error("there is no formula here for the discipline {0}; ask the simulation")]
    Discipline(Discipline),
    #[error("there is no formula here for classes of different priority; ask the simulation")]
    Classes,
    #[error(
        "the variance of the {law} service time is infinite, and so is the mean waiting time; ask the \
         simulation for a run of the length that matters"
    )]
    InfiniteVariance { law: &'static str },
    #[error(
        "with room for {capacity} requests the formulas need exponential service times, and these are {law}; \
         ask the simulation"
    )]
    Capacity { capacity: u64, law: &'static str },
    #[error(
        "room for {capacity} requests is more than the formulas add up (ten million); leave the room unlimited, or ask \
         the simulation"
    )]
    Room { capacity: u64 },
    #[error(
        "the rate of the arrivals changes over time, and the formulas need it to stay; ask the simulation"
    )]
    Varying,
    #[error("there is no formula here for a station with {0}; ask the simulation")]
    Conditions(&'static str),
    #[error("the station cannot be: {0}")]
    Impossible(#[from] StationError),
}

/// The answer of queueing theory, exact and without intervals. Takes about a millisecond; M/G/1 with a law that is
/// neither constant nor phase-type takes some tens.
///
/// M/M/m and M/M/m/K for any m, M/G/1, M/D/1, M/G/m/m; for processor sharing the means of M/G/m and M/G/m/K. LIFO
/// has the means of FIFO. A priority discipline without classes is FIFO.
///
/// # Errors
/// Says why there is no formula: the station is unstable or impossible, or no exact formula is known here.
pub fn formula(station: &Station) -> Result<Answer, NoFormula> {
    let solution = Solution::of(station)?;
    let (response_quantiles, waiting_quantiles) = solution.tails.quantiles();
    let waiting = Summary {
        mean_s: Estimate::exact(solution.waiting_s),
        variance_s2: solution.waiting_variance_s2.filter(|v| v.is_finite()),
        quantiles: waiting_quantiles,
    };
    let response = Summary {
        mean_s: Estimate::exact(solution.waiting_s + solution.service_s),
        variance_s2: solution.response_variance_s2.filter(|v| v.is_finite()),
        quantiles: response_quantiles,
    };
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
        by: By::Formula { source: solution.source.into() },
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
    let tails = Solution::of(station)?.tails;
    tails.waiting(t_s).ok_or(NoFormula::Discipline(station.discipline))
}

/// P(response time > t) of the accepted requests.
///
/// # Errors
/// As [`formula`], and where only means are known.
pub fn response_survival(station: &Station, t_s: f64) -> Result<f64, NoFormula> {
    let tails = Solution::of(station)?.tails;
    tails.response(t_s).ok_or(NoFormula::Discipline(station.discipline))
}

/// P(at least n requests in the station) for M/M/m, at an arbitrary instant (Gross et al. 2008, section 2.3).
///
/// # Errors
/// As [`formula`]; also for service that is not exponential and for stations of limited room.
pub fn number_at_least(station: &Station, n: u64) -> Result<f64, NoFormula> {
    match Solution::of(station)?.tails {
        Tails::Many(many) => Ok(many.number_at_least(n)),
        Tails::Means => Err(NoFormula::Discipline(station.discipline)),
        _ => Err(NoFormula::NeedsExponential {
            law: station.service_overall().name(),
            servers: station.servers.get(),
        }),
    }
}

/// What a model says, before it is dressed as an [`Answer`].
struct Solution {
    source: &'static str,
    p_wait: f64,
    waiting_s: f64,
    waiting_variance_s2: Option<f64>,
    response_variance_s2: Option<f64>,
    service_s: f64,
    throughput_per_s: f64,
    lost: f64,
    tails: Tails,
}

/// In what respect the order of service matters to a formula.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Fifo,
    Lifo,
    Sharing,
}

impl Solution {
    fn of(station: &Station) -> Result<Self, NoFormula> {
        station.validate()?;
        if let Some(condition) = station.conditions.first() {
            return Err(NoFormula::Conditions(condition));
        }
        if let Arrivals::Closed { population, think } = &station.arrivals {
            return closed::solve(station, *population, think);
        }
        let rate_per_s = poisson_rate(&station.arrivals)?;
        let order = order(station)?;
        let service = station.service_overall();
        let service_s = service.mean_s();
        let servers = station.servers.get();
        let exponential = exponential_mean(&service).is_some();
        if station.capacity.is_none() {
            let (load, most) = (rate_per_s * service_s, f64::from(servers));
            if load >= most {
                let growth_per_s = rate_per_s - most / service_s;
                return Err(NoFormula::Unstable { rho: load / most, growth_per_s });
            }
        }
        match station.capacity {
            Some(capacity) if capacity == u64::from(servers) => {
                Ok(room::loss(rate_per_s, service, servers).ordered(order))
            }
            Some(capacity) if capacity > room::MOST => Err(NoFormula::Room { capacity }),
            Some(capacity) if exponential || order == Order::Sharing => {
                Ok(room::solve(rate_per_s, service_s, servers, capacity).ordered(order))
            }
            Some(capacity) => Err(NoFormula::Capacity { capacity, law: service.name() }),
            None if exponential || order == Order::Sharing => {
                let solution = many::solve(rate_per_s, service_s, servers).ordered(order);
                Ok(if exponential && servers == 1 && order == Order::Sharing {
                    solution.sharing_one_exponential_server(rate_per_s)
                } else {
                    solution
                })
            }
            None if servers > 1 => Err(NoFormula::NeedsExponential { law: service.name(), servers }),
            None if service.moment(2).is_infinite() => {
                Err(NoFormula::InfiniteVariance { law: service.name() })
            }
            None => Ok(single::solve(rate_per_s, service).ordered(order)),
        }
    }

    /// Leaves of a FIFO solution what holds for another order.
    fn ordered(self, order: Order) -> Self {
        match order {
            Order::Fifo => self,
            Order::Lifo => {
                Self { waiting_variance_s2: None, response_variance_s2: None, tails: Tails::Means, ..self }
            }
            Order::Sharing => Self {
                source: "processor sharing, insensitive to the law of service: means of M/M/m or M/M/m/K \
                         (Baskett, Chandy, Muntz and Palacios 1975)",
                waiting_variance_s2: None,
                response_variance_s2: None,
                tails: Tails::Means,
                ..self
            },
        }
    }

    /// Adds the variance that is known for M/M/1 with processor sharing.
    fn sharing_one_exponential_server(self, rate_per_s: f64) -> Self {
        let rho = rate_per_s * self.service_s;
        let variance = (2.0 + rho) / ((1.0 - rho).powi(2) * (2.0 - rho)) * self.service_s.powi(2);
        Self {
            source: "M/M/1 processor sharing (Coffman, Muntz and Trotter 1970)",
            response_variance_s2: Some(variance),
            ..self
        }
    }
}

fn poisson_rate(arrivals: &Arrivals) -> Result<f64, NoFormula> {
    match arrivals {
        Arrivals::Open { gap } => exponential_mean(gap).map(f64::recip).ok_or(NoFormula::NeedsPoisson),
        Arrivals::Varying(_) => Err(NoFormula::Varying),
        Arrivals::Trace { .. } | Arrivals::Closed { .. } => Err(NoFormula::NeedsPoisson),
    }
}

/// The mean of a law that is exponential, by whatever name.
fn exponential_mean(law: &Law) -> Option<f64> {
    let all_alike = |mut means: Box<dyn Iterator<Item = Option<f64>> + '_>| {
        let first = means.next()??;
        means.all(|mean| mean == Some(first)).then_some(first)
    };
    match law {
        Law::Exponential { mean_s } | Law::Erlang { shape: 1, mean_s } => Some(*mean_s),
        Law::Hyperexponential { parts } => all_alike(Box::new(parts.iter().map(|part| Some(part.1)))),
        Law::Mixture { parts } => all_alike(Box::new(parts.iter().map(|part| exponential_mean(&part.of)))),
        _ => None,
    }
}

fn order(station: &Station) -> Result<Order, NoFormula> {
    let several = station
        .classes
        .windows(2)
        .any(|pair| pair[0].weight.total_cmp(&pair[1].weight).is_ne() || pair[0].service != pair[1].service);
    match station.discipline {
        Discipline::Fifo => Ok(Order::Fifo),
        Discipline::Lifo => Ok(Order::Lifo),
        Discipline::ProcessorSharing => Ok(Order::Sharing),
        Discipline::Priority | Discipline::PreemptivePriority | Discipline::CMu if several => {
            Err(NoFormula::Classes)
        }
        Discipline::Priority | Discipline::PreemptivePriority | Discipline::CMu => Ok(Order::Fifo),
        Discipline::ShortestRemaining | Discipline::Gittins => Err(NoFormula::Discipline(station.discipline)),
    }
}

/// Where the order does not know classes, they differ at most in their own service time. What a class with its own
/// law has beyond the mean is left out, as is the waiting time under sharing, which grows with the service time.
fn class_answers(
    station: &Station,
    solution: &Solution,
    response: &Summary,
    waiting: &Summary,
) -> Vec<ClassAnswer> {
    let mean_only =
        |mean_s| Summary { mean_s: Estimate::exact(mean_s), variance_s2: None, quantiles: Vec::new() };
    let answer = |class: &Class| {
        let (response, waiting) = match &class.service {
            None if station.classes.iter().all(|class| class.service.is_none()) => {
                (response.clone(), waiting.clone())
            }
            own => {
                let own_s = own.as_ref().unwrap_or(&station.service).mean_s();
                let stretch = (solution.waiting_s + solution.service_s) / solution.service_s;
                match station.discipline {
                    Discipline::ProcessorSharing => {
                        (mean_only(own_s * stretch), mean_only(own_s * (stretch - 1.0)))
                    }
                    _ => (mean_only(solution.waiting_s + own_s), waiting.clone()),
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
