//! A report as OpenMetrics text (<https://openmetrics.io>), for whatever reads Prometheus' format.
//!
//! Units stand in the names, as the format wants them: seconds, ratios, requests per second. A point is told by the labels of
//! its factors, and who says a number by `by` (`measured`, `formula`, `simulation`) and `model`.

use std::collections::BTreeSet;
use std::fmt::Write;

use kendall_record::Outcome;
use kendall_station::{Answer, Estimate};

use kendall_analysis::{Modelling, Point, Report};

/// Response times of one point, counted by the upper bounds of a histogram.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseCounts {
    /// How many fell into each bucket; the last one has no upper bound.
    counts: [u64; BOUNDS_S.len() + 1],
    sum_s: f64,
}

/// The upper bounds of the buckets, in seconds.
const BOUNDS_S: [f64; 22] = [
    1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 20.0, 50.0, 100.0,
];

impl ResponseCounts {
    /// Counts one response time, in seconds.
    pub fn add(&mut self, response_s: f64) {
        let bucket = BOUNDS_S.iter().position(|bound| response_s <= *bound).unwrap_or(BOUNDS_S.len());
        self.counts[bucket] += 1;
        self.sum_s += response_s;
    }
}

/// The report as OpenMetrics text, with the response times of each of its points.
pub fn openmetrics(report: &Report, responses: &[ResponseCounts]) -> String {
    let mut text = Text::default();
    let experiment = ("experiment".to_owned(), report.name.clone());
    let run = Label(vec![experiment.clone(), ("started_utc".to_owned(), report.started_utc.clone())]);
    text.family("kendall_run", "info", "", "What this is of.");
    text.sample("kendall_run_info", &run, 1.0);
    let answers = answers(report, &experiment);
    for (name, unit, help, of) in MEANS {
        let told = || answers.iter().filter_map(|(label, answer)| Some((label, of(answer)?)));
        text.family(name, "gauge", unit, help);
        told().for_each(|(label, estimate)| text.sample(name, label, estimate.value));
        let interval = interval_name(name, unit);
        text.family(&interval, "gauge", unit, &format!("The 95 % interval of: {help}"));
        for (label, (low, high)) in told().filter_map(|(label, estimate)| Some((label, estimate.interval?))) {
            text.sample(&interval, &label.with("bound", "low"), low);
            text.sample(&interval, &label.with("bound", "high"), high);
        }
    }
    let name = "kendall_response_quantile_seconds";
    text.family(name, "gauge", "seconds", "So many of the requests took no longer.");
    for (label, answer) in &answers {
        for quantile in &answer.response.quantiles {
            text.sample(name, &label.with("quantile", &quantile.p.to_string()), quantile.value_s.value);
        }
    }
    outcomes(&mut text, report, &experiment);
    histograms(&mut text, report, &experiment, responses);
    text.0.push_str("# EOF\n");
    text.0
}

/// A number of an answer.
type Of = fn(&Answer) -> Option<Estimate>;

/// The families of one number an answer: name, unit, help.
const MEANS: [(&str, &str, &str, Of); 6] = [
    (
        "kendall_response_mean_seconds",
        "seconds",
        "The mean response time, from when a request was due.",
        |answer| Some(answer.response.mean_s),
    ),
    (
        "kendall_waiting_mean_seconds",
        "seconds",
        "The mean time between the server's having a request and taking it up.",
        |answer| Some(answer.waiting.mean_s),
    ),
    ("kendall_throughput_requests_per_second", "requests_per_second", "Completed requests.", |answer| {
        Some(answer.throughput_per_s)
    }),
    ("kendall_utilisation_ratio", "ratio", "The share of the servers' time that is in service.", |answer| {
        Some(answer.utilisation)
    }),
    (
        "kendall_in_system_requests",
        "requests",
        "The mean number of requests that are due and not over.",
        |answer| Some(answer.in_system),
    ),
    (
        "kendall_lost_ratio",
        "ratio",
        "The share of requests that is turned away or never answered.",
        |answer| Some(answer.lost),
    ),
];

