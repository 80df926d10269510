//! Laws that the intervals of every run obey, over synthetic runs of many kinds: independent, in bursts, with stalls, with requests that
//! were given up, and growing.

use kendall_evidence::expect::{Expectation, ExpectationVerdict, Figure, Measure, Side};
use kendall_evidence::streamed::{QuantileSeen, Stream, Streamed, TimesSeen, Warmup};
use kendall_record::{Outcome, RequestRow};
use kendall_station::Law;
use kendall_stats::random::{Purpose, stream};

/// What the responses of a run are like.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Independent,
    /// Runs of slow requests.
    Bursts,
    /// One stall, after which responses fall back in a straight line.
    Stall,
    /// Some were given up.
    GivenUp,
    /// Each takes longer than the one before, so that the number in flight grows.
    Growing,
}

const KINDS: [Kind; 5] = [Kind::Independent, Kind::Bursts, Kind::Stall, Kind::GivenUp, Kind::Growing];

/// The given number of requests, 1 ms apart.
fn run(kind: Kind, requests: u64, seed: u64) -> Streamed {
    let unit = Law::Exponential { mean_s: 1.0 };
    let mut rng = stream(seed, Purpose::Service, 0);
    let mut seen = Stream::new(Warmup::Until(0));
    let (mut end_ns, mut slow) = (0, false);
    for index in 0..requests {
        let due = index as i64 * 1_000_000;
        let drawn_ms = unit.sample(&mut rng);
        slow = if slow { unit.sample(&mut rng) > 0.02 } else { unit.sample(&mut rng) < 0.005 };
        let since_half = index as f64 - requests as f64 / 2.0;
        let time_ms = match kind {
            Kind::Bursts if slow => 50.0 + drawn_ms,
            Kind::Stall if (0.0..300.0).contains(&since_half) => drawn_ms + 300.0 - since_half,
            Kind::Growing => drawn_ms + 0.7 * index as f64,
            _ => drawn_ms,
        };
        let completed = due + 20_000 + (time_ms * 1e6) as i64;
        let is_given_up = kind == Kind::GivenUp && unit.sample(&mut rng) < 0.03;
        let outcome = if is_given_up { Outcome::TimedOut } else { Outcome::Answered };
        end_ns = end_ns.max(completed);
        seen.add(&RequestRow::due(index, due).sent_at(due + 20_000, 4000).ended(outcome, completed));
    }
    seen.end(end_ns);
    seen.seen().unwrap()
}

/// Every run of a few lengths and seeds.
fn each(mut check: impl FnMut(Kind, u64, &Streamed)) {
    for kind in KINDS {
        for requests in [30, 300, 1200, 5000, 20_000] {
            (0..6).for_each(|seed| check(kind, requests, &run(kind, requests, seed)));
        }
    }
}

fn times(seen: &Streamed) -> impl Iterator<Item = &TimesSeen> {
    std::iter::once(&seen.response).chain(&seen.service).chain(&seen.send_lag)
}

#[test]
fn intervals_hold_their_values_ascend_and_are_open_from_one_quantile_on() {
    each(|kind, requests, seen| {
        for times in times(seen) {
            let known = |quantile: &&QuantileSeen| quantile.value_s.is_some() && !quantile.at_least;
            let known: Vec<&QuantileSeen> = times.quantiles.iter().filter(known).collect();
            for quantile in &known {
                let value_s = quantile.value_s.unwrap();
                match quantile.interval_s {
                    Some((low, high)) => {
                        assert!(low <= value_s && value_s <= high, "{kind:?} {requests} {quantile:?}")
                    }
                    // It has no interval because the run is unstable, or says how many requests give it one.
                    None if seen.growth.is_some_and(|growth| growth.unstable) => {}
                    // Its upper end lies among those that were given up, of which none is known.
                    None if times.censored > 0 && quantile.needs.is_none() => {}
                    None => {
                        assert!(quantile.needs.is_some_and(|needs| needs > requests), "{kind:?} {quantile:?}")
                    }
                }
            }
            for pair in known.windows(2) {
                match (pair[0].interval_s, pair[1].interval_s) {
                    (None, Some(_)) => panic!("{kind:?} {requests}: {:?} and then {:?}", pair[0], pair[1]),
                    (Some(one), Some(next)) => {
                        assert!(one.0 <= next.0 && one.1 <= next.1, "{kind:?} {pair:?}")
                    }
                    _ => {}
                }
            }
        }
    });
}

#[test]
fn an_unstable_run_has_no_interval_of_a_time() {
    let mut unstable = 0;
    each(|kind, requests, seen| {
        if !seen.growth.is_some_and(|growth| growth.unstable) {
            return;
        }
        unstable += 1;
        for times in times(seen) {
            let all = times.quantiles.iter().map(|quantile| quantile.interval_s);
            assert!(
                all.chain([times.mean_s.interval]).all(|interval| interval.is_none()),
                "{kind:?} {requests}"
            );
        }
        // Nor is anything expected of it met: only a failure can be sure.
        let expected = Expectation { measure: Measure::Quantile(0.5), side: Side::Below, limit: 1e6 };
        assert_eq!(
            expected.judge(seen.figure(Measure::Quantile(0.5))).verdict,
            ExpectationVerdict::Undecided
        );
        assert!(!matches!(seen.figure(Measure::Mean), Figure::Known(_)));
    });
    assert!(unstable >= 12, "{unstable}");
}

/// Slow requests that follow each other count as few: the interval of such a run is wider than that of as many independent ones.
#[test]
fn requests_that_depend_on_each_other_have_wider_intervals() {
    let width = |times: &TimesSeen, p: f64| {
        let quantile = times.quantile(p).unwrap();
        quantile.interval_s.map_or(f64::INFINITY, |(low, high)| (high - low) / quantile.value_s.unwrap())
    };
    for seed in 0..6 {
        let (free, bursts) = (run(Kind::Independent, 20_000, seed), run(Kind::Bursts, 20_000, seed));
        assert!(width(&bursts.response, 0.75) > 2.0 * width(&free.response, 0.75), "{seed}");
        assert!(bursts.response.mean_s.half_width() > 2.0 * free.response.mean_s.half_width(), "{seed}");
    }
}
