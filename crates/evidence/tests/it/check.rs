//! Checks of rows: each finds its fault, is quiet where nothing is wrong, and accepts any rows.
//!
//! Seeds are fixed. A sound run is one of a station that is simulated here; each fault is put into such a run.

use kendall_evidence::Trial;
use kendall_evidence::check::{
    AssumptionVerdict, Check, Finding, Hosts, Load, RunQueue, SendsJudged, Setting, check, check_loads,
    send_lateness,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Class, Law, Servers, Station};
use kendall_stats::random::{Purpose, stream};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::run::{MEAN_S, Run, SECOND};

const MS: i64 = 1_000_000;

fn all(rows: &[RequestRow], station: &Station) -> Vec<Finding> {
    let sends = Some(SendsJudged { on_schedule: true, at_rate: true });
    let setting = Setting { place: "here".into(), hosts: Hosts::Apart, sends, ..Setting::default() };
    check(&[Trial { rows, warmup_ns: 0 }], station, &setting)
}

fn found(rows: &[RequestRow], station: &Station, what: Check) -> Finding {
    let mut found = all(rows, station);
    found.retain(|finding| finding.check == what);
    assert_eq!(found.len(), 1, "{what}");
    found.remove(0)
}

fn broken(rows: &[RequestRow], station: &Station) -> Vec<Check> {
    let broken = |finding: &Finding| finding.verdict == AssumptionVerdict::Broken;
    all(rows, station).into_iter().filter(broken).map(|finding| finding.check).collect()
}

/// A check alone breaks in the rows of `run`; its finding.
#[track_caller]
fn only(rows: &[RequestRow], station: &Station, what: Check) -> Finding {
    assert_eq!(broken(rows, station), [what], "{:#?}", all(rows, station));
    found(rows, station, what)
}

/// 200 sound runs, each of nine tests at a level of 1 in 1,000: 1.8 false alarms are expected, if all came with an effect large enough;
/// 8 or more happen in less than 1 of 1,000 such sets of runs.
#[test]
fn a_sound_run_breaks_no_assumption() {
    let mut alarms = Vec::new();
    for seed in 0..200 {
        let run = Run { seed, ..Run::default() };
        alarms.extend(broken(&run.rows(), &run.station()));
    }
    assert!(alarms.len() < 8, "{alarms:?}");
}

#[test]
fn a_long_sound_run_holds_every_assumption_that_it_can() {
    let run = Run { requests: 20_000, ..Run::default() };
    for finding in all(&run.rows(), &run.station()) {
        assert_eq!(finding.verdict, AssumptionVerdict::Holds, "{finding:?}");
        assert_eq!(finding.place, "here");
    }
}

/// A tiny deviation, with enough values that every test rejects: uniform jitter on exponential service.
#[test]
fn many_samples_do_not_make_a_small_effect_matter() {
    let service = Law::Hyperexponential { parts: vec![(0.5, 0.9 * MEAN_S), (0.5, 1.1 * MEAN_S)] };
    let run = Run { requests: 100_000, service, ..Run::default() };
    let mut rows = run.rows();
    for row in &mut rows {
        // A minimum of half a per cent of the mean, which no exponential time has.
        row.service = row.service.map(|ns| ns + (0.005 * MEAN_S * SECOND) as i64);
    }
    let law = found(&rows, &Run::default().station(), Check::ServiceLaw);
    assert!(law.p_value.unwrap() < 1e-3 && law.verdict == AssumptionVerdict::Holds, "{law:?}");
}

#[test]
fn ten_samples_prove_nothing() {
    let run = Run { requests: 10, service: Law::Constant { mean_s: MEAN_S }, ..Run::default() };
    let provable = [
        Check::LittlesLaw,
        Check::Loss,
        Check::Answers,
        Check::InstantsInOrder,
        Check::ApartHosts,
        Check::Room,
        Check::ClockResolution,
    ];
    for finding in all(&run.rows(), &run.station()) {
        assert!(
            finding.verdict == AssumptionVerdict::CannotTell || provable.contains(&finding.check),
            "{finding:?}"
        );
    }
}