/// The unit stays at the end of the name, as the format wants it.
fn interval_name(name: &str, unit: &str) -> String {
    let stem = name.strip_suffix(unit).unwrap_or(name);
    format!("{stem}interval_{unit}")
}

/// Every answer of every point with its labels.
fn answers<'r>(report: &'r Report, experiment: &(String, String)) -> Vec<(Label, &'r Answer)> {
    let mut answers = Vec::new();
    for point in &report.points {
        let place = place(point, experiment);
        answers.push((place.with("by", "measured"), &point.measured));
        for model in &point.models {
            let place = place.with("model", &model.notation);
            let ways = [("formula", &model.formula), ("simulation", &model.simulation)];
            answers.extend(ways.into_iter().filter_map(|(by, modelling)| match modelling {
                Modelling::Answer(answer) => Some((place.with("by", by), &**answer)),
                Modelling::NoAnswer(_) => None,
            }));
        }
    }
    answers
}

fn outcomes(text: &mut Text, report: &Report, experiment: &(String, String)) {
    text.family(
        "kendall_requests",
        "counter",
        "",
        "Requests that were due in a trial, by how they ended; warm-up included.",
    );
    for trial in &report.trials {
        let place = trial.point.and_then(|point| report.points.get(point));
        let place =
            place.map_or_else(|| Label(vec![experiment.clone()]), |point| self::place(point, experiment));
        let place = place.with("trial", &trial.id);
        for outcome in Outcome::ALL {
            text.sample(
                "kendall_requests_total",
                &place.with("outcome", outcome.name()),
                trial.counts.of(outcome) as f64,
            );
        }
    }
}

fn histograms(text: &mut Text, report: &Report, experiment: &(String, String), responses: &[ResponseCounts]) {
    let name = "kendall_response_seconds";
    text.family(
        name,
        "histogram",
        "seconds",
        "Measured response times after the warm-up, over all trials of a point.",
    );
    for (point, responses) in report.points.iter().zip(responses) {
        let place = place(point, experiment);
        let mut below = 0;
        let bounds = BOUNDS_S.iter().map(|bound| number(*bound)).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(responses.counts) {
            below += count;
            text.sample(&format!("{name}_bucket"), &place.with("le", &bound), below as f64);
        }
        text.sample(&format!("{name}_count"), &place, below as f64);
        text.sample(&format!("{name}_sum"), &place, responses.sum_s);
    }
}

/// The labels of a point.
fn place(point: &Point, experiment: &(String, String)) -> Label {
    let mut label = Label(vec![experiment.clone()]);
    for (name, value) in &point.settings {
        label = label.with(name, value);
    }
    label
}

/// Names and values of labels.
struct Label(Vec<(String, String)>);

impl Label {
    /// One more label; where a name is taken already it is told apart by an underscore.
    fn with(&self, name: &str, value: &str) -> Self {
        let taken: BTreeSet<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let mut name = label_name(name);
        while taken.contains(name.as_str()) {
            name.push('_');
        }
        Self(self.0.iter().cloned().chain([(name, value.to_owned())]).collect())
    }
}

/// Letters, digits and underscores, of which the first is no digit.
fn label_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("factor_{name}") }
}

/// The text as it grows.
#[derive(Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, unit: &str, help: &str) {
        self.line(format_args!("# TYPE {name} {kind}"));
        if !unit.is_empty() {
            self.line(format_args!("# UNIT {name} {unit}"));
        }
        self.line(format_args!("# HELP {name} {}", escaped(help)));
    }

    /// What is no finite number is left out.
    fn sample(&mut self, name: &str, label: &Label, value: f64) {
        if !value.is_finite() {
            return;
        }
        let labels: Vec<String> =
            label.0.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        self.line(format_args!("{name}{{{}}} {}", labels.join(","), number(value)));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        self.0.write_fmt(line).expect("writing to a string never fails");
        self.0.push('\n');
    }
}

/// A number that reads back the same and is seen to be one of floating point where it is a bound: "1.0".
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
