use std::collections::BTreeMap;

use kendall_load::{Dispersion, Lag, Little, Sends, ThreadFigures, ThreadUse};
use kendall_station::Estimate;
use kendall_stats::random::{Purpose, stream};

use super::*;
use crate::disturbance::{Disturbance, ForeignProgram, Stalls};

/// A run of 5,000 requests per second for 10 s about which nothing is wrong.
pub(super) fn clean(gap: &Law) -> RunSummary {
    let mut rng = stream(1, Purpose::Trial, 0);
    let gaps_ns = (0..4096).map(|_| (gap.sample(&mut rng) * 1e9) as u64).collect();
    let dispersion =
        |window_s: f64| Dispersion { window_s, windows: (10.0 / window_s) as u64, index: gap.scv() };
    RunSummary {
        start_ns: 0,
        wall_s: 10.0,
        sending_s: 10.0,
        sent: 50_000,
        ended: [50_000, 0, 0, 0, 0],
        statuses: BTreeMap::new(),
        lag: Lag { p50_ns: 9_000, p99_ns: 32_000, max_ns: 400_000 },
        send_lag: Lag { p50_ns: 9_000, p99_ns: 32_000, max_ns: 400_000 },
        lag_share: LagShare::default(),
        waited_for_connection: 0,
        turned_away: 0,
        wait_for_connection: Lag::default(),
        connections_opened: 12,
        own_failures: 0,
        refused_because: None,
        max_in_flight: 12,
        sends: Sends {
            count: 50_000,
            per_s: 5000.4,
            due_per_s: 5000.0,
            gap_cv: gap.scv().sqrt(),
            dispersion: [0.001, 0.01, 0.1].map(dispersion).into(),
            gaps_ns,
        },
        little: Little { in_system_s: 25.0, responses_s: 25.001 },
        generator_cpu_s: 0.6,
        thread: ThreadUse { run_queue_s: Some(0.02), ..ThreadUse::default() },
        threads: Vec::new(),
        agents: Vec::new(),
    }
}

/// The verdict on a run that was not watched.
fn judge(run: &RunSummary, arrivals: &Arrivals) -> GeneratorVerdict {
    super::judge(run, arrivals, None, None)
}

pub(super) fn poisson() -> Arrivals {
    Arrivals::poisson(5000.0)
}

pub(super) fn exponential() -> Law {
    Law::Exponential { mean_s: 2e-4 }
}

#[test]
fn a_clean_run_is_trustworthy_and_says_by_what() {
    let verdict = judge(&clean(&exponential()), &poisson());
    assert_eq!(verdict.trust, Trust::Trustworthy, "{verdict:?}");
    assert_eq!(
        verdict.headline(),
        "Trustworthy: sent on schedule (99 % within 32.0 µs, 0 % of the response), the generator used 6.0 % of a core, gaps as asked, \
         Little’s law holds."
    );
    assert!(verdict.checks.iter().all(|check| check.held == Some(true)), "{verdict:?}");
    let constant = judge(&clean(&Law::Constant { mean_s: 2e-4 }), &Arrivals::constant(5000.0));
    assert_eq!(constant.trust, Trust::Trustworthy, "{constant:?}");
}

#[test]
fn failed_requests_come_first() {
    let run = |ended: [u64; 5]| RunSummary {
        ended,
        refused_because: Some("status 503".into()),
        ..clean(&exponential())
    };
    let headline = |run: &RunSummary| judge(run, &poisson()).headline_of(run);
    assert!(headline(&run([50_000, 0, 0, 0, 0])).starts_with("Trustworthy: "));
    // Of each kind, in the order of `Outcome`.
    let [few, some, none] =
        [[49_900, 100, 0, 0, 0], [40_000, 0, 10_000, 0, 0], [0, 0, 0, 50_000, 0]].map(run);
    assert!(headline(&few).starts_with("Trustworthy: "), "{}", headline(&few));
    let line = headline(&some);
    assert!(line.starts_with("20 % of 50,000 requests failed: 10,000 "), "{line}");
    assert!(line.contains("(the first: status 503)") && line.contains(". Trustworthy: "), "{line}");
    let line = headline(&none);
    assert!(line.starts_with("FAILED: none of 50,000 requests was answered as expected: 50,000 "), "{line}");
    assert!(!line.contains("Trustworthy"), "{line}");
    // Of which statuses they are known.
    let found = |statuses: &[(u16, u64)], ended| {
        headline(&RunSummary { statuses: statuses.iter().copied().collect(), ..run(ended) })
    };
    let line = found(&[(404, 50_000)], [0, 50_000, 0, 0, 0]);
    assert_eq!(line, "FAILED: every answer had status 404 (50,000 requests).");
    let line = found(&[(200, 40_000), (404, 10_000)], [40_000, 10_000, 0, 0, 0]);
    assert!(
        line.contains("10,000 wrong (the first: status 503); status: 200 × 40,000, 404 × 10,000."),
        "{line}"
    );
}

