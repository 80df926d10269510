//! What a stream of rows says, beside what all rows together say, and how often its intervals hold.

use std::thread;

use kendall_evidence::expect::{Expectation, ExpectationVerdict, Figure, Measure};
use kendall_evidence::streamed::{Stream, Streamed, Warmup};
use kendall_evidence::{Score, Trial, client_side};
use kendall_record::{Outcome, RequestRow};
use kendall_simulation::{StopRule, Traced, processors, simulate_traced};
use kendall_station::{Arrivals, Law, Servers, Station};

const SECOND_NS: i64 = 1_000_000_000;

fn row(index: u64, due_ns: i64, completed_ns: Option<i64>, outcome: Outcome) -> RequestRow {
    RequestRow {
        class: (index % 3) as u32,
        port: 1,
        sent: completed_ns.map(|_| due_ns + 20_000),
        completed: completed_ns,
        outcome,
        bytes_out: 1,
        bytes_in: 1,
        ..RequestRow::due(index, due_ns)
    }
}

/// A run of M/M/1 at 0.8 with a service of 1 ms, as rows in the order in which they ended.
fn simulated(customers: u64, seed: u64) -> Vec<RequestRow> {
    let service = Law::Exponential { mean_s: 0.001 };
    let station = Station::new(Arrivals::poisson(800.0), service, Servers::new(1).unwrap());
    let mut rows = Vec::new();
    let ns = |time_s: f64| (time_s * 1e9) as i64;
    let mut sink = |one: &Traced| {
        let completed = Some(ns(one.departure_s));
        rows.push(row(one.index, ns(one.arrival_s), completed, Outcome::Answered));
    };
    simulate_traced(&station, StopRule::customers(customers), seed, &mut sink).unwrap();
    rows.sort_by_key(|row| row.completed);
    rows
}

fn streamed(rows: &[RequestRow], warmup: Warmup) -> Streamed {
    ended(rows, warmup).seen().unwrap()
}

fn ended(rows: &[RequestRow], warmup: Warmup) -> Stream {
    let mut stream = Stream::new(warmup);
    rows.iter().for_each(|row| stream.add(row));
    stream.end(rows.iter().filter_map(|row| row.completed).max().unwrap());
    stream
}

/// The histogram is good to 0.1 %, and bins of time have other ends than the window of the rows.
#[test]
fn a_stream_says_what_its_rows_say() {
    let rows = simulated(60_000, 4);
    let trial = Trial { rows: &rows, warmup_ns: 2 * SECOND_NS };
    let (by_rows, seen) = (client_side(&[trial]).unwrap(), streamed(&rows, Warmup::Until(2 * SECOND_NS)));
    let near = |a: f64, b: f64, error: f64| assert!((a / b - 1.0).abs() < error, "{a} {b}");
    assert_eq!(seen.requests, rows.iter().filter(|row| row.scheduled >= 2 * SECOND_NS).count() as u64);
    near(seen.response.mean_s.value, by_rows.response.mean_s.value, 1e-9);
    near(seen.response.variance_s2.unwrap(), by_rows.response.variance_s2.unwrap(), 1e-6);
    for quantile in &by_rows.response.quantiles {
        near(seen.response.quantile(quantile.p).unwrap().value_s.unwrap(), quantile.value_s.value, 0.002);
    }
    near(seen.throughput_per_s.unwrap().value, by_rows.throughput_per_s.value, 0.01);
    near(seen.in_flight.unwrap().value, by_rows.in_system.value, 0.01);
    near(seen.response.mean_s.half_width(), by_rows.response.mean_s.half_width(), 0.5);
    assert_eq!((seen.lost.value, seen.errors.value), (0.0, 0.0));
    assert!(!seen.growth.unwrap().unstable);
    // Of the sums of each class nothing is lost.
    let end_ns = rows.iter().filter_map(|row| row.completed).max().unwrap();
    let classes = [("a", 1.0), ("b", 2.0), ("c", 3.0)];
    let by_stream = ended(&rows, Warmup::Until(2 * SECOND_NS)).score(classes);
    assert_eq!(by_stream, Score::new(&trial, end_ns, classes));
    // Response time is lag and service time.
    let (lag, service) = (seen.send_lag.unwrap(), seen.service.unwrap());
    // A few answers come sooner than that lag here.
    near(lag.mean_s.value + service.mean_s.value, seen.response.mean_s.value, 1e-4);
    near(lag.quantile(0.99).unwrap().value_s.unwrap(), 20e-6, 0.002);
}

