//! The figures of a report: which there are, which comes first, and that legend, drawing and data say the same.

use kendall_analysis::factorial::{Cell, effects};
use kendall_analysis::{EffectsSeen, ExpectedAt, Knee, Report, Scaling, UslSeen};
use kendall_evidence::expect::{ExpectationVerdict, Judged};
use kendall_report::figure::{self, Figure, Named};
use kendall_report::{page, paper};

use crate::sample;

/// The sample with all that a figure can be made of.
fn full() -> Report {
    let mut report = sample::report();
    let judged = Judged {
        expected: "mean<30ms".parse().unwrap(),
        verdict: ExpectationVerdict::Met,
        seen: None,
        at_least: false,
        why: None,
    };
    report.expected = vec![ExpectedAt { settings: report.points[0].settings.clone(), judged }];
    let knee = Knee { notation: "M/M/2".to_owned(), throughput_per_s: 120.0, response_s: 0.014 };
    let usl = UslSeen {
        words: "X = γN/(1 + α(N − 1))".to_owned(),
        line: (1..=250).map(|users| (f64::from(users), f64::from(users))).collect(),
        peak: Some((200.0, 200.0)),
    };
    report.scaling = vec![Scaling { group: vec![], knee: Some(knee), usl: Some(usl) }];
    report
}

/// The sample of two factors with their effects.
fn factorial() -> Report {
    let mut report = sample::grouped();
    report.factors[1].values = vec!["3".to_owned(), "30".to_owned()];
    let levels: Vec<usize> = report.factors.iter().map(|factor| factor.values.len()).collect();
    let cell = |point: &kendall_analysis::Point| {
        let level = |factor: &kendall_analysis::Factor| {
            factor.values.iter().position(|value| value == point.setting(&factor.name)).unwrap()
        };
        let mean_s = point.measured.response.mean_s.value;
        let values = [0.97, 1.0, 1.04].map(|factor| factor * mean_s).to_vec();
        Cell { levels: report.factors.iter().map(level).collect(), values }
    };
    let cells: Vec<Cell> = report.points.iter().map(cell).collect();
    report.effects =
        vec![EffectsSeen { of: "mean response".to_owned(), effects: effects(&levels, &cells).unwrap() }];
    report
}

fn named(report: &Report, name: &str) -> Figure {
    let mut all = figure::all(report).into_iter();
    all.find(|named| named.name == name).unwrap_or_else(|| panic!("no figure {name}")).figure
}

