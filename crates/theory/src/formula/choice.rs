//! The choice of the formula for a station.

use kendall_station::{Arrivals, Discipline, Law, Servers, Station};

use super::approximate::TwoMoments;
use super::classes::matters;
use super::delay::{Delay, Fitted};
use super::premises::{exponential_mean, open_rate, stable};
use super::solution::{Order, Solution, order};
use super::tails::Tails;
use super::{NoFormula, capacity, closed, constant, many, many_phases, renewal, sessions, shortest, single};

/// The solution by the best formula for a station.
pub(super) fn solve(station: &Station) -> Result<Solution, NoFormula> {
    station.validate()?;
    if let Some(condition) = station.conditions.first() {
        return Err(NoFormula::Conditions(condition));
    }
    if let Some((open, _)) = sessions::as_open(station) {
        return solve(&open);
    }
    if let Arrivals::Closed { population, think } = &station.arrivals {
        return closed::solve(station, *population, think);
    }
    let (gap, rate_per_s) = open_rate(&station.arrivals)?;
    if matters(station) {
        return Err(NoFormula::OnlyMeans);
    }
    let order = order(station)?;
    let service = station.service_overall();
    let poisson = exponential_mean(gap).is_some();
    if let Some(capacity) = station.capacity {
        return match poisson {
            true => limited(rate_per_s, service, station.servers.get(), capacity, order),
            false => Err(NoFormula::NeedsPoisson { why: "with limited capacity" }),
        };
    }
    stable(rate_per_s, service.mean_s(), station.servers)?;
    match poisson {
        true => poisson_arrivals(rate_per_s, service, station.servers, order),
        false => other_arrivals(gap, service, station.servers, order),
    }
}

/// Capacity `capacity`, Poisson arrivals.
fn limited(
    rate_per_s: f64,
    service: Law,
    servers: u32,
    capacity: u64,
    order: Order,
) -> Result<Solution, NoFormula> {
    if order == Order::Shortest && capacity > u64::from(servers) {
        return Err(NoFormula::Discipline(Discipline::ShortestRemaining));
    }
    if capacity == u64::from(servers) {
        return Ok(capacity::loss(rate_per_s, service, servers).ordered(order));
    }
    if capacity > capacity::MOST {
        return Err(NoFormula::Room { capacity });
    }
    if exponential_mean(&service).is_some() || order == Order::Sharing {
        return Ok(capacity::solve(rate_per_s, service.mean_s(), servers, capacity).ordered(order));
    }
    Err(NoFormula::Capacity { capacity, law: service.name() })
}

fn poisson_arrivals(
    rate_per_s: f64,
    service: Law,
    servers: Servers,
    order: Order,
) -> Result<Solution, NoFormula> {
    let service_s = service.mean_s();
    let exponential = exponential_mean(&service).is_some();
    if order == Order::Shortest {
        return match servers.get() {
            1 => Ok(shortest::solve(rate_per_s, &service)),
            _ => Err(NoFormula::Discipline(Discipline::ShortestRemaining)),
        };
    }
    if exponential || order == Order::Sharing {
        let solution = many::solve(rate_per_s, service_s, servers.get()).ordered(order);
        let one = exponential && servers.get() == 1 && order == Order::Sharing;
        return Ok(if one { solution.sharing_one_exponential_server(rate_per_s) } else { solution });
    }
    if service.moment(2).is_infinite() {
        return Err(NoFormula::InfiniteVariance { law: service.name() });
    }
    let solution = match &service {
        Law::Constant { .. } => constant::solve(rate_per_s, service_s, servers.get()),
        _ if servers.get() == 1 => single::solve(rate_per_s, service),
        _ => match many_phases::solve(rate_per_s, &service, servers.get()) {
            Some(exact) => exact,
            None => many_servers(rate_per_s, service, servers)?,
        },
    };
    Ok(solution.ordered(order))
}