/// A client that connects for 20 ms in its arrival loop, as a published study did: 14.3 requests per second for 20.
#[test]
fn a_delay_in_the_arrival_loop_is_seen_in_rate_and_law() {
    let run = Run { rate_per_s: 20.0, ..Run::default() };
    let asked = run.station();
    let mut rows = run.rows();
    for (row, late) in rows.iter_mut().zip(0..) {
        crate::run::move_by(row, late * 20 * MS);
    }
    let rate = found(&rows, &asked, Check::Rate);
    assert_eq!(rate.verdict, AssumptionVerdict::Broken);
    assert!((rate.effect.unwrap().value - (14.3 / 20.0 - 1.0)).abs() < 0.03);
    let law = found(&rows, &asked, Check::ArrivalLaw);
    assert_eq!(law.verdict, AssumptionVerdict::Broken);
    assert!(law.sentence.contains("not Poisson") && law.effect.unwrap().value < -0.15, "{}", law.sentence);
}

#[test]
fn a_closed_loop_is_no_open_stream() {
    // One user without think time: each request goes out when the answer is there.
    let mut rows = Run { requests: 500, ..Run::default() }.rows();
    let mut now = 0;
    for row in &mut rows {
        let at = row.scheduled;
        crate::run::move_by(row, now - at);
        row.started = row.queued;
        row.finished = row.started.zip(row.service).map(|(started, service)| started + service);
        row.completed = row.finished;
        now = row.completed.unwrap() + 1000;
    }
    let station = Run::default().station();
    assert_eq!(found(&rows, &station, Check::OpenLoop).verdict, AssumptionVerdict::Broken);
    // As the closed loop that it is, it obeys the interactive law.
    let think = Law::Constant { mean_s: 1e-6 };
    let closed = |population| Station {
        arrivals: Arrivals::Closed { population, think: think.clone() },
        ..station.clone()
    };
    assert_eq!(found(&rows, &closed(1), Check::InteractiveLaw).verdict, AssumptionVerdict::Holds);
    let three = found(&rows, &closed(3), Check::InteractiveLaw);
    assert_eq!(three.verdict, AssumptionVerdict::Broken);
    assert!(three.sentence.contains("but there are 3 users"), "{}", three.sentence);
    assert!(all(&rows, &closed(1)).iter().all(|finding| finding.check != Check::ArrivalLaw));
}

#[test]
fn uniform_service_is_named_and_its_cost_told() {
    let run = Run { service: Law::Uniform { low_s: 0.0, high_s: 2.0 * MEAN_S }, ..Run::default() };
    let law = only(&run.rows(), &run.station(), Check::ServiceLaw);
    assert!((law.effect.unwrap().value - (4.0 / 6.0 - 1.0)).abs() < 0.05);
    assert!(law.sentence.contains("uniform from") && law.sentence.contains("use M/U/2"), "{}", law.sentence);
    let constant = Run { service: Law::Constant { mean_s: MEAN_S }, ..Run::default() };
    let law = only(&constant.rows(), &constant.station(), Check::ServiceLaw);
    assert!(law.sentence.contains("overestimates waits by a factor of 2.0; use M/D/2"), "{}", law.sentence);
}

#[test]
fn service_that_depends_on_what_came_before_is_seen() {
    let run = Run { kept: 0.5, ..Run::default() };
    assert!(broken(&run.rows(), &run.station()).contains(&Check::IndependentService));
    // Long requests after long gaps: the wait is shorter than if they came at random.
    let mut rows = Run::default().rows();
    for i in 1..rows.len() {
        rows[i].service = Some((rows[i].scheduled - rows[i - 1].scheduled) / 2);
    }
    let finding = found(&rows, &Run::default().station(), Check::ServiceApartFromArrivals);
    assert!(finding.verdict == AssumptionVerdict::Broken && finding.effect.unwrap().value < -0.5);
}

#[test]
fn two_kinds_of_request_are_told_apart() {
    let kinds = Law::Hyperexponential { parts: vec![(0.999, MEAN_S), (0.001, MEAN_S)] };
    let mut rows = Run { service: kinds, ..Run::default() }.rows();
    for row in rows.iter_mut().step_by(4) {
        row.service = Some(100 + row.index as i64 % 50);
    }
    for row in &mut rows {
        row.service = row.service.map(|ns| if ns > 1000 { ns + 5 * MS } else { ns });
    }
    let finding = found(&rows, &Run::default().station(), Check::OneKind);
    assert_eq!(finding.verdict, AssumptionVerdict::Broken);
    assert!((finding.effect.unwrap().value - 0.25).abs() < 0.01);
    assert!(finding.sentence.contains("A cache that answers"), "{}", finding.sentence);
}

