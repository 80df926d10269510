//! Single trials on a page: what is drawn, in which order, and how much of a page it may take.

use kendall_analysis::{
    AgainstLaw, Dispersion, EndedRequest, Heat, Interval, Report, Spread, Stages, TrialView, Window, WindowOf,
};
use kendall_record::Outcome;
use kendall_report::page;

use crate::sample;

/// A view of `intervals` intervals and `requests` requests one by one, with its own numbers in every place.
fn view(trial: &str, intervals: usize, requests: usize) -> TrialView {
    let time = |at: usize| 1e-3 * (1.0 + (at * 7919 % 97) as f64);
    let interval = |at: usize| Interval {
        due: [10 + at as u64 % 5, 0, at as u64 % 2, 0, 0],
        sent: 10,
        completed: 9,
        in_flight: Spread { least: 0.0, mean: 1.5, most: 4.0 },
        queued: Some(Spread { least: 0.0, mean: 0.5, most: 3.0 }),
        p50_s: Some(time(at) / 2.0),
        p90_s: Some(time(at)),
        p99_s: None,
        longest_s: Some(time(at) * 2.0),
    };
    let stages = |at: usize| {
        let due_s = at as f64 * 0.01;
        Stages {
            index: at as u64,
            due_s,
            sent_s: Some(due_s + 1e-5),
            queued_s: Some(due_s + 5e-5),
            started_s: Some(due_s + 1e-3),
            finished_s: Some(due_s + 3e-3),
            ended_s: due_s + 4e-3,
            outcome: if at % 9 == 8 { Outcome::Wrong } else { Outcome::Answered },
        }
    };
    let against = AgainstLaw {
        law: "exponential, mean 1.00 ms, scv 1.0".to_owned(),
        law_scv: 1.0,
        n: 1000,
        scv: 1.02,
        pairs_s: (1..60).map(|at| (at as f64 * 1e-4, at as f64 * 1.01e-4)).collect(),
        expected_s: vec![(1e-3, (0.9e-3, 1.1e-3)), (2e-3, (1.8e-3, 2.2e-3))],
    };
    TrialView {
        trial: trial.to_owned(),
        requests: 10 * intervals as u64,
        length_s: intervals as f64 * 0.05,
        left_out_s: 0.1,
        interval_s: 0.05,
        intervals: (0..intervals).map(interval).collect(),
        heat: Heat {
            due_s: (0..=10).map(|at| f64::from(at) * 0.1).collect(),
            response_s: (0..=5).map(|at| 1e-3 * 2f64.powi(at)).collect(),
            counts: (0..50).collect(),
        },
        slowest: vec![EndedRequest { due_s: 0.3, out_s: 0.031, outcome: Outcome::Answered }],
        failed: vec![EndedRequest { due_s: 0.2, out_s: 0.01, outcome: Outcome::Refused }],
        windows: vec![
            Window { of: WindowOf::Whole { slowest: 3 }, requests: (0..requests).map(stages).collect() },
            Window { of: WindowOf::Slowest, requests: (20..40).map(stages).collect() },
        ],
        service: Some(against.clone()),
        gaps: Some(against),
        dispersion: (1..6)
            .map(|at| Dispersion { span_s: 1e-3 * f64::from(at), spans: 40, index: 1.1, poisson: (0.6, 1.5) })
            .collect(),
        quantiles_s: (0..20)
            .map(|step| (1.0 - 10f64.powf(-f64::from(step) / 10.0), 1e-3 * f64::from(step + 1)))
            .collect(),
    }
}

fn with_views(intervals: usize, requests: usize) -> Report {
    let mut report = sample::report();
    report.trial_views = report.trials.iter().map(|trial| view(&trial.id, intervals, requests)).collect();
    report
}

/// The trials on a page, in its order.
fn shown(page: &str) -> Vec<&str> {
    let names = page.split("data-trial=\"").skip(1);
    names.map(|rest| rest.split('"').next().expect("a name ends")).collect()
}

