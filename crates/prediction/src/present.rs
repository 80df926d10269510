//! Service times that depend on the number of requests present.
//!
//! Work that is done once for all that wait, such as waking a thread or reading a table, shortens service in a queue. Threads that contend,
//! or an event loop that polls every connection, lengthen it: where hundreds wait, such a server sustains less than its capacity, and a
//! burst of arrivals or a slow spell may become an overload that lasts.

use kendall_evidence::Visit;
use kendall_stats::random::{Rng, unit};
use rand_distr::{Distribution as _, StandardNormal};

use crate::observed::{Observed, POPULATION_SD, Queue};
use crate::points::interpolated;

/// How many times as long service takes in populations larger than that of the full loads, as drawn: requests present, ascending, and
/// times. Empty without any such population. Where a long queue makes service longer or shorter, populations in between, measured for seconds,
/// show from how many requests on.
pub(crate) fn drawn_queues(observed: &Observed, scv: f64, rng: &mut Rng) -> Vec<(f64, f64)> {
    let Some(first) = observed.queues.first() else { return Vec::new() };
    let (share, noise) = (unit(rng), StandardNormal.sample(rng));
    let longest = first.longer(scv, share, noise);
    let mut times: Vec<_> = observed.full_users.map(|users| (f64::from(users), 1.0)).into_iter().collect();
    let full = observed.full_users.and_then(|users| Some((users, observed.throughput_per_s(users)?)));
    if let Some((full_users, full_per_s)) = full.filter(|_| longest != 1.0) {
        let between = full_users + 1..first.users;
        for (users, per_s) in observed.closed.iter().filter(|population| between.contains(&population.0)) {
            let noise: f64 = StandardNormal.sample(rng);
            let longer = full_per_s / per_s * libm::exp(POPULATION_SD * noise);
            times.push((f64::from(*users), longer.clamp(longest.min(1.0), longest.max(1.0))));
        }
    }
    let queue = |queue: &Queue| (f64::from(queue.users), queue.longer(scv, share, noise));
    times.extend(observed.queues.iter().map(queue));
    times
}

/// Changes the service of visits by the number that they find, at this many servers with a mean service time of `service_s`. `times` has
/// requests present, ascending, and how many times as long their service takes; beyond its ends, as at them. The number present is the
/// work that waits over the mean service time, which no order of service changes.
pub(crate) fn apply(times: &[(f64, f64)], servers: f64, service_s: f64, visits: &mut [Visit]) {
    let (mut waiting_s, mut before_s, mut present, mut longer) = (0.0_f64, 0.0, 0.0_f64, 1.0);
    for visit in visits {
        let busy = present.clamp(1.0, servers.max(1.0));
        waiting_s = (waiting_s - (visit.arrival_s - before_s) * busy).max(0.0);
        before_s = visit.arrival_s;
        present = waiting_s / (service_s * longer);
        longer = interpolated(times, present);
        visit.service_s *= longer;
        waiting_s += visit.service_s;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One server for 100/s, which sustains 80/s where 64 are present, gets 90/s.
    fn visits(burst: usize) -> Vec<Visit> {
        let arrive = |at: usize| Visit {
            arrival_s: at.saturating_sub(burst) as f64 / 90.0,
            service_s: 0.01,
            class: 0,
        };
        (0..4_000).map(arrive).collect()
    }

    #[test]
    fn a_burst_becomes_an_overload_that_lasts() {
        let falls = [(16.0, 1.0), (64.0, 1.25)];
        let work_s = |burst: usize| -> f64 {
            let mut visits = visits(burst);
            apply(&falls, 1.0, 0.01, &mut visits);
            visits.iter().map(|visit| visit.service_s).sum()
        };
        assert!((work_s(8) - 40.0).abs() < 1e-9, "few present change nothing");
        assert!(work_s(100) > 49.0, "{}", work_s(100));
        assert_eq!(interpolated(&falls, 40.0), 1.125);
        assert_eq!(interpolated(&falls, 1000.0), 1.25);
    }
}