/// Each fault alone is named, and no other.
#[test]
fn each_fault_of_the_generator_is_named() {
    type Break = fn(&mut RunSummary);
    let faults: [(&str, Break); 7] = [
        ("left late", |run| {
            run.lag.p99_ns = 900_000;
            run.lag_share.p50 = 0.3;
        }),
        ("busy for 93 %", |run| {
            run.generator_cpu_s = 9.3;
        }),
        ("kept the generator from its core", |run| run.thread.run_queue_s = Some(3.0)),
        ("sent 95 %", |run| run.sends.per_s = 4750.0),
        ("gaps between sends vary by 40 %", |run| run.sends.gap_cv = 0.4),
        ("index of dispersion is 2.5", |run| run.sends.dispersion[0].index = 2.5),
        ("off by 1.0 %", |run| run.little.responses_s = 25.25),
    ];
    for (words, fault) in faults {
        let mut run = clean(&exponential());
        fault(&mut run);
        let verdict = judge(&run, &poisson());
        assert_eq!((verdict.trust, verdict.limits.len()), (Trust::GeneratorLimited, 1), "{verdict:?}");
        let headline = verdict.headline();
        assert!(headline.starts_with("GENERATOR-LIMITED: ") && headline.contains(words), "{headline}");
        assert_eq!(verdict.checks.iter().filter(|check| check.held == Some(false)).count(), 1);
        let text = serde_json::to_string(&verdict).unwrap();
        assert_eq!(serde_json::from_str::<GeneratorVerdict>(&text).unwrap(), verdict);
    }
}

/// Four threads of which one alone has a fault: on average, or by the merged distribution, there would be none.
#[test]
fn each_thread_of_the_generator_is_judged() {
    let clean_thread = |run: &RunSummary| ThreadFigures {
        sent: run.sent / 4,
        wall_s: run.wall_s,
        cpu_s: run.generator_cpu_s / 4.0,
        lag: run.lag,
        lag_share: run.lag_share,
        thread: run.thread,
    };
    let all = |run: &mut RunSummary| run.threads = vec![clean_thread(run); 4];
    let mut run = clean(&exponential());
    all(&mut run);
    assert_eq!(judge(&run, &poisson()).trust, Trust::Trustworthy);
    run.generator_cpu_s = 20.0;
    run.threads.iter_mut().for_each(|one| one.cpu_s = 5.0);
    let verdict = judge(&run, &poisson());
    assert_eq!(verdict.trust, Trust::Trustworthy, "two cores in all, and half of one each");
    let found = |what| &verdict.checks.iter().find(|check| check.what == what).unwrap().found;
    assert_eq!(found(Checked::Processor), "50 % of a core, the busiest of 4 threads");
    type Break = fn(&mut ThreadFigures);
    let faults: [(&str, Break); 2] = [
        ("busy for 93 %", |thread| thread.cpu_s = 9.3),
        ("left late", |thread| {
            thread.lag.p99_ns = 900_000;
            thread.lag_share.p50 = 0.3;
        }),
    ];
    for (words, fault) in faults {
        let mut run = clean(&exponential());
        all(&mut run);
        fault(&mut run.threads[2]);
        let verdict = judge(&run, &poisson());
        assert_eq!(verdict.limits.len(), 1, "{verdict:?}");
        assert!(verdict.headline().contains(words), "{}", verdict.headline());
    }
}

#[test]
fn ports_that_the_generator_lacks_are_its_fault() {
    let mut run = clean(&exponential());
    run.own_failures = 12;
    let verdict = judge(&run, &poisson());
    assert_eq!((verdict.trust, verdict.doubts.len()), (Trust::GeneratorLimited, 0), "{verdict:?}");
    assert!(verdict.headline().contains("12 connections failed"), "{}", verdict.headline());
}

/// A wait for a connection is caused by the server, or by too few allowed connections.
#[test]
fn waiting_for_a_connection_is_a_doubt_and_not_the_generators_fault() {
    let mut run = clean(&exponential());
    run.waited_for_connection = 700;
    run.sends.per_s = 2500.0;
    run.sends.gap_cv = 3.0;
    let verdict = judge(&run, &poisson());
    assert_eq!(verdict.trust, Trust::Doubtful, "{verdict:?}");
    assert!(verdict.headline().contains("700 of 50,000 requests waited"), "{}", verdict.headline());
}