/// Response times of M/M/1 are exponential, with the mean 1/(µ − λ), so that every quantile is known. 120 runs of 25,000
/// requests; were the true coverage 95 %, fewer than 105 hits would come in one of 2000 tests. The mean's intervals are not to be
/// too wide: that all of them hold would come once in 500. Those of quantiles are made to hold at least as often.
#[test]
fn intervals_hold_as_often_as_they_say() {
    const RUNS: u64 = 120;
    let mean_s = 1.0 / (1000.0 - 800.0);
    let quantiles = [0.5, 0.9, 0.99];
    let holds = |seed: u64| {
        let seen = streamed(&simulated(25_000, seed), Warmup::Until(0));
        let of = |p: f64| {
            let (low, high) = seen.response.quantile(p).unwrap().interval_s.unwrap_or((0.0, f64::INFINITY));
            let exact_s = -mean_s * (1.0 - p).ln();
            (low..=high).contains(&exact_s)
        };
        let mean = seen.response.mean_s.contains(mean_s);
        [mean, of(quantiles[0]), of(quantiles[1]), of(quantiles[2])].map(u64::from)
    };
    let threads = processors().get() as u64;
    let hits = thread::scope(|scope| {
        let part = |first: u64| {
            let each = (first..RUNS).step_by(threads as usize).map(holds);
            each.fold([0; 4], |sum, one| std::array::from_fn(|i| sum[i] + one[i]))
        };
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        let parts = parts.into_iter().map(|part| part.join().unwrap());
        parts.fold([0u64; 4], |sum, one| std::array::from_fn(|i| sum[i] + one[i]))
    });
    assert!((105..RUNS).contains(&hits[0]) && hits.iter().all(|&hits| hits >= 105), "of {RUNS}: {hits:?}");
}

#[test]
fn no_quantile_is_told_without_requests_enough() {
    let rows: Vec<RequestRow> = (0..298)
        .map(|i| row(i, i as i64 * 1_000_000, Some(i as i64 * 1_000_000 + 500_000), Outcome::Answered))
        .collect();
    let seen = streamed(&rows, Warmup::Until(0));
    let p99 = seen.response.quantile(0.99).unwrap();
    assert_eq!((p99.value_s, p99.needs), (None, Some(299)));
    assert!(seen.response.quantile(0.95).unwrap().value_s.is_some());
    assert!(
        matches!(seen.figure(Measure::Quantile(0.99)), Figure::Unknown { why, .. } if why.contains("299"))
    );
}

/// 1,000 requests a second for 8 s; the server stalls for the third of them, and then answers at once.
#[test]
fn a_stall_is_in_the_quantiles_as_arithmetic_says() {
    let stall = 3 * SECOND_NS..4 * SECOND_NS;
    let of = |index: u64| {
        let due = index as i64 * 1_000_000 + 500_000;
        let answered = if stall.contains(&due) { stall.end } else { due } + 100_000;
        row(index, due, Some(answered), Outcome::Answered)
    };
    let mut rows: Vec<RequestRow> = (0..8000).map(of).collect();
    rows.sort_by_key(|row| row.completed);
    let seen = streamed(&rows, Warmup::Until(0));
    for (p, exact_s) in [(0.9, 0.2), (0.95, 0.6), (0.99, 0.92), (0.999, 0.992)] {
        let value_s = seen.response.quantile(p).unwrap().value_s.unwrap();
        assert!((value_s / exact_s - 1.0).abs() < 0.01, "{p}: {value_s}");
    }
    // One stall is one event: its tail has no interval that could be trusted.
    let p99 = seen.response.quantile(0.99).unwrap();
    assert!(p99.interval_s.is_none() && p99.needs.unwrap() > 8000, "{p99:?}");
    let p999 = seen.response.quantile(0.999).unwrap();
    assert!(p999.interval_s.is_none() && p999.needs >= p99.needs, "{p999:?}");
    let worst = seen.series.bins.iter().map(|bin| bin.in_flight).fold(0.0, f64::max);
    assert!((900.0..=1001.0).contains(&worst), "{worst}");
}

