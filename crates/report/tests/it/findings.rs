//! Each finding from a report that is made to have it, word by word; and none from a calm one.

mod limited;

use kendall_analysis::{
    Counts, Factor, FactorKind, Finding, Growth, Modelled, Modelling, Point, Report, ServiceSeen, Severity,
    TrialLine, findings,
};
use kendall_evidence::check::{self, AssumptionVerdict, Check};
use kendall_station::{Answer, By, Estimate, Quantile, Summary};

fn answer(mean_s: Estimate) -> Answer {
    let time = |mean_s| Summary { mean_s, variance_s2: None, quantiles: vec![] };
    Answer {
        by: By::Measurement { requests: 1000, trials: 3 },
        response: time(mean_s),
        waiting: time(Estimate::exact(0.0)),
        p_wait: Estimate::exact(0.0),
        throughput_per_s: Estimate::exact(1.0),
        utilisation: Estimate::exact(0.5),
        in_system: Estimate::exact(1.0),
        lost: Estimate::exact(0.0),
        weighted_response_s: None,
        classes: vec![],
    }
}

fn modelled(mean_s: f64) -> Modelling {
    Modelling::Answer(Box::new(answer(Estimate::exact(mean_s))))
}

/// Three rates, measured as M/M/1 predicts, each in one trial without fault.
fn calm() -> Report {
    let point = |(rate, mean_s): (f64, f64)| Point {
        settings: vec![("rate".to_owned(), rate.to_string())],
        x: rate,
        offered_per_s: Some(rate),
        measured: answer(Estimate::within(mean_s, 0.1 * mean_s)),
        delay_s: 1e-4,
        models: vec![Modelled {
            notation: "M/M/1".to_owned(),
            formula: modelled(1.02 * mean_s),
            simulation: modelled(0.98 * mean_s),
        }],
        responses_s: vec![mean_s],
        tail_s: Vec::new(),
        spread: None,
        service: Some(ServiceSeen { mean_s: 5e-3, scv: 1.0, n: 1000 }),
        fixed_s: None,
        capacity: None,
        utilisation_offered: Some(rate * 5e-3),
        growing: None,

        total_time_s: None,
        replay: None,
        expected: None,
    };
    let trial = |at: usize| TrialLine {
        id: format!("00{at}"),
        point: Some(at),
        seed: 1,
        response_s: None,
        response_p99_s: None,
        weighted_response_s: None,
        counts: Counts { sent: 1000, answered: 1000, ..Counts::default() },
        little_gap: Some(0.001),
        send_lag_p99_s: Some(1e-4),
        left_out: None,
        server_cpu_cores: None,
        doubts: vec![],
        limits: Vec::new(),
        is_replaced: false,
    };
    Report {
        name: "calm".to_owned(),
        question: "How long?".to_owned(),
        notes: String::new(),
        started_utc: "2026-01-01 00:00:00".to_owned(),
        command: "kendall run calm.toml".to_owned(),
        machine: vec![],
        letters: Vec::new(),
        factors: vec![Factor {
            name: "rate".to_owned(),
            unit: "/s".to_owned(),
            kind: FactorKind::Number,
            is_load: true,
            values: vec![],
        }],
        points: [(40.0, 6.25e-3), (80.0, 8.3e-3), (120.0, 12.5e-3)].map(point).to_vec(),
        trials: (0..3).map(trial).collect(),
        trial_views: vec![],
        links: vec![],
        traffic: kendall_analysis::traffic::Traffic::default(),
        scaling: vec![],
        effects: vec![],
        planned_trials: 3,
        curves: vec![],
        published: vec![],
        checks: vec![],
        resources: vec![],
        expected: Vec::new(),
        doubts: Vec::new(),
        machine_limits: Vec::new(),
        experiment_toml: String::new(),
    }
}

/// The sentences of a calm report that was changed.
fn sentences(change: impl FnOnce(&mut Report)) -> Vec<String> {
    let mut report = calm();
    change(&mut report);
    findings(&report).iter().map(Finding::to_string).collect()
}

#[track_caller]
fn assert_says(change: impl FnOnce(&mut Report), sentence: &str) {
    let before = sentences(|_| {});
    assert!(!before.iter().any(|found| found == sentence), "a calm report says it already");
    let after = sentences(change);
    assert!(after.iter().any(|found| found == sentence), "not found: {sentence}\nin: {after:#?}");
}

