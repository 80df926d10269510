//! Throughput that falls as requests accumulate: threads that contend, or an event loop that polls every connection.
//!
//! Where hundreds wait, such a server sustains less than its capacity, and a burst of arrivals or a slow spell may become an overload
//! that lasts.

use kendall_evidence::Visit;
use kendall_stats::random::{Rng, unit};
use rand_distr::{Distribution as _, StandardNormal};

use crate::observed::{Observed, Queue};
use crate::points::interpolated;

/// How many times as long service takes, by the number of requests present, beyond the population that measured the capacity.
#[derive(Clone, Debug)]
pub(crate) struct Fall {
    /// Requests present, ascending, and how many times as long their service takes: 1 with the population that measured the capacity.
    points: Vec<(f64, f64)>,
}

impl Fall {
    /// Drawn from what long queues measured, for service times of this squared coefficient of variation. `None` without any.
    pub(crate) fn drawn(observed: &Observed, scv: f64, rng: &mut Rng) -> Option<Self> {
        let usual = (f64::from(observed.full_users?), 1.0);
        let (share, noise) = (unit(rng), StandardNormal.sample(rng));
        let point = |queue: &Queue| (f64::from(queue.users), queue.longer(scv, share, noise));
        let points: Vec<_> = std::iter::once(usual).chain(observed.queues.iter().map(point)).collect();
        (points.len() > 1).then_some(Self { points })
    }

    /// Lengthens the service of visits that find many others, at this many servers with a mean service time of `service_s`. The number
    /// present is the work that waits over the mean service time, which no order of service changes. Larger populations than measured
    /// take as long as the largest.
    pub(crate) fn apply(&self, servers: f64, service_s: f64, visits: &mut [Visit]) {
        let (mut waiting_s, mut before_s, mut times) = (0.0_f64, 0.0, 1.0);
        for visit in visits {
            waiting_s = (waiting_s - (visit.arrival_s - before_s) * servers).max(0.0);
            before_s = visit.arrival_s;
            times = interpolated(&self.points, waiting_s / (service_s * times));
            visit.service_s *= times;
            waiting_s += visit.service_s;
        }
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
        let fall = Fall { points: vec![(16.0, 1.0), (64.0, 1.25)] };
        let work_s = |burst: usize| -> f64 {
            let mut visits = visits(burst);
            fall.apply(1.0, 0.01, &mut visits);
            visits.iter().map(|visit| visit.service_s).sum()
        };
        assert!((work_s(8) - 40.0).abs() < 1e-9, "few present change nothing");
        assert!(work_s(100) > 49.0, "{}", work_s(100));
        assert_eq!(interpolated(&fall.points, 40.0), 1.125);
        assert_eq!(interpolated(&fall.points, 1000.0), 1.25);
    }
}