/// M/G/m.
fn many_servers(rate_per_s: f64, service: Law, servers: Servers) -> Result<Solution, NoFormula> {
    let scv = service.scv();
    let moments = TwoMoments::new(rate_per_s, service.mean_s(), servers, 1.0, scv)?;
    let (source, approximate, waiting_s) = if scv <= 1.0 {
        (
            "M/G/m between M/D/m and M/M/m (Tijms 2003, section 9.6.2)",
            "interpolation by the squared coefficient of variation, mean wait within 0.5 % of exact for Erlang service; P(wait) as of \
             M/M/m, quantiles as if the time of those that wait were exponential",
            moments.interpolation_s(),
        )
    } else {
        (
            "M/G/m by Whitt (1993, equations 2.16 to 2.25)",
            "from two moments, mean wait within 3 % of exact for hyperexponential service of squared coefficient of variation 5.5 at \
             70 % utilisation or more, within 10 % below; P(wait) as of M/M/m, quantiles as if the time of those that wait were \
             exponential",
            moments.whitt_s(),
        )
    };
    Ok(fitted(source, approximate, moments.erlang_c(), waiting_s, rate_per_s, service))
}

/// GI/G/m.
fn other_arrivals(gap: &Law, service: Law, servers: Servers, order: Order) -> Result<Solution, NoFormula> {
    let exponential = exponential_mean(&service).is_some();
    match order {
        Order::Shortest => return Err(NoFormula::NeedsPoisson { why: "with shortest-remaining" }),
        Order::Sharing if !exponential => {
            return Err(NoFormula::NeedsPoisson { why: "with processor-sharing" });
        }
        _ => {}
    }
    let service_s = service.mean_s();
    let memoryless = renewal::solve(gap, service_s, servers.get());
    match memoryless {
        Some(exact) if exponential => {
            let source = exact.source;
            return Ok(Solution { source, ..exact.ordered(order) });
        }
        _ => {}
    }
    let (gap_scv, scv) = (gap.scv(), service.scv());
    for (law, scv) in [(&service, scv), (gap, gap_scv)] {
        if scv.is_infinite() {
            return Err(NoFormula::InfiniteVariance { law: law.name() });
        }
    }
    let moments = TwoMoments::new(1.0 / gap.mean_s(), service_s, servers, gap_scv, scv)?;
    let p_wait = memoryless.map_or_else(|| moments.erlang_c(), |solution| solution.p_wait);
    let (source, waiting_s) = match servers.get() {
        1 => ("GI/G/1 by Kraemer and Langenbach-Belz (1976)", moments.kraemer_langenbach_belz_s()),
        _ => ("GI/G/m by Whitt (1993, equations 2.16 to 2.25)", moments.whitt_s()),
    };
    let approximate = "from two moments of gaps and of service, though the wait depends on more; exact in heavy traffic, overestimates \
                       by 20 % for E2/U/3 at a utilisation of 2/3. P(wait) as with exponential service, quantiles as if the time of \
                       those that wait were exponential";
    Ok(fitted(source, approximate, p_wait, waiting_s, 1.0 / gap.mean_s(), service).ordered(order))
}

/// A solution from a mean wait and the probability of waiting.
fn fitted(
    source: &'static str,
    approximate: &'static str,
    p_wait: f64,
    waiting_s: f64,
    rate_per_s: f64,
    service: Law,
) -> Solution {
    let service_s = service.mean_s();
    let none = waiting_s <= 0.0 || p_wait <= 0.0;
    let delay = match none {
        true => Delay { p_wait: 0.0, service_s, spare: 1.0 },
        false => Delay { p_wait, service_s, spare: p_wait * service_s / waiting_s },
    };
    let variance = delay.variance_s2();
    Solution {
        source,
        approximate: Some(approximate),
        p_wait: delay.p_wait,
        waiting_s: if none { 0.0 } else { waiting_s },
        waiting_variance_s2: Some(variance),
        response_variance_s2: Some(variance + service.moment(2) - service_s * service_s),
        service_s,
        throughput_per_s: rate_per_s,
        lost: 0.0,
        tails: Tails::of(Fitted { delay, service }),
    }
}