#[test]
fn service_that_slows_under_load_is_seen_within_a_load_and_between_loads() {
    let run = Run { slowdown: 1.5, ..Run::default() };
    let finding = found(&run.rows(), &run.station(), Check::ServiceApartFromLoad);
    assert_eq!(finding.verdict, AssumptionVerdict::Broken, "{finding:?}");
    let services = |rate_per_s: f64, factor: f64| -> Vec<f64> {
        let rows = Run { rate_per_s, requests: 1000, ..Run::default() }.rows();
        rows.iter().map(|row| factor * row.service.unwrap() as f64 / SECOND).collect()
    };
    let (low, high) = (services(20.0, 1.0), services(160.0, 2.2));
    let load = |place, utilisation, services_s| Load { place, utilisation, services_s };
    let findings = check_loads(&[load("20/s", 0.1, &low), load("160/s", 0.8, &high)]);
    assert_eq!((findings.len(), findings[0].verdict), (1, AssumptionVerdict::Broken));
    assert!(findings[0].sentence.contains("at 160/s and") && findings[0].place == "20/s and 160/s");
    let same = services(160.0, 1.0);
    let findings = check_loads(&[load("20/s", 0.1, &low), load("160/s", 0.8, &same)]);
    assert_eq!(findings[0].verdict, AssumptionVerdict::Holds);
    assert!(check_loads(&[load("20/s", 0.1, &low)]).is_empty());
}

#[test]
fn another_number_of_servers_and_another_order_are_seen() {
    let run = Run { rate_per_s: 170.0, ..Run::default() };
    let with = |servers| Station { servers: Servers::new(servers).unwrap(), ..run.station() };
    let rows = run.rows();
    assert_eq!(found(&rows, &with(2), Check::Servers).verdict, AssumptionVerdict::Holds);
    for (servers, words) in [(1, "the model has 1 server."), (4, "Set the servers to 2")] {
        let finding = found(&rows, &with(servers), Check::Servers);
        assert_eq!(finding.verdict, AssumptionVerdict::Broken);
        assert!(finding.sentence.contains(words), "{}", finding.sentence);
    }
    assert_eq!(found(&rows, &run.station(), Check::Order).verdict, AssumptionVerdict::Holds);
    let backwards = Run { newest_first: true, ..run };
    assert_eq!(
        found(&backwards.rows(), &backwards.station(), Check::Order).verdict,
        AssumptionVerdict::Broken
    );
}

#[test]
fn overload_and_warm_up_are_seen() {
    let run = Run { rate_per_s: 260.0, requests: 2000, ..Run::default() };
    let finding = found(&run.rows(), &run.station(), Check::Steady);
    assert!(finding.verdict == AssumptionVerdict::Broken && finding.effect.unwrap().value > 0.5);
    let limited = Station { capacity: Some(5000), ..run.station() };
    let of_warm_up =
        |station: &Station| all(&run.rows(), station).iter().any(|one| one.check == Check::WarmUp);
    assert!(of_warm_up(&run.station()) && !of_warm_up(&limited), "a queue that fills is no warm-up");
    let mut cold = Run { rate_per_s: 60.0, ..Run::default() }.rows();
    for row in &mut cold[..300] {
        row.completed = row.completed.map(|ns| ns + 60 * MS);
    }
    let finding = found(&cold, &Run { rate_per_s: 60.0, ..Run::default() }.station(), Check::WarmUp);
    assert_eq!(finding.verdict, AssumptionVerdict::Broken);
    assert!(finding.sentence.contains("the first 300 answers"), "{}", finding.sentence);
}

#[test]
fn what_was_not_answered_and_what_was_wrong_is_counted() {
    let run = Run::default();
    let mut rows = run.rows();
    for row in rows.iter_mut().step_by(10) {
        row.outcome = Outcome::Refused;
    }
    for row in rows.iter_mut().skip(1).step_by(10) {
        row.outcome = Outcome::Wrong;
    }
    let station = run.station();
    let loss = found(&rows, &station, Check::Loss);
    assert!(
        loss.verdict == AssumptionVerdict::Broken
            && loss.sentence.contains("300 of 3000 requests (10 %) had no answer")
    );
    assert!(found(&rows, &station, Check::Answers).sentence.starts_with("300 of 2700 answers"));
    assert_eq!(found(&rows, &station, Check::Room).verdict, AssumptionVerdict::Broken);
    let roomy = Station { capacity: Some(50), ..station };
    assert_eq!(found(&rows, &roomy, Check::Room).verdict, AssumptionVerdict::Holds);
    let trials = |rows| check(&[Trial { rows, warmup_ns: 0 }], &roomy, &Setting::default());
    assert!(
        trials(&rows).iter().all(|finding| finding.check != Check::Loss),
        "the model rejects requests, too"
    );
    rows[5].outcome = Outcome::TimedOut;
    assert_eq!(found(&rows, &roomy, Check::Loss).verdict, AssumptionVerdict::Broken);
}