#[test]
fn a_calm_report_answers_and_has_no_doubt() {
    let found = findings(&calm());
    assert!(found.iter().all(|finding| finding.severity() == Severity::Answer), "{found:#?}");
    assert_eq!(
        found.iter().map(Finding::to_string).collect::<Vec<_>>(),
        [
            "The mean response time goes from 6.25 ms at 40/s to 12.5 ms at 120/s.",
            "M/M/1: formula, simulation and measurement agree at 3 of 3 points, within the interval of measurement or 5 %.",
            "The capacity of the servers is 200/s: utilisation reaches 100 % there.",
        ]
    );
}

#[test]
fn users_without_a_rate_have_their_throughput_reported() {
    let closed = |report: &mut Report| {
        report.factors[0] =
            Factor { name: "users".to_owned(), unit: String::new(), ..report.factors[0].clone() };
        for (point, (users, per_s)) in report.points.iter_mut().zip([(1, 90.0), (2, 181.0), (3, 179.0)]) {
            point.settings = vec![("users".to_owned(), users.to_string())];
            (point.offered_per_s, point.utilisation_offered) = (None, None);
            point.measured.throughput_per_s = Estimate::exact(per_s);
        }
    };
    assert_says(closed, "Throughput is highest at users 2, 181/s, and lowest at users 1, 90.0/s.");
}

#[test]
fn a_miss_names_its_size_and_the_assumption_that_broke() {
    assert_says(
        |report| {
            report.points[2].measured = answer(Estimate { value: 8.1e-3, interval: Some((7.2e-3, 9.0e-3)) });
            report.points[2].models[0].formula = modelled(12.3e-3);
            report.points[2].service = Some(ServiceSeen { mean_s: 5e-3, scv: 0.33, n: 1000 });
        },
        "M/M/1 predicts 12.3 ms at 120/s, measured 8.10 ms [7.20, 9.00]: it overestimates by 52 %, its only miss at 3 points. Service \
         times vary less than exponential ones (squared coefficient of variation 0.33, not 1).",
    );
}

#[test]
fn a_model_that_agrees_on_means_may_miss_the_tail() {
    let p99 = |value_s| vec![Quantile { p: 0.99, value_s }];
    let change = |report: &mut Report| {
        for point in &mut report.points {
            point.measured.response.quantiles = p99(Estimate { value: 0.05, interval: Some((0.045, 0.056)) });
            let Modelling::Answer(formula) = &mut point.models[0].formula else { unreachable!() };
            formula.response.quantiles = p99(Estimate::exact(if point.x == 40.0 { 0.052 } else { 0.076 }));
            point.service = Some(ServiceSeen { mean_s: 5e-3, scv: 0.33, n: 1000 });
        }
    };
    assert_says(
        change,
        "M/M/1 puts the 99th percentile at 80/s at 76.0 ms, measured 50.0 ms [45.0, 56.0]: it overestimates by 52 %; it misses at 2 of \
         3 points. Service times vary less than exponential ones (squared coefficient of variation 0.33, not 1).",
    );
    assert!(sentences(change).iter().any(|sentence| sentence.contains("agree at 3 of 3 points")));
}

#[test]
fn a_miss_without_a_broken_assumption_claims_none() {
    assert_says(
        |report| report.points[0].models[0].simulation = modelled(3e-3),
        "M/M/1 by simulation predicts 3.00 ms at 40/s, measured 6.25 ms [5.62, 6.88]: it underestimates by 52 %, its only miss at 3 \
         points.",
    );
}

#[test]
fn an_unstable_point_has_no_formula_and_no_place_in_the_range() {
    let overload = |report: &mut Report| {
        let point = &mut report.points[2];
        point.utilisation_offered = Some(1.31);
        point.measured = answer(Estimate::within(4.2, 1.0));
        point.growing = Some(Growth { first_half_s: 2.0, second_half_s: 6.0 });
        point.models[0].formula = Modelling::NoAnswer("utilisation is 1.31".to_owned());
        point.models[0].simulation = Modelling::NoAnswer("utilisation is 1.31".to_owned());
    };
    assert_says(
        overload,
        "At 120/s utilisation is 1.31: the queue grows without bound, so the formula has no answer; measured: 4.20 s and \
         rising.",
    );
    assert_says(overload, "The mean response time goes from 6.25 ms at 40/s to 8.30 ms at 80/s.");
    let found = sentences(overload);
    assert!(!found.iter().any(|sentence| sentence.contains("has no formula")), "{found:#?}");
}

