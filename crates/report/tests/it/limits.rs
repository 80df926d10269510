//! What a report says of the machine's own limits.

use kendall_analysis::{LimitUnit, LimitUse, LimitsUsed, Report, findings};
use kendall_report::{page, terminal};

use crate::sample;

/// The sample of a server that flushes once for two requests, on a machine that completes 120 flushes a second.
fn limited_by_the_disk() -> Report {
    let mut report = sample::report();
    let disk = LimitUse {
        name: "fdatasync in /var/tmp".to_owned(),
        unit: LimitUnit::PerSecond,
        allowed: 120.0,
        per_request: 0.5,
        others: 0.0,
        is_whole_machine: false,
    };
    let processors = LimitUse {
        name: "processors".to_owned(),
        unit: LimitUnit::Cores,
        allowed: 2.0,
        per_request: 250e-6,
        others: 0.5,
        is_whole_machine: true,
    };
    report.machine_limits = vec![LimitsUsed {
        point: 5,
        trial: report.trials[15].id.clone(),
        throughput_per_s: 200.0,
        uses: vec![disk, processors],
        missing: vec!["There is no figure for new connections: all ports are in use.".to_owned()],
    }];
    report
}

fn text(report: &Report) -> String {
    terminal::render(report, 200, terminal::Style::Plain)
}

#[test]
fn the_limits_stand_beside_the_result_with_what_binds() {
    let report = limited_by_the_disk();
    let sentence = "At 230/s, 200/s: a limit of the machine is reached: fdatasync in /var/tmp, 83 % used.";
    assert!(findings(&report).iter().any(|finding| finding.to_string() == sentence));
    let (page, text) = (page(&report).replace('\u{a0}', " "), text(&report));
    for words in [
        sentence,
        "Limits of this machine",
        "fdatasync in /var/tmp",
        "120/s",
        "There is no figure for new connections: all ports are in use.",
        "binds",
        "250 µs",
        "28 %",
    ] {
        assert!(page.contains(words), "the page lacks {words}");
        assert!(text.contains(words), "the text lacks {words}:\n{text}");
    }
    let row = text.lines().find(|line| line.contains("250 µs")).unwrap();
    let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells, ["230", "processors", "2.0 cores", "250 µs", "200/s", "28 %"]);
}

#[test]
fn a_report_without_limits_does_not_speak_of_them() {
    let report = sample::report();
    assert!(
        !page(&report).contains("Limits of this machine")
            && !text(&report).contains("Limits of this machine")
    );
    // As one of an older version.
    let json = report.to_json();
    assert!(!json.contains("machine_limits"));
    let read: Report = serde_json::from_str(&json).unwrap();
    assert!(read.machine_limits.is_empty());
}
