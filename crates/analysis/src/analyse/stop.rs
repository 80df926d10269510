//! How long the station of a load is simulated, so that like is compared with like.

use kendall_evidence::streamed::Warmup;
use kendall_simulation::StopRule;
use kendall_station::{Arrivals, Profile};

use kendall_experiment::{Load, Schedule};

/// A trial of more requests than this is as good as one in a steady state.
const LONGEST_RUN: u64 = 100_000;
/// Requests to simulate in runs, and bounds of their number.
const SIMULATED: u64 = 1_000_000;
const FEWEST_RUNS: u64 = 30;
const MOST_RUNS: u64 = 480;
/// How to simulate a load. An open stream that stops after a number of requests, all of them counted, is simulated as such: that number
/// of requests to an empty server, many times. So are stages, which end too. Others are taken for glimpses of a steady state.
pub(super) fn stop(load: &Load) -> StopRule {
    let open = match &load.schedule {
        Schedule::Rate(_, arrivals) | Schedule::Share(_, arrivals) => {
            matches!(arrivals, Arrivals::Open { .. })
        }
        Schedule::Fixed(Arrivals::Varying(profile)) => return staged(load, profile),
        Schedule::Fixed(Arrivals::Attended(_)) => {
            let customers = load.requests.unwrap_or(SIMULATED).min(SIMULATED);
            return StopRule::Runs { customers, runs: FEWEST_RUNS };
        }
        Schedule::Fixed(_) => false,
    };
    match load.requests {
        Some(customers)
            if open
                && load.warmup == Warmup::Until(0)
                && load.duration.is_none()
                && customers <= LONGEST_RUN =>
        {
            StopRule::Runs { customers, runs: (SIMULATED / customers).clamp(FEWEST_RUNS, MOST_RUNS) }
        }
        _ => StopRule::default(),
    }
}

/// How to simulate stages: to their end, often enough for a precise mean. A count that ends them before is kept to.
fn staged(load: &Load, profile: &Profile) -> StopRule {
    let Some(ends_s) = profile.ends_s() else { return StopRule::default() };
    let expected = profile.expected(load.duration.map_or(ends_s, |time| ends_s.min(time.as_secs_f64())));
    // As many as ever come: a Poisson number exceeds its mean by ten standard deviations once in 10²³ times.
    let most = (expected + 10.0 * expected.sqrt() + 10.0) as u64;
    let customers = load.requests.map_or(most, |requests| requests.min(most));
    StopRule::Runs { customers, runs: (SIMULATED / customers).clamp(FEWEST_RUNS, MOST_RUNS) }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kendall_station::Law;

    use super::*;

    #[test]
    fn a_trial_of_so_many_requests_is_simulated_as_one() {
        const NONE: Warmup = Warmup::Until(0);
        let load = |requests, warmup, schedule| Load {
            schedule,
            requests,
            duration: None,
            warmup,
            timeout: Duration::MAX,
            drain: Duration::ZERO,
            connections: 1,
            timing: kendall_load::Timing::Sleep,
            core: None,
            threads: kendall_experiment::Threads::default(),
        };
        let open = || Schedule::Rate(5.0, Arrivals::constant(1.0));
        assert_eq!(stop(&load(Some(500), NONE, open())), StopRule::Runs { customers: 500, runs: 480 });
        assert_eq!(stop(&load(Some(100_000), NONE, open())), StopRule::Runs { customers: 100_000, runs: 30 });
        let closed =
            Schedule::Fixed(Arrivals::Closed { population: 1, think: Law::Constant { mean_s: 1.0 } });
        let second = Warmup::Until(1_000_000_000);
        for steady in [
            load(None, NONE, open()),
            load(Some(500), second, open()),
            load(Some(500), Warmup::Auto, open()),
            load(Some(500), NONE, closed),
        ] {
            assert_eq!(stop(&steady), StopRule::default());
        }
    }
}