#[test]
fn notes_explain_load() {
    assert_says(
        |report| report.points[2].utilisation_offered = Some(0.95),
        "At 120/s utilisation is 0.95: this close to 1 the mean depends on rare long queues, and only long trials measure it well.",
    );
    assert_says(
        |report| report.points[2].service = Some(ServiceSeen { mean_s: 6.5e-3, scv: 1.0, n: 1000 }),
        "Service takes 6.50 ms at 120/s, 30 % longer than 5.00 ms at 40/s: it depends on the load.",
    );
    let with_key = |report: &mut Report| {
        report.points[0].fixed_s = Some(1e-3);
        report.points[1].fixed_s = Some(4e-3);
    };
    assert_says(
        with_key,
        "At 80/s 4.00 ms of 5.00 ms in service (80 %) are a fixed cost of every request: optimising the rest saves at most the other \
         1.00 ms.",
    );
    assert_says(
        |report| report.points[0].delay_s = 4e-3,
        "At 40/s 4.00 ms of 6.25 ms pass outside the station: the network dominates, not the queue.",
    );
    assert_says(
        |report| {
            report.points[0].models[0].formula =
                Modelling::NoAnswer("no formula is known for G/G/2".to_owned())
        },
        "M/M/1 has no formula: no formula is known for G/G/2.",
    );
}

#[test]
fn a_formula_that_is_an_approximation_says_which() {
    let approximate = |report: &mut Report| {
        let by = By::Formula {
            source: "Allen and Cunneen (1990)".to_owned(),
            approximate: Some("within 10 % for service times near exponential.".to_owned()),
        };
        for point in &mut report.points {
            let Modelling::Answer(formula) = &mut point.models[0].formula else {
                panic!("a calm one answers")
            };
            formula.by = by.clone();
        }
    };
    let sentence = "The formula of M/M/1 is Allen and Cunneen (1990) (approximation: within 10 % for service times near exponential).";
    assert_says(approximate, sentence);
    // At all points, and said once; a formula that is exact is not mentioned.
    let said = sentences(approximate).into_iter().filter(|found| found == sentence).count();
    assert_eq!(said, 1);
    let exact = |report: &mut Report| {
        let Modelling::Answer(formula) = &mut report.points[0].models[0].formula else {
            panic!("it answers")
        };
        formula.by = By::Formula { source: "Erlang C".to_owned(), approximate: None };
    };
    assert_eq!(sentences(exact), sentences(|_| {}));
}

#[test]
fn trials_that_show_the_generator_are_named_before_all_else() {
    let limited = |report: &mut Report| {
        report.trials[1].limits = vec!["requests left late".to_owned()];
        report.trials[2].limits = vec!["the generator was busy for 97 % of the time".to_owned()];
    };
    let sentence = "GENERATOR-LIMITED: 2 trials, first 001, show the generator as much as the server: requests left late.";
    assert_says(limited, sentence);
    assert_eq!(sentences(limited)[0], sentence);
    assert_says(
        |report| report.trials[1].doubts.push("a core was busy at 97 %".to_owned()),
        "Trial 001: a core was busy at 97 %.",
    );
}

#[test]
fn littles_law_is_broken_only_above_half_a_percent() {
    assert_says(
        |report| report.trials[1].little_gap = Some(-0.021),
        "Little's law is broken in 1 trial: in 001 the mean number in the system and throughput × mean response differ by \
         2.1 %. Requests or instants are missing from the record: measure again.",
    );
    let within = sentences(|report| report.trials[1].little_gap = Some(0.0049));
    assert_eq!(within, sentences(|_| {}));
}

#[test]
fn every_request_is_accounted_for() {
    assert_says(
        |report| report.trials[0].counts.answered = 990,
        "In trial 000 1000 requests were sent, and 990 ended: the record is incomplete.",
    );
    assert_says(
        |report| {
            report.trials[2].counts =
                Counts { sent: 1000, answered: 950, refused: 20, timed_out: 30, ..Counts::default() }
        },
        "At 120/s 50 of 1000 requests (5.0 %) had no answer; response times count only the others.",
    );
    assert_says(
        |report| {
            report.trials[2].counts = Counts { sent: 1000, answered: 998, wrong: 2, ..Counts::default() }
        },
        "At 120/s 2 of 1000 requests (0.20 %) had a wrong answer; their response times do not measure the service.",
    );
}

#[test]
fn intervals_that_cannot_tell_are_said_not_to() {
    let wide = |report: &mut Report| {
        report.points[0].measured = answer(Estimate::within(6.25e-3, 3e-3));
        report.points[0].models[0].formula = modelled(8e-3);
        report.points[0].models[0].simulation = modelled(8e-3);
    };
    assert_says(
        wide,
        "At 40/s the interval of the mean response is wide, up to ±48 %: too wide to distinguish models there. Run more trials, or \
         longer ones.",
    );
    assert_says(
        wide,
        "M/M/1: formula, simulation and measurement agree at 2 of 2 points with a sufficiently narrow interval, within the interval of \
         measurement or 5 %.",
    );
    assert_says(
        |report| report.points[1].measured.response.mean_s.interval = None,
        "At 80/s there is no interval: an interval needs at least two trials. Run more trials.",
    );
}

