//! Divisible requests: all servers on one request compared with one server on each, and forks whose parts are queued
//! separately and joined.

use kendall_station::{Answer, Arrivals, Servers, Station};

use super::premises::{open_rate, stable};
use super::{NoFormula, formula};

/// The two ways to use the servers of a station with divisible requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// The answer if all servers serve one request after the other: one server with the service time S·(1 + s(m − 1))/m.
    pub together: Result<Answer, NoFormula>,
    /// The answer if each request is served by one server: the unchanged station.
    pub apart: Result<Answer, NoFormula>,
    /// The rate, in 1/s, from which on undivided requests are better; `None` if one way is always better.
    pub crossover_per_s: Option<f64>,
}

/// Whether the requests of a station should be divided among all its servers. `overhead` is the share s of a request's
/// work that each further server adds to it, zero or more: for a uniform search for a single position, each of m servers
/// searches the m-th part and all stop when one has found it, and s is 0.
///
/// # Errors
/// Fails if the arrivals are not an open stream or the station is not valid. If one way is unstable, its answer is the
/// error.
pub fn split(station: &Station, overhead: f64) -> Result<Split, NoFormula> {
    station.validate()?;
    let (gap, _) = open_rate(&station.arrivals)?;
    let m = f64::from(station.servers.get());
    let factor = (1.0 + overhead * (m - 1.0)) / m;
    let mut fast =
        Station { servers: Servers::MIN, service: station.service.scaled(factor), ..station.clone() };
    for class in &mut fast.classes {
        class.service = class.service.as_ref().map(|law| law.scaled(factor));
    }
    let mean_s = |of: &Station, rate_per_s: f64| {
        let arrivals = Arrivals::Open { gap: gap.with_mean(1.0 / rate_per_s) };
        formula(&Station { arrivals, ..of.clone() })
            .map_or(f64::INFINITY, |answer| answer.response.mean_s.value)
    };
    let service_s = station.service_overall().mean_s();
    let divided_is_better = |rate_per_s: f64| mean_s(&fast, rate_per_s) <= mean_s(station, rate_per_s);
    // From nearly no load to nearly the capacity of undivided requests.
    let (mut low, mut high) = (1e-6 * m / service_s, (1.0 - 1e-6) * m / service_s);
    let crosses = service_s > 0.0 && divided_is_better(low) && !divided_is_better(high);
    while crosses && high - low > 1e-9 * high {
        let middle = f64::midpoint(low, high);
        if divided_is_better(middle) { low = middle } else { high = middle }
    }
    let crossover_per_s = crosses.then_some(high);
    Ok(Split { together: formula(&fast), apart: formula(station), crossover_per_s })
}

/// The mean response time of fork–join, in s: each request is forked into `parts` tasks with exponential service of mean
/// `service_s`, one for each of as many servers with their own queues, and is answered when all are. Exact for one and
/// two parts (Flatto and Hahn 1984); above, the approximation of Nelson and Tantawi (1988), within 5 % of simulation for
/// up to 32 parts, as they say.
///
/// # Errors
/// Fails where the utilisation is 1 or more.
pub fn fork_join_response_s(rate_per_s: f64, service_s: f64, parts: Servers) -> Result<f64, NoFormula> {
    stable(rate_per_s, service_s, Servers::MIN)?;
    let rho = rate_per_s * service_s;
    let one_s = service_s / (1.0 - rho);
    if parts == Servers::MIN {
        return Ok(one_s);
    }
    let two_s = (12.0 - rho) / 8.0 * one_s;
    let ratio = harmonic(parts, 1) / 1.5;
    Ok((ratio + 4.0 * rho / 11.0 * (1.0 - ratio)) * two_s)
}

/// The mean response time of split–merge, in s: as fork–join, but the next request is forked only when all parts of the
/// one before are done, so that it is M/G/1 whose service is the longest of `parts` exponential times.
///
/// # Errors
/// Fails where it is unstable, which it is well before fork–join: at λ·E\[S\] = 1/(1 + 1/2 + … + 1/k).
pub fn split_merge_response_s(rate_per_s: f64, service_s: f64, parts: Servers) -> Result<f64, NoFormula> {
    // The longest of k is a sum of exponential times of the rates µ, 2µ, …, kµ.
    let mean_s = service_s * harmonic(parts, 1);
    stable(rate_per_s, mean_s, Servers::MIN)?;
    let second = service_s * service_s * harmonic(parts, 2) + mean_s * mean_s;
    Ok(mean_s + rate_per_s * second / (2.0 * (1.0 - rate_per_s * mean_s)))
}

/// 1 + 1/2^power + … + 1/k^power.
fn harmonic(k: Servers, power: i32) -> f64 {
    (1..=k.get()).rev().map(|i| f64::from(i).powi(-power)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::Law;

    fn station(rate_per_s: f64, service: Law, servers: u32) -> Station {
        Station::new(Arrivals::poisson(rate_per_s), service, Servers::new(servers).unwrap())
    }

    /// M/M/1 with four times the speed has a quarter of the response time at the same utilisation; with overhead it
    /// saturates earlier, and both take the same time at the crossover.
    #[test]
    fn dividing_pays_until_its_overhead_costs_more() {
        let exponential = Law::Exponential { mean_s: 1.0 };
        let free = split(&station(2.0, exponential.clone(), 4), 0.0).unwrap();
        assert!((free.together.unwrap().response.mean_s.value - 0.5).abs() < 1e-12);
        assert_eq!(free.crossover_per_s, None);
        let costly = split(&station(2.0, exponential.clone(), 4), 0.1).unwrap();
        let at = split(&station(costly.crossover_per_s.unwrap(), exponential, 4), 0.1).unwrap();
        let (a, b) = (at.together.unwrap().response.mean_s.value, at.apart.unwrap().response.mean_s.value);
        assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    }

    #[test]
    fn an_unstable_way_is_an_error() {
        let found = split(&station(3.5, Law::Constant { mean_s: 1.0 }, 4), 0.2).unwrap();
        assert!(matches!(found.together, Err(NoFormula::Unstable { .. })));
        assert!(found.apart.is_ok());
    }

    /// Joining costs at least the time of one part and at most that of parts in sequence.
    #[test]
    fn fork_join_lies_between_its_bounds() {
        for parts in [1, 2, 3, 8, 32] {
            let parts = Servers::new(parts).unwrap();
            for rho in [0.01, 0.1, 0.2] {
                let joined = fork_join_response_s(rho, 1.0, parts).unwrap();
                assert!(joined >= 1.0 / (1.0 - rho) - 1e-12);
                assert!(joined <= split_merge_response_s(rho, 1.0, parts).unwrap() + 1e-12, "{parts} {rho}");
            }
            // Without load it is the longest of the parts.
            let idle = fork_join_response_s(1e-12, 1.0, parts).unwrap();
            assert!((idle / harmonic(parts, 1) - 1.0).abs() < 1e-9);
        }
    }
}
