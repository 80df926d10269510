//! The formats of other tools are read back as their readers do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use kendall_analysis::ExpectedAt;
use kendall_evidence::expect::{Expectation, Figure};
use kendall_report::export::format::{Answers, Export, ExportError, Exported, ExportedTrial};
use kendall_report::export::junit::to_xml;
use kendall_report::export::openmetrics::{ResponseCounts, openmetrics};
use kendall_report::export::suite::Suite;
use kendall_report::export::{FORMATS, in_words, named, write};
use kendall_station::Estimate;
use kendall_testbed::tempdir;

use crate::sample;

/// A metric family as the specification of OpenMetrics has it.
#[derive(Debug, Default)]
struct Family {
    kind: String,
    unit: String,
    help: String,
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Reads a text by the rules of OpenMetrics 1.0, and panics where it breaks one.
fn parse(text: &str) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let body = text.strip_suffix("# EOF\n").expect("the text ends with its end");
    for line in body.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.splitn(3, ' ');
            let (what, name, value) =
                (words.next().unwrap(), words.next().unwrap(), words.next().unwrap_or(""));
            if current != name {
                assert!(!families.contains_key(name), "{name} is one family");
                current = name.to_owned();
            }
            let family = families.entry(name.to_owned()).or_default();
            assert!(family.samples.is_empty(), "what describes a family stands before its samples");
            match what {
                "TYPE" => family.kind = value.to_owned(),
                "UNIT" => family.unit = value.to_owned(),
                "HELP" => family.help = value.to_owned(),
                other => panic!("{other} is no keyword"),
            }
            continue;
        }
        let (name, rest) = line.split_once('{').expect("every sample has labels");
        let (labels, value) = labels(rest);
        let family = families.get_mut(&current).expect("a family comes before its samples");
        let suffix = name.strip_prefix(current.as_str()).expect("a sample belongs to its family");
        let suffixes: &[&str] = match family.kind.as_str() {
            "gauge" => &[""],
            "counter" => &["_total"],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum"],
            kind => panic!("{kind} is no type"),
        };
        assert!(suffixes.contains(&suffix), "{name} in a {}", family.kind);
        family.samples.push((name.to_owned(), labels, value.parse().expect("a number")));
    }
    for (name, family) in &families {
        assert!(
            family.unit.is_empty() || name.ends_with(&format!("_{}", family.unit)),
            "{name} [{}]",
            family.unit
        );
        assert!(!family.help.is_empty(), "{name}");
        let different: BTreeSet<_> = family.samples.iter().map(|(name, labels, _)| (name, labels)).collect();
        assert_eq!(different.len(), family.samples.len(), "{name} has a sample twice");
    }
    families
}

/// What stands in braces, unescaped, and what follows.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    while let Some((name, after)) = rest.split_once("=\"") {
        if rest.starts_with('}') {
            break;
        }
        let name = name.trim_start_matches(',');
        assert!(
            name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                && !name.starts_with(|c: char| c.is_ascii_digit())
        );
        let (mut value, mut letters) = (String::new(), after.char_indices());
        let end = loop {
            match letters.next().expect("a value ends") {
                (at, '"') => break at,
                (_, '\\') => value.push(match letters.next().expect("something is escaped").1 {
                    'n' => '\n',
                    other => other,
                }),
                (_, other) => value.push(other),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} is there twice");
        rest = &after[end + 1..];
    }
    (labels, rest.strip_prefix("} ").expect("labels end, then comes the value"))
}

#[test]
fn metrics_read_back_as_the_numbers_of_the_report() {
    let mut report = sample::report();
    let hostile = "a \"quoted\" \\ one\nwith two lines";
    report.name = hostile.to_owned();
    let mut responses = vec![ResponseCounts::default(); report.points.len()];
    for (counts, point) in responses.iter_mut().zip(&report.points) {
        point.responses_s.iter().for_each(|time_s| counts.add(*time_s));
    }
    let families = parse(&openmetrics(&report, &responses));
    let at = |family: &str, name: &str, wanted: &[(&str, &str)]| {
        let has = |labels: &BTreeMap<String, String>| {
            wanted.iter().all(|(name, value)| labels.get(*name).is_some_and(|own| own == value))
        };
        let found: Vec<f64> = families[family]
            .samples
            .iter()
            .filter(|(own, labels, _)| own == name && has(labels))
            .map(|sample| sample.2)
            .collect();
        assert_eq!(found.len(), 1, "{family} {wanted:?}");
        found[0]
    };
    for point in &report.points {
        let place = [("experiment", hostile), ("rate", point.setting("rate"))];
        let measured = [&place[..], &[("by", "measured")]].concat();
        let mean = "kendall_response_mean_seconds";
        assert_eq!(at(mean, mean, &measured), point.measured.response.mean_s.value);
        let low = [&measured[..], &[("bound", "low")]].concat();
        let interval = "kendall_response_mean_interval_seconds";
        assert_eq!(
            Some(at(interval, interval, &low)),
            point.measured.response.mean_s.interval.map(|interval| interval.0)
        );
        for model in &point.models {
            if let Some(answer) = model.formula.answer() {
                let by = [&place[..], &[("by", "formula"), ("model", &model.notation)]].concat();
                assert_eq!(at(mean, mean, &by), answer.response.mean_s.value);
            }
        }
        let histogram = "kendall_response_seconds";
        let n = point.responses_s.len() as f64;
        assert_eq!(at(histogram, "kendall_response_seconds_count", &place), n);
        assert_eq!(
            at(histogram, "kendall_response_seconds_bucket", &[&place[..], &[("le", "+Inf")]].concat()),
            n
        );
        let within = point.responses_s.iter().filter(|time_s| **time_s <= 0.02).count() as f64;
        assert_eq!(
            at(histogram, "kendall_response_seconds_bucket", &[&place[..], &[("le", "0.02")]].concat()),
            within
        );
    }
    for trial in &report.trials {
        let labels = [("trial", trial.id.as_str()), ("outcome", "answered")];
        assert_eq!(at("kendall_requests", "kendall_requests_total", &labels), trial.counts.answered as f64);
    }
}

