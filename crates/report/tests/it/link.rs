//! What a report says of the emulated links of its trials.

use kendall_analysis::{LinkProperty, LinkQuantity, Report, TrialLink, findings};
use kendall_report::{page, terminal};
use kendall_station::Estimate;

use crate::sample;

fn property(way: &str, quantity: LinkQuantity, asked: Option<f64>, measured: f64) -> LinkProperty {
    let holds = asked.map(|asked| (measured / asked - 1.0).abs() < 0.01);
    let measured = Some(Estimate::within(measured, 0.001 * measured));
    LinkProperty { way: way.to_owned(), quantity, asked, measured, holds }
}

/// The sample over a link of 20 ms and 10 Mbit/s, measured before each of its first trials with these rates.
fn over_a_link(rates: &[f64]) -> Report {
    let mut report = sample::report();
    report.links = rates
        .iter()
        .zip(&report.trials)
        .map(|(rate, trial)| TrialLink {
            differs: None,
            trial: trial.id.clone(),
            emulated: "user-space over veth".to_owned(),
            properties: vec![
                property("up", LinkQuantity::Delay, Some(0.02), 0.0201),
                property("up", LinkQuantity::Rate, Some(1e7), *rate),
                property("down", LinkQuantity::Rate, None, 2e9),
            ],
            late_s: Some([2e-6, 40e-6, 900e-6]),
        })
        .collect();
    report
}

fn text(report: &Report) -> String {
    terminal::render(report, 200, terminal::Style::Plain)
}

/// The cells of the table of links that stand behind a way and a property.
fn row(report: &Report, way: &str, what: &str) -> Vec<String> {
    let text = text(report);
    let line = text
        .lines()
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>())
        .find(|cells| cells.get(1) == Some(&way) && cells.get(2) == Some(&what))
        .unwrap_or_else(|| panic!("no {what} {way} in\n{text}"));
    line[3..].iter().map(|cell| (*cell).to_owned()).collect()
}

#[test]
fn asked_and_measured_stand_side_by_side_in_every_rendering() {
    let report = over_a_link(&[9.98e6, 9.97e6, 9.99e6]);
    assert_eq!(
        row(&report, "up", "rate"),
        ["10.0 Mbit/s", "9.98 Mbit/s", "9.97 Mbit/s – 9.99 Mbit/s", "3 of 3"]
    );
    assert_eq!(row(&report, "down", "rate")[..2], ["no limit", "2.00 Gbit/s"]);
    let page = page(&report).replace('\u{a0}', " ");
    for words in ["Link: requested and measured", "9.98 Mbit/s", "late by 2.00 µs at the median, 40.0 µs"] {
        assert!(text(&report).contains(words) && page.contains(words), "{words}");
    }
    let back: Report = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(back, report);
}

#[test]
fn one_trial_has_its_own_interval() {
    assert_eq!(row(&over_a_link(&[9.98e6]), "up", "rate")[2], "9.97 Mbit/s – 9.99 Mbit/s");
}

#[test]
fn a_link_that_is_not_as_asked_for_is_a_reason_to_doubt() {
    let said = |report: &Report| -> Vec<String> {
        findings(report).iter().map(ToString::to_string).filter(|words| words.contains("link")).collect()
    };
    assert!(said(&over_a_link(&[9.98e6, 9.97e6])).is_empty());
    let report = over_a_link(&[9.98e6, 9.1e6, 9.2e6]);
    let second = &report.trials[1].id;
    let expected = format!(
        "In 2 trials, first in {second}: the measured rate up of the link was not the requested 10.0 Mbit/s."
    );
    assert_eq!(said(&report), [expected]);
    assert_eq!(row(&report, "up", "rate")[3], "1 of 3");

    let mut late = over_a_link(&[9.98e6]);
    late.links[0].late_s = Some([10e-6, 2e-3, 8e-3]);
    assert!(said(&late)[0].contains("1 % of packets more than 1.00 ms late"), "{:?}", said(&late));
}

#[test]
fn without_a_link_there_is_no_such_section() {
    let report = sample::report();
    assert!(
        !page(&report).contains("requested and measured")
            && !text(&report).contains("requested and measured")
    );
}