/// "Allow more connections" is no advice where other programs had the machine.
#[test]
fn a_disturbance_is_named_before_what_it_explains() {
    let disturbance = Disturbance { foreign_share: 0.96, ..Disturbance::default() };
    let programs = vec![ForeignProgram { name: "rustc".into(), share: 0.9 }];
    let seen = Surroundings { disturbance, programs, stalls: None };
    let mut run = clean(&exponential());
    run.waited_for_connection = 700;
    let headline =
        |run: &RunSummary, seen: &Surroundings| super::judge(run, &poisson(), None, Some(seen)).headline();
    let line = headline(&run, &seen);
    let named = "Doubtful: other programs took 96 % of the machine (rustc 90 %); wait until it is quiet";
    assert!(
        line.starts_with(named) && line.ends_with("connection; the disturbance explains that."),
        "{line}"
    );
    // The generator was late because of it, and that is said.
    run.thread.run_queue_s = Some(3.0);
    let line = headline(&run, &seen);
    let why = "other programs kept the generator from its core for 30 % of the time; other programs took 96 % of the machine";
    assert!(line.starts_with("GENERATOR-LIMITED: ") && line.contains(why), "{line}");
    // The same holds for a machine that stalls now and then.
    run.thread.run_queue_s = None;
    let stalls = Some(Stalls { longest_s: 0.34, share: 0.03 });
    let line = headline(&run, &Surroundings { stalls, ..Surroundings::default() });
    assert!(
        line.contains("an idle thread woke up to 340 ms late, 3.0 % of the run") && !line.contains("allow"),
        "{line}"
    );
    let line = headline(&run, &Surroundings::default());
    assert!(line.ends_with("waited for a free connection; allow more connections."), "{line}");
}

/// The first of forty requests connected over a link, the last found a connection open.
#[test]
fn the_time_to_connect_is_no_fault_of_the_rate() {
    let mut run = clean(&exponential());
    run.sends = Sends { count: 40, per_s: 8.1, due_per_s: 8.0, ..Sends::default() };
    assert_eq!(judge(&run, &poisson()).trust, Trust::GeneratorLimited);
    run.send_lag.max_ns = run.lag.max_ns + 70_000_000;
    assert_eq!(judge(&run, &poisson()).trust, Trust::Trustworthy);
    // As measured: 50.4 ms short of four seconds, of which connecting took 50.3.
    run.sends = Sends { count: 40, per_s: 9.71609, due_per_s: 9.595477, ..Sends::default() };
    run.send_lag.max_ns = run.lag.max_ns + 50_292_480;
    assert_eq!(judge(&run, &poisson()).trust, Trust::Trustworthy);
    run.sends.per_s = 10.0;
    assert_eq!(judge(&run, &poisson()).trust, Trust::GeneratorLimited);
}

/// A run of 25 short trials has one whose gaps vary by 120 % in one case of ten.
#[test]
fn gaps_of_a_short_trial_may_vary_by_chance_and_not_beyond() {
    let verdict = |gap_cv: f64| {
        let mut run = clean(&exponential());
        (run.sends.count, run.sends.gap_cv) = (222, gap_cv);
        run.sends.gaps_ns.truncate(222);
        judge(&run, &poisson())
    };
    assert_eq!(verdict(1.204).trust, Trust::Trustworthy, "{:?}", verdict(1.204));
    assert_eq!(verdict(1.4).trust, Trust::GeneratorLimited, "{:?}", verdict(1.4));
}

/// A grid of 50 µs, as a coarse timer makes, leaves variation and dispersion alone; the test of their law sees it and
/// says so, and no result depends on it.
#[test]
fn what_no_result_depends_on_is_told_and_not_held_against_it() {
    let mut run = clean(&exponential());
    run.sends.gaps_ns.iter_mut().for_each(|gap| *gap = *gap / 50_000 * 50_000);
    let verdict = judge(&run, &poisson());
    let gaps = verdict.checks.iter().find(|check| check.what == Checked::Gaps).unwrap();
    assert!(gaps.found.contains("p < 0.001, too small to matter"), "{}", gaps.found);
    assert_eq!(verdict.trust, Trust::Trustworthy);
}

#[test]
fn a_closed_population_and_a_handful_of_requests_are_not_judged_by_what_they_do_not_have() {
    let closed = Arrivals::Closed { population: 5, think: Law::Constant { mean_s: 0.0 } };
    let verdict = judge(&clean(&exponential()), &closed);
    assert!(verdict.checks.iter().all(|check| !matches!(check.what, Checked::Rate | Checked::Gaps)));
    let few = RunSummary {
        sent: 3,
        sends: Sends { count: 3, per_s: 1.0, due_per_s: 2.0, ..Sends::default() },
        ..clean(&exponential())
    };
    assert_eq!(judge(&few, &poisson()).trust, Trust::Trustworthy);
}

