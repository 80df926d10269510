//! The number of customers that a station needs to settle, and the sections of a run that follow from it.

use kendall_station::{Arrivals, Station};

/// The precision is first checked when each section has at least this many customers.
const FIRST_LOOK: u64 = 512;
/// A run settles within this many relaxation times of the station.
const RELAXATIONS: f64 = 20.0;
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

/// The number of customers that a run needs to forget its empty start: some relaxation times of the station, each of about
/// (c_a² + c_s²)/2 · ρ/(1 − √ρ)² customers in M/M/m (Morse 1958; Cohen 1982, chapter III.7) and by the heavy-traffic
/// scaling elsewhere, and at least those that fill the servers. A station with a limit on its customers relaxes sooner.
pub(super) fn settling_customers(station: &Station) -> u64 {
    let servers = f64::from(station.servers.get());
    let filling = match &station.arrivals {
        Arrivals::Closed { population, .. } => f64::from(*population),
        // The arrivals during one think time.
        Arrivals::Sessions(sessions) => servers + sessions.rate_per_s() * sessions.think.mean_s(),
        _ => servers,
    };
    (RELAXATIONS * relaxation_customers(station).unwrap_or(0.0).max(filling)) as u64
}

/// The shortest and the longest warm-up that is accepted, in customers. Unbounded where the relaxation time is unknown.
pub(super) fn warm_up_bounds(station: &Station) -> (u64, u64) {
    let filling = f64::from(station.servers.get());
    relaxation_customers(station).map_or((0, u64::MAX / 2), |relaxation| {
        let customers = |relaxations: f64| (relaxations * relaxation.max(filling)).ceil() as u64;
        (customers(WARM_UP_RELAXATIONS.0), customers(WARM_UP_RELAXATIONS.1))
    })
}

/// The relaxation time of a station of unlimited capacity, in customers; `None` with a limit.
fn relaxation_customers(station: &Station) -> Option<f64> {
    let Arrivals::Open { gap } = &station.arrivals else { return None };
    let rho = station.offered_utilisation().filter(|_| station.capacity.is_none())?.min(1.0 - 1e-9);
    let variation = (gap.scv() + station.service_overall().scv()) / 2.0;
    Some(variation.clamp(0.0, 1e6) * rho / (1.0 - rho.sqrt()).powi(2))
}
