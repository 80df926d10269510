//! Outputs of every tool, complete, truncated, and of other programs.

use std::fs;
use std::path::{Path, PathBuf};

use kendall_outputs::{Load, Output, OutputError, known, read, tools};
use proptest::prelude::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

fn sample(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn only(name: &str) -> Output {
    let mut outputs = read(&sample(name)).unwrap_or_else(|error| panic!("{name}: {error}")).unwrap();
    assert_eq!(outputs.len(), 1, "{name}");
    outputs.remove(0)
}

/// Tool, load, connections, rate, requests, share that failed, mean and p99 in ms.
type Expectation = (&'static str, Option<Load>, Option<u64>, f64, u64, f64, f64, Option<f64>);

const CLOSED: Option<Load> = Some(Load::Closed { think_s: 0.0 });

fn open(rate_per_s: f64) -> Option<Load> {
    Some(Load::Open { rate_per_s: Some(rate_per_s) })
}

#[test]
fn every_tool_is_recognised_and_read() {
    let unknown = Some(Load::Open { rate_per_s: None });
    let think = Some(Load::Closed { think_s: 0.1 - 0.0125 });
    let of_k6: Expectation = ("k6", think, Some(10), 100.0, 3000, 15.0 / 3000.0, 12.5, Some(55.0));
    let of_vegeta: Expectation = ("vegeta", open(500.1), None, 498.8, 5000, 10.0 / 5000.0, 5.0, Some(16.0));
    let of_oha: Expectation = ("oha", None, None, 1000.1, 10_000, 0.001, 5.2, Some(18.0));
    let all: [(&str, Expectation); 12] = [
        ("wrk.txt", ("wrk", CLOSED, Some(16), 4980.0, 149_406, 66.0 / 149_406.0, 3.21, Some(7.8))),
        ("wrk2.txt", ("wrk2", unknown, Some(100), 2000.33, 60_010, 0.0, 1.257, Some(2.9))),
        ("oha.txt", of_oha),
        ("oha.json", of_oha),
        ("hey.txt", ("hey", None, None, 1999.5401, 20_000, 0.001, 5.0, Some(16.0))),
        ("k6-summary-export.json", of_k6),
        ("k6-handle-summary.json", of_k6),
        ("vegeta.json", of_vegeta),
        ("vegeta.txt", of_vegeta),
        ("fortio.json", ("fortio", open(400.0), Some(8), 399.6, 3997, 7.0 / 3997.0, 5.0, Some(16.0))),
        ("hyperfine.json", ("hyperfine", CLOSED, Some(1), 1.0 / 0.105, 8, 0.0, 105.0, None)),
        ("locust_stats.csv", ("Locust", None, None, 100.0, 3000, 0.01, 15.8, Some(98.0))),
    ];
    for (name, (tool, load, connections, rate_per_s, requests, lost, mean_ms, p99_ms)) in all {
        let output = only(name);
        assert_eq!((output.tool, output.connections), (tool, connections), "{name}");
        match (output.load, load) {
            (Some(Load::Closed { think_s }), Some(Load::Closed { think_s: expected_s })) => {
                assert!((think_s - expected_s).abs() < 1e-9, "{name}: {think_s}");
            }
            (found, expected) => assert_eq!(found, expected, "{name}"),
        }
        assert_eq!(output.requests, Some(requests), "{name}");
        let near = |found: f64, expected: f64| (found - expected).abs() <= 1e-9 * expected.abs();
        assert!(near(output.rate_per_s, rate_per_s), "{name}: {}", output.rate_per_s);
        assert!(near(output.lost().unwrap(), lost), "{name}: {:?}", output.errors);
        assert!(near(output.mean_s.unwrap() * 1e3, mean_ms), "{name}: {:?}", output.mean_s);
        let p99_s = output.quantile_s(0.99);
        assert!(
            p99_s.is_none() == p99_ms.is_none()
                && p99_s.is_none_or(|p99_s| near(p99_s * 1e3, p99_ms.unwrap())),
            "{name}: {p99_s:?}"
        );
        assert!(output.quantiles_s.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{name}: {output:?}");
        assert!(output.quantiles_s.iter().all(|(level, _)| (0.0..1.0).contains(level)), "{name}");
        assert!(tools().contains(tool) && known().any(|(known, _)| known == tool));
    }
}

#[test]
fn details_that_only_some_tools_have_are_read() {
    let cases = [
        ("wrk2.txt", 0.999, 5.1),
        ("oha.txt", 0.999, 30.5),
        ("oha.json", 0.9999, 40.0),
        ("fortio.json", 0.999, 30.0),
    ];
    for (name, level, milliseconds) in cases {
        let found_s = only(name).quantile_s(level).unwrap();
        assert!((found_s * 1e3 - milliseconds).abs() < 1e-9, "{name}: {found_s}");
    }
    let hyperfine = only("hyperfine.json");
    assert_eq!((hyperfine.name.as_deref(), hyperfine.times_s.len()), (Some("sort -u words.txt"), 8));
    let errors = only("vegeta.json").errors;
    assert_eq!(errors, [("no answer".to_owned(), 4), ("status 503".to_owned(), 6)]);
    let of_hey = only("hey.csv");
    assert_eq!((of_hey.requests, of_hey.errors), (Some(200), vec![("status 503".to_owned(), 4)]));
    assert!((of_hey.rate_per_s - 200.0).abs() < 2.0, "{}", of_hey.rate_per_s);
    assert!(
        (of_hey.mean_s.unwrap() - 0.005).abs() < 1e-4 && (4.9e-3..5.1e-3).contains(&of_hey.quantiles_s[0].1)
    );
    // Tools that print a banner or a blank line before.
    assert!(read(&format!("\n\n{}", sample("wrk.txt"))).unwrap().is_some());
}

#[test]
fn a_truncated_output_reports_the_missing_part() {
    let fault = |text: &str| read(text).unwrap_err().to_string();
    let wrk = sample("wrk.txt");
    let (head, _) = wrk.split_once("Requests/sec:").unwrap();
    let said = fault(head);
    assert!(
        said.contains("of wrk") && said.contains("\"Requests/sec:\"") && said.contains("wrk --latency"),
        "{said}"
    );
    assert!(
        fault(&wrk.replace("3.21ms", "3.21"))
            .contains("\"3.21\" in the line \"Latency\" is not a time with a unit")
    );
    assert!(fault(&wrk.replace("   4980.00", " nan")).contains("is not a number"));
    for name in ["oha.json", "k6-summary-export.json", "vegeta.json", "fortio.json", "hyperfine.json"] {
        let text = sample(name);
        let said = fault(&text[..text.len() / 2]);
        assert!(said.contains("ends early"), "{name}: {said}");
    }
    assert!(
        fault(&sample("vegeta.json").replace("\"mean\": 5000000", "\"me\": 1"))
            .contains("no number \"latencies/mean\"")
    );
    assert!(fault(&sample("hey.csv").replace(",offset", "")).contains("no column \"offset\""));
    assert!(
        fault(&sample("locust_stats.csv").replace("Aggregated", "All")).contains("no row \"Aggregated\"")
    );
    assert!(fault("Timestamp,User Count,Type,Name,Requests/s\n").contains("_stats.csv"));
    assert!(fault("{\"type\":\"Metric\",\"data\":{}}\n").contains("--summary-export"));
}

#[test]
fn other_texts_are_of_no_tool() {
    for text in [
        "",
        "rate,mean_ms\n1,2\n",
        "{}",
        "{\"a\": 1}\n{\"a\": 2}\n",
        "[1, 2]",
        "Summary:\n  Count:\t200\n",
        "1.5\n2\n",
    ] {
        assert_eq!(read(text), Ok(None), "{text:?}");
    }
}

proptest! {
    /// Samples with a piece cut out or a byte changed are parsed or rejected, without a panic.
    #[test]
    fn no_damage_brings_it_down(file in 0usize..13, from in 0.0..1.0f64, length in 0usize..200, letter in "[0-9a-z.,:{}\\[\\] \n%-]") {
        let entries = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
        let mut names: Vec<_> = entries.filter(|path| path.is_file()).collect();
        names.sort();
        let text = fs::read_to_string(&names[file % names.len()]).unwrap();
        let letters: Vec<char> = text.chars().collect();
        let at = (from * letters.len() as f64) as usize;
        let end = (at + length).min(letters.len());
        let damaged: String = letters[..at].iter().copied().chain(letter.chars()).chain(letters[end..].iter().copied()).collect();
        match read(&damaged) {
            Ok(Some(outputs)) => for output in outputs {
                prop_assert!(output.rate_per_s.is_finite());
                prop_assert!(output.quantiles_s.iter().all(|(level, time_s)| *level > 0.0 && time_s.is_finite()));
            },
            Ok(None) | Err(OutputError::Incomplete { .. } | OutputError::CutShort { .. } | OutputError::Other { .. }) => {}
        }
    }
}
