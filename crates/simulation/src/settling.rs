//! The number of customers that a station needs to settle, and the sections of a run that follow from it.

use kendall_station::{Arrivals, Station};

/// The precision is first checked when each section has at least this many customers.
const FIRST_LOOK: u64 = 512;
/// A run settles within this many relaxation times of the station.
const RELAXATIONS: f64 = 20.0;
/// An overloaded station with a limit settles within this many times the customers that fill it.
const FILLINGS: f64 = 5.0;
/// A limit that stands for losses of a network, which keep it from growing, and of which no relaxation time is known.
pub(super) const LOSSES: u64 = u64::MAX;
/// The warm-up is between these two numbers of relaxation times: after the second less than a hundredth of the empty start
/// remains. MSER alone would cut later if a great excursion happens to come early, and never if a lull does, so that its
/// cuts would bias the mean downwards, by 1.5 % in M/M/1 at ρ = 0.9 and 10⁵ customers.
const WARM_UP_RELAXATIONS: (f64, f64) = (2.0, 5.0);

/// The customers of the first sections: all of the run, or few enough for an early check.
pub(super) fn first_section(customers: u64, most_sections: usize, early: bool) -> u64 {
    let mut section_customers = (customers / most_sections as u64).max(1);
    while early && section_customers >= 2 * FIRST_LOOK {
        section_customers /= 2;
    }
    section_customers
}

/// The number of customers that a run needs to forget its empty start: some relaxation times of the station, at least those that fill the
/// servers, and several times those that fill an overloaded station up to its limit.
pub(super) fn settling_customers(station: &Station) -> u64 {
    let servers = f64::from(station.servers.get());
    let filling = match &station.arrivals {
        Arrivals::Closed { population, .. } => f64::from(*population),
        // The arrivals during one think time.
        Arrivals::Sessions(sessions) => servers + sessions.rate_per_s() * sessions.think.mean_s(),
        _ => servers,
    };
    let relaxed = RELAXATIONS * relaxation_customers(station).unwrap_or(0.0).max(filling);
    relaxed.max(FILLINGS * overfilling_customers(station).unwrap_or(0.0)) as u64
}

/// The number of customers with which a station that gets more than it serves reaches its limit K: of each of them, 1 − 1/ρ stay. Close
/// to saturation chance fills it, after some K² customers. `None` for any other station.
fn overfilling_customers(station: &Station) -> Option<f64> {
    let is_known = |limit: &u64| *limit < LOSSES && station.conditions.patience.is_none();
    let limit = station.capacity.filter(is_known)? as f64;
    let rho = station.offered_utilisation().filter(|rho| *rho > 1.0)?;
    Some((limit * rho / (rho - 1.0)).min(limit * limit))
}

/// The shortest and the longest warm-up that is accepted, in customers. Unbounded where the relaxation time is unknown, and with a limit
/// on the customers.
pub(super) fn warm_up_bounds(station: &Station) -> (u64, u64) {
    let filling = f64::from(station.servers.get());
    relaxation_customers(station).filter(|_| station.capacity.is_none()).map_or(
        (0, u64::MAX / 2),
        |relaxation| {
            let customers = |relaxations: f64| (relaxations * relaxation.max(filling)).ceil() as u64;
            (customers(WARM_UP_RELAXATIONS.0), customers(WARM_UP_RELAXATIONS.1))
        },
    )
}

/// The relaxation time of a station, in customers: (c_a² + c_s²)/2 · ρ/(1 + ρ − 2√ρ cos(π/(K + 1))) with a limit of K customers, and without
/// one ρ/(1 − √ρ)² in place of the fraction. Exact for one exponential server (Morse 1958; Cohen 1982, chapter III.7); elsewhere by
/// the scaling of heavy traffic.
fn relaxation_customers(station: &Station) -> Option<f64> {
    let Arrivals::Open { gap } = &station.arrivals else { return None };
    let rho = station.offered_utilisation()?;
    let variation = ((gap.scv() + station.service_overall().scv()) / 2.0).clamp(0.0, 1e6);
    let gap = match station.capacity {
        None => (1.0 - rho.min(1.0 - 1e-9).sqrt()).powi(2),
        Some(LOSSES) => return None,
        Some(limit) => {
            let angle = std::f64::consts::PI / (limit as f64 + 1.0);
            // 1 − cos x = 2 sin²(x/2), which does not cancel.
            (1.0 - rho.sqrt()).powi(2) + 4.0 * rho.sqrt() * libm::sin(angle / 2.0).powi(2)
        }
    };
    Some(variation * rho / gap)
}

#[cfg(test)]
mod tests {
    use kendall_station::{Law, Servers};

    use super::*;

    fn settling(rho: f64, limit: Option<u64>) -> u64 {
        let station = Station::new(Arrivals::poisson(rho), Law::Exponential { mean_s: 1.0 }, Servers::MIN);
        settling_customers(&Station { capacity: limit, ..station })
    }

    #[test]
    fn a_limit_lets_a_station_settle_sooner_but_an_overloaded_one_fills_first() {
        // 20 · 0.9/(1 − √0.9)².
        assert_eq!(settling(0.9, None), 6_835);
        assert_eq!(settling(0.9, Some(1_000_000)), 6_835);
        assert!(settling(0.9, Some(10)) < 1_000);
        // At saturation about 20 · K²/π².
        assert!((5_000..5_600).contains(&settling(1.0, Some(50))), "{}", settling(1.0, Some(50)));
        assert_eq!(settling(1.25, Some(LOSSES)), 20);
        // Of each customer a fifth stays.
        assert_eq!(settling(1.25, Some(16_384)), 5 * 5 * 16_384);
    }
}
