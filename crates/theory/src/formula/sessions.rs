//! Sessions at a station, as an open network: a served customer thinks, at a station without a queue, and returns, or leaves.
//!
//! In such a network of product form each station behaves as if it were alone, with Poisson arrivals at the total rate of requests,
//! λ·E\[k\] (Jackson 1963; Baskett, Chandy, Muntz and Palacios 1975), and an arrival sees the long-run distribution (Lavenberg and
//! Reiser 1980; Sevcik and Mitrani 1981). The law of thinking does not matter, nor that of the number of requests, which classes of
//! a session can represent.

use kendall_station::{Arrivals, Knows, Sessions, Station};

use super::premises::exponential_mean;

pub(super) const SOURCE: &str = "open network with feedback through thinking, of product form (Jackson 1963; Baskett, Chandy, Muntz \
     and Palacios 1975)";

/// The same station with a Poisson stream of the same rate, and the reason why that is only an approximation, if it is one. `None`
/// for other arrivals.
pub(super) fn as_open(station: &Station) -> Option<(Station, Option<&'static str>)> {
    let Arrivals::Sessions(sessions) = &station.arrivals else { return None };
    let open = Station { arrivals: Arrivals::poisson(sessions.rate_per_s()), ..station.clone() };
    Some((open, odd(station, sessions)))
}

/// The condition that keeps the network from product form.
fn odd(station: &Station, sessions: &Sessions) -> Option<&'static str> {
    let memoryless = exponential_mean(&station.service_overall()).is_some();
    // A discipline that uses sizes or classes.
    let blind = station.discipline.knows() == Knows::Nothing
        || (station.classes.is_empty() && station.discipline.knows() != Knows::Size);
    if exponential_mean(&sessions.gap).is_none() {
        Some("requests of the sessions taken as a Poisson stream, though sessions do not begin as one")
    } else if station.capacity.is_some() {
        Some(
            "requests of the sessions taken as a Poisson stream, though rejected ones come back after thinking",
        )
    } else if station.discipline.shares() || memoryless && blind {
        None
    } else {
        Some(
            "requests of the sessions taken as a Poisson stream, though service is not exponential or its order depends on sizes or \
            classes",
        )
    }
}
