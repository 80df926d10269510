//! A report as OpenMetrics text (<https://openmetrics.io>), for programs that read Prometheus' format.
//!
//! Units stand in the names, as the format wants them: seconds, ratios, requests per second. The labels of a point are its
//! factors; `by` (`measured`, `formula`, `simulation`) and `model` say where a number comes from.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use kendall_analysis::{Modelling, Point, Report};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Answer, Estimate, Quantile};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::export::format::{Answers, Export, ExportError, Exported};

/// The answers as text for Prometheus and the programs that read its format.
#[derive(Debug)]
pub struct OpenMetrics;

impl Export for OpenMetrics {
    fn name(&self) -> &'static str {
        "openmetrics"
    }

    fn about(&self) -> &'static str {
        "the answers"
    }

    fn file(&self) -> &'static str {
        "metrics.txt"
    }

    fn write(&self, run: &Exported<'_>, to: &Path) -> Result<(), ExportError> {
        let Answers::Experiment(report) = run.answers else { return Err(ExportError::NotOfLoads) };
        let mut responses = vec![ResponseCounts::default(); report.points.len()];
        for trial in &run.trials {
            let rows = trial.rows()?;
            let counted = rows.iter().filter(|row| trial.counts(row));
            if let Some(counts) = responses.get_mut(trial.point) {
                counted.filter_map(RequestRow::response_ns).for_each(|ns| counts.add(ns as f64 / 1e9));
            }
        }
        kendall_files::write(to, openmetrics(report, &responses)).map_err(ExportError::write(to))
    }
}

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

    /// The upper bound of each bucket and what fell into it; the last one has no bound.
    fn buckets(&self) -> Vec<(f64, u64)> {
        BOUNDS_S.into_iter().chain([f64::INFINITY]).zip(self.counts).collect()
    }
}

/// The report as OpenMetrics text, with the response times of each of its points.
pub fn openmetrics(report: &Report, responses: &[ResponseCounts]) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families(report, responses))));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to a string never fails");
    text
}

/// All metric families of a report.
fn families(report: &Report, responses: &[ResponseCounts]) -> Vec<Family> {
    let run = Label::of(&report.name).with("started_utc", &report.started_utc);
    let mut families = vec![Family {
        name: "kendall_run".into(),
        unit: "",
        help: "What this is of.",
        samples: Samples::Info(run),
    }];
    let answers = answers(report, &report.name);
    for (name, unit, help, of) in MEANS {
        let known = || answers.iter().filter_map(|(label, answer)| Some((label, of(answer)?)));
        let values = known().map(|(label, estimate)| (label.clone(), estimate.value)).collect();
        families.push(Family { name: name.into(), unit, help, samples: Samples::Gauge(values) });
        let bounds = known().filter_map(|(label, estimate)| Some((label, estimate.interval?)));
        let bounds = bounds.flat_map(|(label, (low, high))| {
            [(label.with("bound", "low"), low), (label.with("bound", "high"), high)]
        });
        families.push(Family {
            name: format!("{name}_interval"),
            unit,
            help: "The 95 % interval of the family before this one.",
            samples: Samples::Gauge(bounds.collect()),
        });
    }
    let quantiles = answers.iter().flat_map(|(label, answer)| {
        let of =
            |quantile: &Quantile| (label.with("quantile", &quantile.p.to_string()), quantile.value_s.value);
        answer.response.quantiles.iter().map(of)
    });
    families.extend([
        Family {
            name: "kendall_response_quantile".into(),
            unit: "seconds",
            help: "This share of the requests took no longer.",
            samples: Samples::Gauge(quantiles.collect()),
        },
        Family {
            name: "kendall_requests".into(),
            unit: "",
            help: "Requests that were due in a trial, by how they ended; warm-up included.",
            samples: Samples::Counter(outcomes(report)),
        },
        Family {
            name: "kendall_response".into(),
            unit: "seconds",
            help: "Measured response times after the warm-up, over all trials of a point.",
            samples: Samples::Histogram(
                report
                    .points
                    .iter()
                    .map(|point| place(point, &report.name))
                    .zip(responses.to_vec())
                    .collect(),
            ),
        },
    ]);
    families
}

/// A number of an answer.
type Of = fn(&Answer) -> Option<Estimate>;