/// One send in a hundred that is 0.1 ms late, where a request takes 5 ms, breaks no figure.
#[test]
fn a_lag_that_breaks_no_figure_is_a_remark_with_its_remedy() {
    let mut run = clean(&exponential());
    run.lag.p99_ns = 100_000;
    run.lag_share = LagShare { mean: 0.01, p50: 0.02, p99: 0.06 };
    let line = judge(&run, &poisson()).headline();
    assert!(line.starts_with("Trustworthy: the generator used 6.0 % of a core, "), "{line}");
    let remark = "Remark: 1 % of the requests left over 100 µs late, which is up to 6.0 % of the response times; \
                  --timing precise sends them on time.";
    assert!(line.ends_with(remark), "{line}");
    // Each row of the table says what it is judged by: what is "ok" is within what was asked.
    let verdict = judge(&run, &poisson());
    let lag = verdict.checks.iter().find(|check| check.what == Checked::Lag).unwrap();
    assert_eq!((lag.held, lag.found.as_str()), (Some(true), "99 % within 100 µs, 6.0 % of the response"));
    run.lag_share.p99 = 0.3;
    assert_eq!(judge(&run, &poisson()).trust, Trust::GeneratorLimited);
}

/// Of 298 responses the p99 is one single request, and says nothing of the lag of the others.
#[test]
fn one_late_request_of_few_is_not_the_99th_percentile_of_a_run() {
    let late = |sent: u64| {
        let mut run = RunSummary { sent, ended: [sent, 0, 0, 0, 0], ..clean(&exponential()) };
        run.lag.p99_ns = 900_000;
        run.lag_share = LagShare { mean: 0.01, p50: 0.0, p99: 0.3 };
        judge(&run, &poisson()).limits.contains(&Limit::Late { lag_p99_s: 9e-4, share: 0.3 })
    };
    assert!(!late(298) && late(299));
}

#[test]
fn what_the_server_leaves_open_is_a_doubt() {
    let run = RunSummary { turned_away: 4, ended: [49_990, 0, 0, 0, 10], ..clean(&exponential()) };
    let verdict = judge(&run, &poisson());
    assert_eq!(verdict.doubts, [Doubt::TurnedAway { count: 4 }, Doubt::Unanswered { count: 10 }]);
    assert_eq!(verdict.trust, Trust::Doubtful);
}

pub(super) fn sighting(value_s: f64, spread: f64) -> Sighting {
    let interval = Some((value_s * (1.0 - spread), value_s * (1.0 + spread)));
    Sighting {
        achieved_share: 1.0,
        value_s: Some(Estimate { value: value_s, interval }),
        errors: Estimate { value: 0.0, interval: Some((0.0, 0.001)) },
        grows: false,
        disturbed: false,
    }
}

fn limited(limit: Limit) -> GeneratorVerdict {
    GeneratorVerdict { limits: vec![limit], ..GeneratorVerdict::default() }
}

const LATE_ONES: Limit = Limit::Late { lag_p99_s: 0.004, share: 0.3 };

#[test]
fn only_what_may_have_decided_a_probe_is_held_against_the_generator() {
    let aim = Aim { slo: "p99<50ms".parse().unwrap(), errors_at_most: 0.01 };
    let why = |limit: Limit, lag_s: f64, seen: &Sighting| limited(limit).decided(lag_s, seen, &aim);
    let (passes, grey, fails) = (sighting(0.020, 0.1), sighting(0.050, 0.1), sighting(0.200, 0.1));
    assert_eq!((passes.outcome(&aim), grey.outcome(&aim)), (peak::Outcome::Pass, peak::Outcome::Grey));
    assert_eq!(GeneratorVerdict::default().decided(0.004, &grey, &aim), None);
    // Late by 4 ms: that may have decided between 45 and 55 ms, and neither a pass nor 200 ms.
    assert!(why(LATE_ONES, 0.004, &grey).unwrap().contains("left late"));
    assert_eq!((why(LATE_ONES, 0.004, &passes), why(LATE_ONES, 0.004, &fails)), (None, None));
    // It fails by no more than what the generator was late.
    assert!(why(LATE_ONES, 0.004, &sighting(0.056, 0.01)).is_some());
    // Late for its responses, and yet by nothing beside the objective.
    assert_eq!(why(LATE_ONES, 0.001, &grey), None);
    // Other sends than those asked for are another load, however punctual.
    assert!(why(Limit::Rate { ratio: 0.9 }, 0.0, &grey).is_some());
    assert!(why(Limit::Busy { core_share: 0.9 }, 0.004, &grey).is_some());
    // What it could not connect counts as failed, so that it fails without an answer of the server.
    assert!(why(Limit::OwnFailures { count: 3 }, 0.0, &fails).is_some());
}