/// The help is made from the table; the pages of documentation are read here.
#[test]
fn the_documentation_names_every_format() {
    let page = |path: &str| {
        let path = format!("{}/../../{path}", env!("CARGO_MANIFEST_DIR"));
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let (readme, notebook) = (page("README.md"), page("docs/notebook.md"));
    let names = FORMATS.map(|format| format.name());
    assert!(readme.contains(&format!("formats of other tools: {} |", names.join(", "))), "{names:?}");
    for name in names {
        assert!(notebook.contains(&format!("--format {name}")), "{name}");
        assert!(
            in_words().contains(&format!("{name} (")) && named(name).is_ok_and(|found| found.name() == name)
        );
    }
    assert!(named("xml").is_err_and(|why| why.contains("openmetrics")));
}

#[test]
fn junit_has_a_case_an_expectation_and_every_doubt() {
    let mut report = sample::report();
    let judged = |expected: &str, value, interval| {
        let expected: Expectation = expected.parse().unwrap();
        ExpectedAt {
            settings: vec![("rate".into(), "40".into())],
            judged: expected.judge(Figure::Known(Estimate { value, interval })),
        }
    };
    report.expected = vec![
        judged("p99<50ms", 0.04, Some((0.03, 0.045))),
        judged("p99<50ms", 0.08, Some((0.07, 0.09))),
        judged("p99<50ms", 0.05, Some((0.04, 0.06))),
    ];
    report.name = "<small> & \"odd\"".to_owned();
    report.doubts = vec!["one\u{0} reason & <another>".to_owned()];
    let gate = to_xml(&Suite::of(&report));
    assert!(gate.contains("failures=\"2\"") && gate.contains("type=\"undecided\""), "{gate}");
    let xml = to_xml(&Suite { allows_undecided: true, ..Suite::of(&report) });
    let tree = roxmltree::Document::parse(&xml).expect("it is well-formed");
    let suite = tree.descendants().find(|node| node.has_tag_name("testsuite")).unwrap();
    assert_eq!(suite.attribute("name"), Some(report.name.as_str()));
    let number = |name: &str| suite.attribute(name).unwrap().parse::<usize>().unwrap();
    assert_eq!(["tests", "failures", "errors", "skipped"].map(number), [3, 1, 0, 1]);
    let cases: Vec<_> = suite.children().filter(|node| node.has_tag_name("testcase")).collect();
    assert_eq!(cases.len(), 3);
    let child =
        |case: &roxmltree::Node<'_, '_>, name: &str| case.children().any(|node| node.has_tag_name(name));
    assert_eq!(cases.iter().map(|case| child(case, "failure")).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(cases.iter().map(|case| child(case, "skipped")).collect::<Vec<_>>(), [false, false, true]);
    for (case, expected) in cases.iter().zip(&report.expected) {
        assert_eq!(case.attribute("name"), Some(expected.judged.expected.to_string().as_str()));
        assert!(case.attribute("classname").unwrap().ends_with(".rate=40"));
    }
    let out = suite.children().find(|node| node.has_tag_name("system-out")).unwrap().text().unwrap();
    assert!(out.contains("reason & <another>"), "{out}");
    let doubts = report.trials.iter().flat_map(|trial| trial.doubts.iter().chain(&trial.limits));
    assert!(doubts.clone().all(|doubt| out.contains(doubt.as_str())), "{out}");
    report.expected.clear();
    assert!(to_xml(&Suite::of(&report)).contains("tests=\"0\""));
}

/// All that it takes to add a format: a type that writes one. In the crate it is a separate file with its lines in `export.rs`.
#[test]
fn a_format_is_added_by_one_type() {
    #[derive(Debug)]
    struct Names;

    impl Export for Names {
        fn name(&self) -> &'static str {
            "names"
        }

        fn about(&self) -> &'static str {
            "the name of each trial"
        }

        fn file(&self) -> &'static str {
            "names.txt"
        }

        fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError> {
            let names: String = run.trials.iter().map(|trial| format!("{}\n", trial.name)).collect();
            fs::write(to, names).map_err(|source| ExportError::Write { path: to.into(), source })
        }
    }

    let (report, folder) = (sample::report(), tempdir().unwrap());
    let trial = ExportedTrial { name: "001".into(), point: 0, folder: folder.path().into(), warmup_ns: 0 };
    let run = Exported {
        folder: folder.path(),
        trials: vec![trial],
        answers: Answers::Experiment(&report),
        expected: Suite::of(&report),
    };
    let written = write(&run, &Names, None).unwrap();
    assert_eq!(written, folder.path().join("export/names.txt"));
    assert_eq!(fs::read_to_string(written).unwrap(), "001\n");
}