#[test]
fn a_page_shows_the_slowest_steady_trial_first_and_all_where_there_is_room() {
    let mut report = with_views(60, 100);
    // As the sample leaves it, the last point is not steady, so that its trials are not the first to be looked at.
    for (at, trial) in report.trials.iter_mut().enumerate() {
        trial.response_s = Some(1e-3 * (at + 1) as f64);
    }
    let steady =
        |trial: &&kendall_analysis::TrialLine| report.points[trial.point.expect("a point")].is_steady();
    let slowest = report.trials.iter().rfind(steady).expect("some are steady").id.clone();
    assert_ne!(slowest, report.trials.last().expect("there are trials").id);
    let page = page(&report);
    let names = shown(&page);
    assert_eq!((names.len(), names[0]), (report.trials.len(), slowest.as_str()));
    let others: Vec<&str> =
        report.trials.iter().map(|trial| trial.id.as_str()).filter(|id| *id != slowest).collect();
    assert_eq!(names[1..], others);
    assert!(!page.contains("kendall report FOLDER --trial"), "all trials are there");
}

#[test]
fn what_has_no_room_is_left_out_and_the_page_says_so() {
    let report = with_views(2_000, 4_000);
    let page = page(&report);
    let names = shown(&page);
    assert!(!names.is_empty() && names.len() < report.trials.len(), "{}", names.len());
    let note = format!("{} of {} trials are shown", names.len(), report.trials.len());
    assert!(page.contains(&note) && page.contains("kendall report FOLDER --trial"), "{note}");
    // What a page may take for trials, and what all else of it takes.
    assert!(
        page.len() < 2_000_000 + kendall_report::page(&sample::report()).len() + 10_000,
        "{} bytes",
        page.len()
    );
}

#[test]
fn every_drawing_of_a_trial_is_sound_and_every_plot_has_its_data() {
    let report = with_views(60, 100);
    let page = page(&report);
    let section = page.split("<section class=\"trial-views\">").nth(1).expect("there is a section");
    let section = section.split("</section>").next().expect("it ends");
    let trial = section.split("<div class=\"trial\"").nth(1).expect("there is a trial");
    let drawings: Vec<&str> = trial
        .split("<svg ")
        .skip(1)
        .map(|rest| rest.split_once("</svg>").expect("a drawing ends").0)
        .collect();
    let plots = trial.matches("class=\"plot\"").count();
    // Rates, in flight, response times, heat map; whole and slowest; quantiles; service, gaps and dispersion.
    assert_eq!(plots, 10);
    assert!(drawings.len() >= plots);
    for drawing in &drawings {
        let xml = format!("<svg {drawing}</svg>");
        roxmltree::Document::parse(&xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
        assert!(!drawing.contains("NaN") && !drawing.contains("inf"), "{drawing}");
    }
    for json in trial.split("class=\"plot\">").skip(1) {
        let json = json.split("</script>").next().expect("the data ends");
        let plot: serde_json::Value = serde_json::from_str(json).expect("it is JSON");
        assert!(!plot["layers"].as_array().expect("layers").is_empty(), "{plot}");
    }
    for words in [
        "due and not sent",
        "in the queue",
        "in service",
        "no right answer",
        "warm-up",
        "Around the slowest request",
    ] {
        assert!(trial.contains(words), "{words}");
    }
}

#[test]
fn names_cannot_break_out_of_the_page() {
    let mut report = with_views(20, 20);
    let hostile = "\"><script>alert(1)</script>";
    report.trials[0].id = hostile.to_owned();
    report.trial_views[0].trial = hostile.to_owned();
    assert!(!page(&report).contains("<script>alert"));
}

#[test]
fn a_trial_in_which_nothing_was_answered_is_shown_too() {
    let mut report = with_views(20, 20);
    for view in &mut report.trial_views {
        view.heat = Heat { due_s: Vec::new(), response_s: Vec::new(), counts: Vec::new() };
        (view.slowest, view.quantiles_s, view.dispersion) = (Vec::new(), Vec::new(), Vec::new());
        (view.service, view.gaps) = (None, None);
        for interval in &mut view.intervals {
            (interval.p50_s, interval.p90_s, interval.longest_s) = (None, None, None);
        }
    }
    let page = page(&report);
    assert_eq!(shown(&page).len(), report.trials.len());
    let section = page.split("<section class=\"trial-views\">").nth(1).expect("there is a section");
    let section = section.split("</section>").next().expect("it ends");
    assert!(!section.contains("NaN"), "what is not known is not drawn");
}