#[test]
fn growth_below_full_use_and_missing_trials_are_doubts() {
    assert_says(
        |report| report.points[1].growing = Some(Growth { first_half_s: 7e-3, second_half_s: 9.6e-3 }),
        "At 80/s response times grow while the trials run, from 7.00 ms in the first half to 9.60 ms in the second: the mean \
         depends on how long the trials are. Measure at a lower rate.",
    );
    assert_says(
        |report| report.planned_trials = 9,
        "3 of 9 trials ran: the experiment was interrupted. Continue it with kendall run --resume.",
    );
}

#[test]
fn an_empty_report_finds_only_that_nothing_was_run() {
    let found = sentences(|report| {
        report.points.clear();
        report.trials.clear();
    });
    assert_eq!(
        found,
        ["0 of 3 trials ran: the experiment was interrupted. Continue it with kendall run --resume."]
    );
}

#[test]
fn attempts_that_do_not_count_are_one_note_and_no_doubt() {
    let before = sentences(|_| {}).len();
    let sentences = sentences(|report| {
        for trial in &mut report.trials {
            trial.is_replaced = true;
            trial.doubts.push("it was disturbed; another attempt counts in its place".to_owned());
        }
    });
    assert_eq!(sentences.len(), before + 1, "{sentences:?}");
    let told = "3 trials were disturbed by other load, first 000; other attempts count in their place.";
    assert!(sentences.iter().any(|sentence| sentence == told), "{sentences:?}");
}

#[test]
fn a_broken_assumption_is_told_once_at_its_worst_and_what_holds_is_not() {
    let checked = |check, verdict, place: &str, effect| check::Finding {
        check,
        verdict,
        place: place.to_owned(),
        sentence: "Requests left at 14/s, not at 20/s.".to_owned(),
        statistic: Some(check::Named { name: "z".to_owned(), value: -7.0 }),
        p_value: Some(1e-9),
        effect: Some(check::Named { name: "rate".to_owned(), value: effect }),
    };
    let with = |report: &mut Report| {
        report.checks = vec![
            checked(Check::Rate, AssumptionVerdict::Broken, "40/s", -0.1),
            checked(Check::Rate, AssumptionVerdict::Broken, "80/s", -0.3),
            checked(Check::Rate, AssumptionVerdict::Holds, "120/s", 0.0),
            // The report has its own sentences for these.
            checked(Check::LittlesLaw, AssumptionVerdict::Broken, "40/s", 0.2),
            checked(Check::Order, AssumptionVerdict::CannotTell, "40/s", 0.2),
        ];
    };
    assert_says(with, "At 80/s: Requests left at 14/s, not at 20/s. The same holds at 40/s.");
    let mut without = sentences(with);
    without.retain(|sentence| !sentence.starts_with("At 80/s: "));
    assert_eq!(without, sentences(|_| {}));
}

#[test]
fn one_way_beside_another_is_the_first_answer() {
    let two_ways = |report: &mut Report| {
        report.factors.push(Factor {
            name: "strategy".to_owned(),
            unit: String::new(),
            kind: FactorKind::Category,
            is_load: false,
            values: vec!["plain".to_owned(), "words".to_owned()],
        });
        let with = |point: &Point, strategy: &str, ratio: f64| {
            let mut point = point.clone();
            point.settings.push(("strategy".to_owned(), strategy.to_owned()));
            let mean_s = ratio * point.measured.response.mean_s.value;
            point.measured.response.mean_s = Estimate::within(mean_s, 0.01 * mean_s);
            point
        };
        let ratios = [0.5, 1.0, 1.25];
        let twins = report.points.iter().zip(ratios);
        report.points = twins
            .flat_map(|(point, ratio)| [with(point, "plain", 1.0), with(point, "words", ratio)])
            .collect();
    };
    let found = sentences(two_ways);
    assert_eq!(
        found[0],
        "The mean response time with strategy words is 0.500 [0.493, 0.507] × that with plain at rate 40/s, the smallest ratio \
         of 3 points, and 1.25 [1.23, 1.27] × at rate 120/s, the largest: shorter at 1, longer at 1, alike at 1."
    );
}