#[test]
fn what_was_given_up_makes_lower_bounds() {
    let of = |i: u64| {
        let due = i as i64 * 1_000_000;
        match i % 100 {
            // 2 % are given up after a second.
            0 | 50 => row(i, due, Some(due + SECOND_NS), Outcome::TimedOut),
            _ => row(i, due, Some(due + 1_000_000), Outcome::Answered),
        }
    };
    let rows: Vec<RequestRow> = (0..5000).map(of).collect();
    let seen = streamed(&rows, Warmup::Until(0));
    assert_eq!((seen.response.requests, seen.response.censored), (5000, 100));
    assert!((seen.response.mean_s.value - (0.98 * 0.001 + 0.02)).abs() < 1e-6);
    let quantile = |p| *seen.response.quantile(p).unwrap();
    assert!(!quantile(0.95).at_least && (quantile(0.95).value_s.unwrap() / 0.001 - 1.0).abs() < 0.002);
    assert!(quantile(0.99).at_least && (quantile(0.99).value_s.unwrap() - 1.0).abs() < 0.002);
    let judged = |text: &str| {
        let expected: Expectation = text.parse().unwrap();
        expected.judge(seen.figure(expected.measure)).verdict
    };
    assert_eq!(judged("p99<500ms"), ExpectationVerdict::Failed);
    assert_eq!(judged("p99<2s"), ExpectationVerdict::Undecided);
    assert_eq!(judged("p95<2ms"), ExpectationVerdict::Met);
    assert_eq!(judged("errors<1%"), ExpectationVerdict::Failed);
    assert_eq!(judged("errors<5%"), ExpectationVerdict::Met);
}

/// The interval of p99 of 10,000 independent requests reaches from the 9,880th to the 9,920th. The first quantile is of a run in which
/// the 9,896th and all slower ones were given up, the second of one in which the 9,906th were.
#[test]
fn a_quantile_near_the_given_up_requests_is_undecided() {
    let judged = |given_up: u64, text: &str| {
        let of = |i: u64| {
            let due = i as i64 * 1_000_000;
            match i * given_up % 10_000 < given_up {
                true => row(i, due, Some(due + SECOND_NS), Outcome::TimedOut),
                false => row(i, due, Some(due + 1_000_000), Outcome::Answered),
            }
        };
        let seen = streamed(&(0..10_000).map(of).collect::<Vec<_>>(), Warmup::Until(0));
        assert_eq!(seen.response.censored, given_up);
        let expected: Expectation = text.parse().unwrap();
        (*seen.response.quantile(0.99).unwrap(), expected.judge(seen.figure(expected.measure)))
    };
    let (p99, found) = judged(105, "p99<50ms");
    assert!(p99.at_least && (p99.value_s.unwrap() / 0.001 - 1.0).abs() < 0.002, "{p99:?}");
    assert_eq!(found.verdict, ExpectationVerdict::Undecided);
    assert_eq!(judged(105, "p99<0.5ms").1.verdict, ExpectationVerdict::Failed);
    let (p99, found) = judged(95, "p99<50ms");
    assert!(!p99.at_least && p99.interval_s.is_none() && p99.needs.is_none(), "{p99:?}");
    let why = "the upper end of its interval lies among the 95 requests that were given up";
    assert_eq!((found.verdict, found.why.as_deref()), (ExpectationVerdict::Undecided, Some(why)));
}

/// Those still out at the end took at least until then, also where there are more of them than are kept.
#[test]
fn what_is_still_out_counts_until_the_end() {
    let mut stream = Stream::new(Warmup::Until(0));
    (0..1000)
        .for_each(|i| stream.add(&row(i, i as i64 * 1000, Some(i as i64 * 1000 + 900), Outcome::Answered)));
    (1000..2000).for_each(|i| stream.add(&row(i, i as i64 * 1000, None, Outcome::Unanswered)));
    stream.end(10 * SECOND_NS);
    let seen = stream.seen().unwrap();
    let p99 = seen.response.quantile(0.99).unwrap();
    assert!(p99.at_least && (p99.value_s.unwrap() / 10.0 - 1.0).abs() < 0.001, "{p99:?}");
    assert_eq!((seen.lost.value, seen.response.censored), (0.5, 1000));
}