/// The text of a drawing.
fn texts(svg: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(svg).expect("well-formed");
    tree.descendants()
        .filter(|node| node.has_tag_name("text"))
        .filter_map(|node| node.text())
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_report_shows_what_it_has_and_nothing_else() {
    let names = |report: &Report| figure::all(report).iter().map(|named| named.name).collect::<Vec<_>>();
    assert_eq!(
        names(&full()),
        ["response", "throughput", "users", "waiting", "quantiles", "slower", "ecdf", "services"]
    );
    assert!(names(&factorial()).contains(&"effects"));
    // Categories are not load, so there is no curve along it.
    let categories = names(&sample::categories());
    assert!(!categories.contains(&"throughput") && categories.contains(&"weighted"), "{categories:?}");
}

#[test]
fn the_first_figure_shows_the_limit_where_times_were_expected() {
    assert_eq!(figure::that_matters(&sample::report()), "response");
    assert_eq!(figure::that_matters(&full()), "throughput");
    let mut single = full();
    single.points.truncate(1);
    assert_eq!(figure::that_matters(&single), "response", "one point is no curve");
    let page = page(&full());
    assert!(
        page.find("class=\"chart response throughput-figure\"")
            < page.find("class=\"chart response-figure\"")
    );
}

#[test]
fn the_curve_of_throughput_has_knee_limit_and_objective() {
    let figure = named(&full(), "throughput");
    let texts = texts(&figure.panels[0].svg);
    for note in ["knee, 120/s", "all servers busy", "expected: mean<30ms"] {
        let note = note.replace('<', "");
        let found = texts.iter().any(|text| text.replace(['<', ' '], "").contains(&note.replace(' ', "")));
        assert!(found, "{note} is not in {texts:?}");
    }
    let users = named(&full(), "users");
    assert!(users.caption.contains("X = γN/(1 + α(N − 1))"));
}

/// A curve along the rate ends at a throughput that is the rate, unless requests are lost.
#[test]
fn the_curve_of_a_station_that_rejects_requests_ends_at_what_it_serves() {
    let mut curve = sample::report().curves.swap_remove(0);
    assert_eq!(curve.by_throughput(), curve.mean_response_s);
    curve.throughput_per_s = curve.mean_response_s.iter().map(|(rate, _)| (*rate, 0.5 * rate)).collect();
    let halved = curve.mean_response_s.iter().map(|(rate, mean_s)| (0.5 * rate, *mean_s));
    assert_eq!(curve.by_throughput(), halved.collect::<Vec<_>>());
}

/// Without trials there is nothing to compare, and a single factor has no other.
#[test]
fn effects_are_drawn_for_each_factor_and_each_pair() {
    let report = factorial();
    let figure = named(&report, "effects");
    let titles: Vec<&str> = figure.panels.iter().map(|panel| panel.title.as_str()).collect();
    assert_eq!(titles, ["Effect of rate", "Effect of length", "rate and length together"]);
    // Six rates, two lengths, and all of their pairs.
    assert_eq!(figure.table.rows.len(), 6 + 2 + 12);
    // Each length takes 1.5 times the other: √1.5 and its inverse about the mean, and nothing together.
    let row =
        |what: &str| figure.table.rows.iter().find(|row| row[0] == what).unwrap_or_else(|| panic!("{what}"));
    assert!(row("length 30 kB")[1].starts_with("1.2"), "{:?}", row("length 30 kB"));
    assert!(row("rate 40/s with length 3 kB")[1].starts_with("1.0"));
}

#[test]
fn legend_and_layers_have_the_same_names() {
    for report in [full(), factorial(), sample::categories()] {
        for Named { name, figure, .. } in figure::all(&report) {
            let keys: Vec<&str> = figure.legend.iter().map(|key| key.label.as_str()).collect();
            for panel in &figure.panels {
                let data: serde_json::Value = serde_json::from_str(&panel.data).expect("JSON");
                for layer in data["layers"].as_array().expect("layers") {
                    let label = layer["label"].as_str().expect("a label");
                    assert!(label.is_empty() || keys.contains(&label), "{name}: {label} is not in {keys:?}");
                }
            }
            assert!(!figure.table.rows.is_empty(), "{name} has no table");
            assert!(figure.table.rows.iter().all(|row| row.len() == figure.table.head.len()), "{name}");
        }
    }
}

#[test]
fn every_figure_is_a_file_of_its_own() {
    for report in [full(), factorial(), sample::categories()] {
        for Named { name, figure, .. } in kendall_report::page_figures(&report) {
            let svg = paper(&figure);
            let tree = roxmltree::Document::parse(&svg).unwrap_or_else(|error| panic!("{name}: {error}"));
            let drawings = tree.root_element().children().filter(|node| node.has_tag_name("svg")).count();
            assert_eq!(drawings, figure.panels.len() + figure.legend.len(), "{name}");
            assert!(!svg.contains("var(--"), "{name} needs variables");
        }
    }
}

#[test]
fn trials_lead_to_their_files_whatever_they_are_called() {
    let mut report = sample::report();
    report.trials[0].id = "001-rate=20%\" onclick=\"x".to_owned();
    report.trials[1].point = None;
    let page = page(&report);
    assert!(page.contains("href=\"trials/001-rate%3D20%25%22%20onclick%3D%22x/requests.parquet\""));
    assert!(!page.contains("trials/002"), "a trial that was cut off has no complete record");
}