/// The families of one number an answer: name without the unit, unit, help.
const MEANS: [(&str, &str, &str, Of); 6] = [
    ("kendall_response_mean", "seconds", "The mean response time, from when a request was due.", |answer| {
        Some(answer.response.mean_s)
    }),
    (
        "kendall_waiting_mean",
        "seconds",
        "The mean time between the arrival of a request at the server and the start of its service.",
        |answer| Some(answer.waiting.mean_s),
    ),
    ("kendall_throughput", "requests_per_second", "Completed requests.", |answer| {
        Some(answer.throughput_per_s)
    }),
    ("kendall_utilisation", "ratio", "The share of the servers' time that is in service.", |answer| {
        Some(answer.utilisation)
    }),
    (
        "kendall_in_system",
        "requests",
        "The mean number of requests that are due and not yet finished.",
        |answer| Some(answer.in_system),
    ),
    ("kendall_lost", "ratio", "The share of requests that are rejected or never answered.", |answer| {
        Some(answer.lost)
    }),
];

/// Every answer of every point with its labels.
fn answers<'r>(report: &'r Report, experiment: &str) -> Vec<(Label, &'r Answer)> {
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

/// How the requests of each trial ended.
fn outcomes(report: &Report) -> Vec<(Label, u64)> {
    let mut outcomes = Vec::new();
    for trial in &report.trials {
        let point = trial.point.and_then(|point| report.points.get(point));
        let place = point.map_or_else(|| Label::of(&report.name), |point| place(point, &report.name));
        let place = place.with("trial", &trial.id);
        outcomes.extend(
            Outcome::ALL.map(|outcome| (place.with("outcome", outcome.name()), trial.counts.of(outcome))),
        );
    }
    outcomes
}

/// The labels of a point.
fn place(point: &Point, experiment: &str) -> Label {
    let mut label = Label::of(experiment);
    for (name, value) in &point.settings {
        label = label.with(name, value);
    }
    label
}

/// Names and values of labels.
#[derive(Clone, Debug)]
struct Label(Vec<(String, String)>);

impl Label {
    fn of(experiment: &str) -> Self {
        Self(vec![("experiment".to_owned(), experiment.to_owned())])
    }

    /// One more label; where a name is taken already an underscore sets it apart.
    fn with(&self, name: &str, value: &str) -> Self {
        let taken: BTreeSet<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        let mut name = label_name(name);
        while taken.contains(name.as_str()) {
            name.push('_');
        }
        Self(self.0.iter().cloned().chain([(name, value.to_owned())]).collect())
    }
}

/// Letters, digits and underscores, of which the first is not a digit.
fn label_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("factor_{name}") }
}

/// A metric family: samples of one name, with what they mean.
#[derive(Debug)]
struct Family {
    /// Without the unit, which the format puts at its end.
    name: String,
    /// Empty for none.
    unit: &'static str,
    help: &'static str,
    samples: Samples,
}

/// The samples of a family by its type.
#[derive(Debug)]
enum Samples {
    Info(Label),
    Gauge(Vec<(Label, f64)>),
    Counter(Vec<(Label, u64)>),
    Histogram(Vec<(Label, ResponseCounts)>),
}

#[derive(Debug)]
struct Families(Vec<Family>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { name, unit, help, samples } in &self.0 {
            let unit = (!unit.is_empty()).then(|| Unit::Other((*unit).to_owned()));
            samples.encode(encoder.encode_descriptor(name, help, unit.as_ref(), samples.kind())?)?;
        }
        Ok(())
    }
}

impl Samples {
    fn kind(&self) -> MetricType {
        match self {
            Self::Info(_) => MetricType::Info,
            Self::Gauge(_) => MetricType::Gauge,
            Self::Counter(_) => MetricType::Counter,
            Self::Histogram(_) => MetricType::Histogram,
        }
    }

    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Info(label) => encoder.encode_info(&label.0),
            // What is not a finite number is left out.
            Self::Gauge(samples) => samples
                .iter()
                .filter(|(_, value)| value.is_finite())
                .try_for_each(|(label, value)| encoder.encode_family(&label.0)?.encode_gauge(value)),
            Self::Counter(samples) => samples.iter().try_for_each(|(label, count)| {
                encoder.encode_family(&label.0)?.encode_counter::<NoLabelSet, _, u64>(count, None)
            }),
            Self::Histogram(samples) => samples.iter().try_for_each(|(label, responses)| {
                let buckets = responses.buckets();
                let all = buckets.iter().map(|(_, count)| count).sum();
                encoder.encode_family(&label.0)?.encode_histogram::<NoLabelSet>(
                    responses.sum_s,
                    all,
                    &buckets,
                    None,
                )
            }),
        }
    }
}