#[test]
fn instruments_are_judged() {
    let run = Run::default();
    let station = run.station();
    let mut late = run.rows();
    for row in late.iter_mut().step_by(20) {
        row.sent = Some(row.scheduled + 30 * MS);
        row.completed = row.completed.map(|ns| ns + 30 * MS);
    }
    // The rows give the figures, and the judge of the generator the verdict.
    let lateness = send_lateness(&[Trial { rows: &late, warmup_ns: 0 }]).unwrap();
    assert!(lateness.mean_share > 0.05 && (lateness.lag_p99_s - 0.03).abs() < 1e-9, "{lateness:?}");
    let judged = |sends| {
        let setting = Setting { sends, ..Setting::default() };
        let found = check(&[Trial { rows: &late, warmup_ns: 0 }], &station, &setting);
        let of = |check| found.iter().find(|finding| finding.check == check).expect("it is checked").verdict;
        [Check::SentWhenDue, Check::Rate].map(of)
    };
    let by = |on_schedule, at_rate| judged(Some(SendsJudged { on_schedule, at_rate }));
    assert_eq!(by(false, true), [AssumptionVerdict::Broken, AssumptionVerdict::Holds]);
    assert_eq!(by(true, false), [AssumptionVerdict::Holds, AssumptionVerdict::Broken]);
    assert_eq!(judged(None), [AssumptionVerdict::CannotTell, AssumptionVerdict::Holds]);
    let mut coarse = run.rows();
    for row in &mut coarse {
        for at in [&mut row.sent, &mut row.completed, &mut row.started, &mut row.finished] {
            *at = at.map(|ns| ns / MS * MS);
        }
    }
    let clock = found(&coarse, &station, Check::ClockResolution);
    assert!(
        clock.verdict == AssumptionVerdict::Broken && clock.sentence.contains("ticks every 1.00 ms"),
        "{}",
        clock.sentence
    );
    let mut torn = run.rows();
    torn[7].completed = Some(torn[7].scheduled - 1);
    assert_eq!(found(&torn, &station, Check::InstantsInOrder).verdict, AssumptionVerdict::Broken);
    let mut again = run.rows();
    for row in again.iter_mut().step_by(100) {
        row.completed = row.completed.map(|ns| ns + 1000 * MS);
    }
    assert_eq!(found(&again, &station, Check::Retries).verdict, AssumptionVerdict::Broken);
    let mut far = run.rows();
    for row in &mut far {
        row.completed = row.completed.map(|ns| ns + 90 * MS);
    }
    let delay = found(&far, &station, Check::Delay);
    assert!(
        delay.verdict == AssumptionVerdict::Broken && delay.sentence.starts_with("90.0 ms of"),
        "{}",
        delay.sentence
    );
    let setting = |hosts, cpu_cores| Setting { cpu_cores: Some(cpu_cores), hosts, ..Setting::default() };
    let rows = run.rows();
    let trials = [Trial { rows: &rows, warmup_ns: 0 }];
    for (cpu_cores, verdict) in
        [(1.0, AssumptionVerdict::Holds), (2.0, AssumptionVerdict::Broken), (0.3, AssumptionVerdict::Broken)]
    {
        let found = check(&trials, &station, &setting(Hosts::Same, cpu_cores));
        let of = |what: Check| found.iter().find(|finding| finding.check == what).unwrap().verdict;
        assert_eq!(
            (of(Check::UtilisationLaw), of(Check::ApartHosts)),
            (verdict, AssumptionVerdict::CannotTell)
        );
    }
    // Service that waits for a core is not called a wait for something else.
    let run_queue = Some(RunQueue { cores: 2.0, waiting_threads: 0.6 });
    let shared = check(&trials, &station, &Setting { run_queue, ..setting(Hosts::Same, 0.3) });
    let law = shared.iter().find(|finding| finding.check == Check::UtilisationLaw).unwrap();
    assert!(
        law.verdict == AssumptionVerdict::Broken && law.sentence.contains("share 2 cores"),
        "{}",
        law.sentence
    );
}

