//! The replay in a report: a real one, of a small run computed here, in words, table and figure.

use kendall_analysis::{ExpectedWidth, Finding, Report, findings};
use kendall_evidence::{Candidates, Rules, Trial, candidates};
use kendall_record::{Outcome, RequestRow};
use kendall_report::{figure, page, terminal};
use kendall_station::{Arrivals, Discipline, Law, Servers};
use kendall_stats::random::{Purpose, stream};

use crate::sample;

const MEAN_NS: f64 = 1e7;

/// The given number of requests at a utilisation of two servers, first come first served.
fn rows(requests: usize, utilisation: f64) -> Vec<RequestRow> {
    let arrivals = Arrivals::poisson(utilisation * 2.0);
    let (service, mut rng) = (Law::Exponential { mean_s: 1.0 }, stream(1, Purpose::Service, 0));
    let mut free = [0i64; 2];
    let instants = arrivals.instants(1).expect("an open stream").take(requests);
    (0..)
        .zip(instants)
        .map(|(index, at)| {
            let (queued, service) = ((at * MEAN_NS) as i64, (service.sample(&mut rng) * MEAN_NS) as i64);
            free.sort_unstable();
            let started = free[0].max(queued);
            free[0] = started + service;
            RequestRow {
                queued: Some(queued),
                started: Some(started),
                finished: Some(free[0]),
                service: Some(service),
                bytes_out: 1,
                bytes_in: 1,
                ..RequestRow::due(index, queued)
                    .sent_at(queued, 1)
                    .ended(Outcome::Answered, free[0] + 400_000)
            }
        })
        .collect()
}

fn replayed(utilisation: f64, own: u32) -> Candidates {
    let rows = rows(600, utilisation);
    let rules = Rules::new(Servers::new(own).expect("some"), Discipline::Fifo, &[]);
    candidates(&[Trial { rows: &rows, warmup_ns: 0 }], &rules).expect("every request has its service time")
}

/// The sample, replayed at two of its points.
fn report(own: u32) -> Report {
    let mut report = sample::report();
    report.points[0].replay = Some(replayed(0.05, own));
    report.points[4].replay = Some(replayed(0.85, own));
    report
}

fn sentence(report: &Report) -> String {
    let found = findings(report);
    let place = found.iter().position(|finding| matches!(finding, Finding::Replayed(_)));
    assert_eq!(place, Some(1), "it stands first after the answer");
    found[1].to_string()
}

#[test]
fn the_sentence_names_the_station_and_what_others_would_be_off_by() {
    let text = sentence(&report(2));
    assert!(text.starts_with("Replayed through 2 servers FIFO, the run's own"), "{text}");
    assert!(text.contains(" at 190/s to ") && text.contains("(correlation above 0.999)"), "{text}");
    assert!(text.contains("servers FIFO underestimates") && text.contains("2 servers "), "{text}");
    assert!(text.ends_with("No other point contradicts that."), "{text}");
    assert!(!text.contains("configured system"), "{text}");
}

#[test]
fn a_system_that_is_another_station_than_it_says_is_found_out() {
    let text = sentence(&report(1));
    assert!(text.starts_with("Replayed through 2 servers FIFO"), "{text}");
    assert!(text.contains("The configured system is 1 server FIFO: 1 server FIFO overestimates"), "{text}");
}

#[test]
fn where_nobody_waits_it_says_that_it_cannot_tell() {
    let mut report = report(2);
    report.points[4].replay = None;
    let text = sentence(&report);
    assert!(text.contains("would predict the same, because too few requests waited"), "{text}");
}

#[test]
fn page_and_terminal_show_sentence_table_and_figure() {
    let report = report(2);
    let page = page(&report);
    let (sentence, chart) = (page.find("Replayed through"), page.find("Each request, replayed"));
    assert!(sentence < page.find("Measured, formula, simulation") && sentence.is_some());
    assert!(chart.is_some() && page.contains("Which station explains the run at 190/s"));
    let figure = figure::replay(&report).expect("two points are replayed");
    assert_eq!((figure.panels.len(), figure.table.rows.len()), (2, 2));
    for panel in &figure.panels {
        let tree = roxmltree::Document::parse(&panel.svg).expect("well-formed");
        let dots = tree.descendants().find(|node| node.attribute("class") == Some("replayed"));
        let dots = dots.and_then(|node| node.attribute("d")).expect("the requests are drawn");
        assert!(dots.matches('M').count() > 100);
        assert!(tree.descendants().any(|node| node.attribute("class") == Some("diagonal")));
    }
    let text = terminal::render(&report, 120, terminal::Style::Plain);
    assert!(text.contains("Which station explains the run at 190/s"), "{text}");
    assert!(text.lines().any(|line| line.contains("FIFO") && line.contains("the system's own")), "{text}");
    let back: Report = serde_json::from_str(&report.to_json()).expect("JSON reads back");
    assert_eq!(back, report);
}

#[test]
fn without_replays_nothing_is_said_of_them() {
    for report in [sample::report(), sample::grouped(), sample::categories()] {
        assert!(figure::replay(&report).is_none());
        assert!(!page(&report).contains("Each request, replayed"));
        assert!(!terminal::render(&report, 120, terminal::Style::Plain).contains("Which station"));
    }
}

#[test]
fn the_expected_half_width_stands_beside_the_measured_one() {
    let mut report = sample::report();
    let mean_s = report.points[0].measured.response.mean_s.value;
    let expected =
        |share: f64, chance| Some(ExpectedWidth { response_s: share * mean_s, waiting_s: None, chance });
    report.points[0].expected = expected(0.125, Some(0.4));
    assert!(page(&report).contains("theory ± 12 %"), "{}", page(&report));
    let text = terminal::render(&report, 160, terminal::Style::Plain);
    assert!(text.contains("in brackets the expectation of theory") && text.contains(" ("), "{text}");
    let lies =
        |report: &Report| findings(report).iter().any(|found| matches!(found, Finding::TooNarrow { .. }));
    assert!(!lies(&report));
    report.points[0].expected = expected(12.5, Some(1e-6));
    assert!(lies(&report));
    let found = findings(&report).into_iter().find(|found| matches!(found, Finding::TooNarrow { .. }));
    let text = found.expect("it is there").to_string();
    assert!(text.starts_with("At 40/s the trials' means lie within ±"), "{text}");
}
