//! The inverses of Erlang's two formulas: the number of servers for a load.

use kendall_station::Servers;

use super::erlang::erlang_b;
use super::many::Many;
use super::tails::Distributions;

/// The fewest servers with which at most the share `target` of the requests of an M/M/m station waits. `load` is
/// λ·E\[S\]. `None` if that is beyond the largest number of servers a station may have.
pub fn servers_for_p_wait(load: f64, target: f64) -> Option<Servers> {
    let mut blocked = 1.0;
    for servers in 1..=u32::MAX {
        let m = f64::from(servers);
        blocked = load * blocked / (m + load * blocked);
        if load < m && m * blocked / (m - load + load * blocked) <= target {
            return Servers::new(servers);
        }
    }
    None
}

/// The fewest servers with which the quantile `p` of the response time of an M/M/m station is at most `target_s`.
/// `None` if no number of servers is enough, because service alone takes longer.
pub fn servers_for_response(rate_per_s: f64, service_s: f64, p: f64, target_s: f64) -> Option<Servers> {
    if libm::exp(-target_s / service_s) > 1.0 - p {
        return None;
    }
    let first = (rate_per_s * service_s).floor() as u32 + 1;
    let enough = |servers: u32| Many::new(rate_per_s, service_s, servers).response(target_s) <= 1.0 - p;
    (first..=u32::MAX).find(|&servers| enough(servers)).and_then(Servers::new)
}

/// The fewest servers without a queue that lose at most the share `target` of the requests. `load` is λ·E\[S\]. `None`
/// if that is beyond the largest number of servers a station may have.
pub fn servers_for_loss(load: f64, target: f64) -> Option<Servers> {
    let mut blocked = 1.0;
    for servers in 1..=u32::MAX {
        blocked = load * blocked / (f64::from(servers) + load * blocked);
        if blocked <= target {
            return Servers::new(servers);
        }
    }
    None
}

/// The load λ·E\[S\] of which the given servers without a queue lose the share `target`, between 0 and 1.
pub fn load_for_loss(servers: Servers, target: f64) -> f64 {
    let (mut low, mut high) = (0.0, f64::from(servers.get()));
    while erlang_b(servers.get(), high) < target && high < f64::MAX / 2.0 {
        high *= 2.0;
    }
    while high - low > 1e-14 * high {
        let middle = f64::midpoint(low, high);
        if erlang_b(servers.get(), middle) < target { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::super::erlang::erlang_c;
    use super::*;

    #[test]
    fn the_inverse_is_the_first_that_meets_the_target() {
        for (load, target) in [(0.3, 0.5), (5.0, 0.01), (100.0, 0.2)] {
            let servers = servers_for_p_wait(load, target).unwrap().get();
            assert!(erlang_c(servers, load) <= target);
            assert!(f64::from(servers - 1) <= load || erlang_c(servers - 1, load) > target);
        }
        assert_eq!(servers_for_response(1.0, 1.0, 0.95, 2.0), None);
    }

    #[test]
    fn the_inverses_of_loss_meet() {
        for (servers, target) in [(1u32, 0.5), (10, 0.01), (300, 1e-4)] {
            let load = load_for_loss(Servers::new(servers).unwrap(), target);
            assert!((erlang_b(servers, load) / target - 1.0).abs() < 1e-10);
            assert_eq!(servers_for_loss(load * (1.0 - 1e-9), target).unwrap().get(), servers);
            assert_eq!(servers_for_loss(load * (1.0 + 1e-9), target).unwrap().get(), servers + 1);
        }
    }
}