#[test]
fn classes_in_other_shares_are_seen() {
    let run = Run::default();
    let class = |name: &str, share| Class { name: name.into(), share, weight: 1.0, service: None };
    let with =
        |share| Station { classes: vec![class("hit", share), class("miss", 1.0 - share)], ..run.station() };
    let mut rows = run.rows();
    let mut rng = stream(4, Purpose::Class, 0);
    let coin = Law::Uniform { low_s: 0.0, high_s: 1.0 };
    rows.iter_mut().for_each(|row| row.class = u32::from(coin.sample(&mut rng) >= 0.22));
    assert_eq!(found(&rows, &with(0.22), Check::Shares).verdict, AssumptionVerdict::Holds);
    let finding = found(&rows, &with(0.30), Check::Shares);
    assert!(
        finding.verdict == AssumptionVerdict::Broken && finding.sentence.contains("not the requested 70 %"),
        "{}",
        finding.sentence
    );
}

/// Instants of up to 18 years either way, so that their differences fit.
fn instant() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![3 => (-(1i64 << 59)..1 << 59).prop_map(Some), 3 => (0i64..50).prop_map(Some), 1 => Just(None)]
}

fn any_row() -> impl Strategy<Value = RequestRow> {
    let outcome = prop::sample::select(Outcome::ALL.to_vec());
    (0u64..9, 0u32..4, vec(instant(), 8), outcome).prop_map(|(index, class, at, outcome)| RequestRow {
        index,
        class,
        port: 1,
        scheduled: at[0].unwrap_or(0),
        sent: at[1],
        first_byte: at[2],
        completed: at[3],
        queued: at[4],
        started: at[5],
        finished: at[6],
        service: at[7],
        fixed: None,
        outcome,
        bytes_out: 1,
        bytes_in: 1,
    })
}

fn any_station() -> impl Strategy<Value = Station> {
    let open = |gap| Arrivals::Open { gap };
    let arrivals = prop::sample::select(vec![
        Arrivals::poisson(10.0),
        Arrivals::constant(1e9),
        open(Law::Constant { mean_s: 0.0 }),
        open(Law::Pareto { shape: 1.5, mean_s: 1.0 }),
        Arrivals::Trace { instants_s: [0.0].into() },
        Arrivals::Closed { population: 3, think: Law::Constant { mean_s: 0.0 } },
    ]);
    let class = |share| Class { name: "one".into(), share, weight: 1.0, service: None };
    (arrivals, 1u32..5, prop::option::of(5u64..9), prop::bool::ANY).prop_map(
        move |(arrivals, servers, capacity, two)| {
            let service = Law::Exponential { mean_s: 0.1 };
            let station = Station::new(arrivals, service, Servers::new(servers).unwrap());
            let classes = if two { vec![class(1.0), class(0.0)] } else { vec![] };
            Station { capacity, classes, ..station }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_rows_are_borne(
        trials in vec(vec(any_row(), 0..90), 0..3), repeated in 1usize..8, warmup_ns in 0i64..20, station in any_station()
    ) {
        let trials: Vec<Vec<RequestRow>> = trials.into_iter().map(|rows| vec![rows; repeated].concat()).collect();
        let views: Vec<Trial<'_>> = trials.iter().map(|rows| Trial { rows, warmup_ns }).collect();
        let sends = Some(SendsJudged { on_schedule: false, at_rate: false });
        let setting =
            Setting { place: "here".into(), cpu_cores: Some(0.0), hosts: Hosts::Same, run_queue: None, sends };
        for finding in check(&views, &station, &setting) {
            prop_assert!(!finding.sentence.is_empty() && !finding.sentence.contains("NaN"), "{:?}", finding);
            prop_assert!(finding.p_value.is_none_or(|p| (0.0..=1.0).contains(&p)), "{:?}", finding);
            let numbers = finding.statistic.iter().chain(&finding.effect);
            prop_assert!(numbers.into_iter().all(|number| number.value.is_finite()), "{:?}", finding);
        }
    }
}