/// However many requests come, sections and bins stay bounded: the second half costs no more memory than the first. The cut of the
/// warm-up is found, and a run that grows is distinguished from one that does not.
#[test]
fn the_start_is_cut_where_it_differs_and_growth_is_seen() {
    let run = |response_ns: &dyn Fn(u64) -> i64| -> Vec<RequestRow> {
        let of = |i: u64| {
            let due = i as i64 * 1_000_000;
            let noise = (i * 7919 % 1000) as i64 * 500;
            row(i, due, Some(due + response_ns(i) + noise), Outcome::Answered)
        };
        (0..20_000).map(of).collect()
    };
    // The first two seconds take ten times as long.
    let warming = run(&|i| if i < 2000 { 10_000_000 } else { 1_000_000 });
    let seen = streamed(&warming, Warmup::Auto);
    let cut_s = seen.warmup.suggested_s.unwrap();
    assert!((1.8..10.0).contains(&cut_s), "{cut_s}");
    assert!(seen.warmup.used_s >= cut_s && seen.warmup.used_s < cut_s + 0.5, "{:?}", seen.warmup);
    assert!((seen.response.mean_s.value / 0.001_25 - 1.0).abs() < 0.01, "{:?}", seen.response.mean_s);
    assert!(!seen.growth.unwrap().unstable);
    let growing = run(&|i| i as i64 * 100_000);
    let seen = streamed(&growing, Warmup::Auto);
    assert!(seen.growth.unwrap().unstable);
    assert_eq!((seen.warmup.suggested_s, seen.warmup.used_s), (None, 0.0));
    // Its times depend on how long it lasts: they have no interval, and refute a limit that lies below them.
    assert!(seen.response.mean_s.interval.is_none());
    assert!(seen.response.quantiles.iter().all(|quantile| quantile.interval_s.is_none()));
    for (limit, verdict) in [
        ("p99<1s", ExpectationVerdict::Failed),
        ("mean<0.5s", ExpectationVerdict::Failed),
        ("p99<60s", ExpectationVerdict::Undecided),
    ] {
        let expected: Expectation = limit.parse().unwrap();
        assert_eq!(expected.judge(seen.figure(expected.measure)).verdict, verdict, "{limit}");
    }
}

#[test]
fn a_wanted_precision_says_how_many_more_it_takes() {
    let mut stream = Stream::new(Warmup::Until(0));
    simulated(100_000, 9).iter().for_each(|row| stream.add(row));
    let found = stream.precision(Measure::Mean).unwrap();
    assert!(found.requests > 99_000 && (0.01..0.15).contains(&found.relative), "{found:?}");
    assert_eq!(found.missing(found.relative * 1.01), 0);
    // Half as wide takes four times as many.
    let missing = found.missing(found.relative / 2.0) as f64;
    assert!((missing / (3.0 * found.requests as f64) - 1.0).abs() < 1e-3, "{missing}");
    assert!(stream.precision(Measure::Quantile(0.99)).unwrap().relative > found.relative / 2.0);
    assert_eq!(stream.precision(Measure::Errors), None);
}

/// Wild rows are counted somewhere, and nothing panics.
#[test]
fn wild_instants_do_no_harm() {
    let mut stream = Stream::new(Warmup::Auto);
    for (index, due, completed) in
        [(u64::MAX, 0, Some(5)), (0, -5, Some(-10)), (7, 1 << 60, Some(1 << 61)), (8, 3, None)]
    {
        stream.add(&row(index, due, completed, Outcome::Wrong));
    }
    stream.end(1 << 61);
    let seen = stream.seen().unwrap();
    assert_eq!(seen.requests, 4);
    assert!(seen.series.bins.len() <= 2048);
}
