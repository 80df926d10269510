//! The page, of the sample report of the drawings and of an experiment that was not run.

use kendall_analysis::{Published, PublishedRow};
use kendall_experiment::Measure;

use super::*;
use crate::common::check_tables;

#[allow(dead_code, reason = "the tests of drawings use all of it")]
#[path = "../../../../report/tests/sample/mod.rs"]
mod sample;

fn complete(name: &str, report: Report) -> CompleteRun {
    let mut manifest = Manifest::here("sample", 7);
    (manifest.started_utc, manifest.ended_utc) =
        ("2026-11-21T04:15:00Z".into(), Some("2026-11-21T04:20:00Z".into()));
    let question = "How long does it take?".to_owned();
    CompleteRun { name: name.into(), question, report, manifest }
}

fn finished(name: &str, report: Report) -> Entry {
    Entry::Finished(Box::new(complete(name, report).finished()))
}

#[test]
fn an_experiment_has_its_answer_points_picture_and_origin() {
    let report = sample::report();
    let answers = Sentences::of(&report).answers;
    let run = complete("reverse/one", report);
    let kept = serde_json::to_vec(&run.finished()).unwrap();
    let entries = [Entry::Finished(Box::new(serde_json::from_slice(&kept).unwrap()))];
    let text = page(&entries);
    check_tables(&text);
    assert!(text.contains("1 of 1 experiments have a result"), "{text}");
    assert!(text.contains("| [reverse/one](#reverseone) | How long does it take? |"), "{text}");
    for answer in &answers {
        assert!(text.contains(answer), "{answer}");
    }
    assert!(
        text.contains("| rate [1/s] | mean response time | 99 % | mean by M/M/2 | mean by M/G/2 |"),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.starts_with("| 40 | ")).count(), 1);
    assert!(text.contains("started 2026-11-21 04:15:00 UTC, 5 min: 18 trials, "), "{text}");
    let picture = run.picture().unwrap();
    assert_eq!(entries[0].picture_file(), Some(picture.file.clone()));
    assert!(text.contains(&format!("](images/results/{})", picture.file)));
    assert!(picture.file == "reverse-one.svg" && picture.svg.starts_with("<svg "));
}

#[test]
fn published_figures_stand_beside_ours_with_their_ratio() {
    let mut report = sample::report();
    let at = |rate: &str| vec![("rate".to_owned(), rate.to_owned())];
    report.published = vec![Published {
        source: "a study".into(),
        measure: Measure::MeanResponse,
        unit: "ms".into(),
        baseline: at("40"),
        rows: vec![
            PublishedRow { settings: at("40"), value: 1.0 },
            PublishedRow { settings: at("160"), value: 2.0 },
        ],
    }];
    let text = page(&[finished("one", report)]);
    check_tables(&text);
    assert!(text.contains("Published: a study: "), "{text}");
    assert!(text.contains("here ÷ published"), "{text}");
    assert!(text.contains("published order: 1 of 1"), "{text}");
}

#[test]
fn a_limited_generator_is_no_answer() {
    let mut report = sample::report();
    report.trials[0].limits = vec!["the generator was busy".to_owned()];
    let text = page(&[finished("one", report)]);
    let row = text.lines().find(|line| line.starts_with("| [one]")).unwrap();
    assert!(row.contains("| The mean response time goes from"), "{row}");
    assert!(row.contains("GENERATOR-LIMITED: 1 of 18 trials"), "{row}");
    // The section begins as the report does.
    assert!(text.contains("\n\nGENERATOR-LIMITED: trial "), "{text}");
}

#[test]
fn many_points_in_groups_are_a_matrix() {
    let mut report = sample::grouped();
    let groups = report.groups().len();
    assert!(groups > 1);
    while report.points.len() <= 20 {
        report.points.extend_from_within(..);
    }
    let text = page(&[finished("one", report)]);
    check_tables(&text);
    assert!(text.contains("Mean response time:\n\n| rate [1/s] | length"), "{text}");
}

#[test]
fn what_was_not_run_is_listed_with_its_reason() {
    let missing = |why: Option<&str>| Entry::Missing {
        name: "http/one".into(),
        question: "Why?".into(),
        why: why.map(str::to_owned),
    };
    let text = page(&[missing(None), missing(Some("nginx is not installed"))]);
    check_tables(&text);
    assert!(text.contains("0 of 2 experiments have a result"), "{text}");
    assert!(text.contains("| http/one | Why? | Not run yet. |"), "{text}");
    assert!(text.contains("Not run yet: nginx is not installed."), "{text}");
    assert!(!text.contains("\n## http/one"), "{text}");
}
