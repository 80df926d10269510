//! The measurement of the clients, from rows as they come, in memory that does not grow with their number.
//!
//! [`measured`](crate::measured) keeps every row; this keeps up to 128 contiguous sections of the requests, each with sums
//! and with histograms to 0.1 %, and up to 2,048 bins of time. When there are too many, neighbours become one. So an hour at
//! 20,000 requests per second takes about as much as a minute at 20. Three times stand apart: the *response time*, from the
//! instant a request was due; the *service time* that its client saw, from the instant it was sent; and the *send lag*
//! between the two, which is the generator's own delay or a wait for a connection.
//!
//! Requests that were never seen to their end are censored: they count as no shorter than they were when they were given up, and what
//! they may move is marked as a lower bound. No quantile is reported without enough requests.
//!
//! ```
//! use kendall_record::{Outcome, RequestRow};
//! use kendall_evidence::streamed::{Stream, Warmup};
//!
//! let mut stream = Stream::new(Warmup::Until(0));
//! for index in 0..1000 {
//!     let due = index as i64 * 1_000_000;
//!     stream.add(&RequestRow::due(index, due).sent_at(due + 10_000, 4000).ended(Outcome::Answered, due + 2_000_000));
//! }
//! stream.end(1_001_000_000);
//! let seen = stream.seen().unwrap();
//! assert!((seen.response.mean_s.value - 0.002).abs() < 1e-9);
//! assert!((seen.service.unwrap().mean_s.value - 0.00199).abs() < 1e-9);
//! assert_eq!(seen.response.quantile(0.999).unwrap().needs, Some(2995));
//! ```

mod section;
mod seen;
mod series;
mod times;
mod warmup;

use kendall_record::{Outcome, RequestRow};
use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

pub use seen::{QuantileSeen, TimesSeen};
pub use series::{Series, SeriesBin};
pub use warmup::{Warmup, WarmupSeen, cut_ns};

use crate::answer_pauses::{AnswerPauses, CountingPauses};
use crate::expect::{Figure, Measure};
use crate::measured::{SLICES, Tally, trend_of};
use crate::{ClientSide, NotMeasured, Score};
use kendall_stats::{self as statistics, share_interval};
use section::{Section, Sections};
use series::Bins;

/// The quantiles that a stream computes.
pub const QUANTILES: [f64; 9] = [0.05, 0.25, 0.50, 0.75, 0.90, 0.95, 0.99, 0.999, 0.9999];

/// Requests that were still out at the end are kept until the end is known, up to this number; beyond, they count as out until the last
/// instant that was seen when they came.
const OPEN_AT_MOST: usize = 65_536;

/// Requests as they come.
#[derive(Clone, Debug)]
pub struct Stream {
    warmup: Warmup,
    sections: Sections,
    bins: Bins,
    open: Vec<RequestRow>,
    pauses: CountingPauses,
    first_due_ns: i64,
    last_due_ns: i64,
    /// The last instant of any row.
    latest_ns: i64,
}

/// What is counted of a run.
struct Counted<'a> {
    sections: Vec<&'a Section>,
    from_ns: i64,
    warmup: WarmupSeen,
}

/// The measurement of the clients in one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Streamed {
    /// Requests that were due after the warm-up.
    pub requests: u64,
    /// The counts of the requests by outcome, in the order of [`Outcome::ALL`].
    pub ended: [u64; Outcome::ALL.len()],
    /// Time from the instant a request was due until its answer is complete.
    pub response: TimesSeen,
    /// Time from the instant a request was sent until its answer is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<TimesSeen>,
    /// Time from the instant a request was due until it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_lag: Option<TimesSeen>,
    /// Completed requests per second; `None` where the run is too short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_per_s: Option<Estimate>,
    /// The mean number of requests that are due and not over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<Estimate>,
    /// The share of requests without an answer.
    pub lost: Estimate,
    /// The share of requests without a right answer.
    pub errors: Estimate,
    /// The warm-up that was left out.
    pub warmup: WarmupSeen,
    /// Whether the number of requests present grew, so that there is no steady state at this rate; `None` where the run is
    /// too short to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Pauses within answers, the warm-up included; `None` where none was as long as a delayed acknowledgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pauses: Option<AnswerPauses>,
    /// The series along time, the warm-up included.
    pub series: Series,
}

/// Whether the number of requests present grew.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// By how much per second of load.
    pub per_s: f64,
    /// Whether that is significant, and more than a tenth of the mean number: then the rate exceeds the system's capacity, and every
    /// mean depends on how long the run is.
    pub unstable: bool,
}

impl Stream {
    /// Without a request yet.
    pub fn new(warmup: Warmup) -> Self {
        Self {
            warmup,
            sections: Sections::new(),
            bins: Bins::new(),
            open: Vec::new(),
            pauses: CountingPauses::default(),
            first_due_ns: i64::MAX,
            last_due_ns: i64::MIN,
            latest_ns: 0,
        }
    }

    /// Takes a request that has ended, in whatever order they end.
    pub fn add(&mut self, row: &RequestRow) {
        let last_ns = row.completed.or(row.sent).unwrap_or(row.scheduled);
        self.latest_ns = self.latest_ns.max(last_ns);
        self.first_due_ns = self.first_due_ns.min(row.scheduled);
        self.last_due_ns = self.last_due_ns.max(row.scheduled);
        self.bins.add(row);
        self.pauses.add(row);
        if row.completed.is_none() && self.open.len() < OPEN_AT_MOST {
            self.open.push(row.clone());
        } else {
            self.count(row, self.latest_ns);
        }
    }

    fn count(&mut self, row: &RequestRow, end_ns: i64) {
        if !matches!(self.warmup, Warmup::Until(until_ns) if row.scheduled < until_ns) {
            self.sections.of(row.index).add(row, end_ns);
        }
    }

    /// The number of counted requests, and the half-width of the interval of a response time relative to its value. `None` where there
    /// are too few, and for measures that are not a response time.
    pub fn precision(&self, of: Measure) -> Option<Precision> {
        let sections = self.sections.since(i64::MIN);
        let (requests, value, interval) = match of {
            Measure::Mean => {
                let (requests, mean_s) = TimesSeen::mean_alone(&sections, |section| &section.response)?;
                (requests, mean_s.value, mean_s.interval?)
            }
            Measure::Quantile(p) => {
                let (requests, found) = TimesSeen::one(&sections, |section| &section.response, p);
                (requests, found.value_s?, found.interval_s?)
            }
            Measure::Throughput | Measure::Errors => return None,
        };
        Precision::new(requests, value, interval)
    }

    /// Ends the run at the given time after its start; requests still unanswered were in flight until then.
    pub fn end(&mut self, end_ns: i64) {
        let end_ns = end_ns.max(self.latest_ns);
        for row in std::mem::take(&mut self.open) {
            self.count(&row, end_ns);
        }
    }

    /// The cost of the requests, by class and in all, once the run has [ended](Self::end). Requests of class i belong to the i-th of
    /// the classes, which are given by name and weight. `None` where none was due after the warm-up.
    pub fn score<'a>(&self, classes: impl IntoIterator<Item = (&'a str, f64)>) -> Option<Score> {
        let mut tally = Tally::default();
        self.counted().sections.iter().for_each(|section| tally.absorb(&section.score));
        tally.score(classes)
    }

    /// Where the warm-up ends by MSER-5, in nanoseconds since the start: the later of its cuts of response time and of throughput.
    /// `None` if the data are too short, or too unsteady, to find one.
    pub fn suggested_ns(&self) -> Option<i64> {
        warmup::suggested_ns(&self.bins, self.last_due_ns)
    }

    /// What the warm-up leaves. A fixed one was left out as it came; of an automatic one every section is that has a part in
    /// it.
    fn counted(&self) -> Counted<'_> {
        let suggested_ns = self.suggested_ns();
        let all = || self.sections.since(i64::MIN);
        let (from_ns, used_ns, sections) = match (self.warmup, suggested_ns) {
            (Warmup::Until(until_ns), _) => (until_ns, until_ns, all()),
            (Warmup::Auto, Some(cut_ns)) if cut_ns > 0 => {
                let sections = self.sections.since(cut_ns);
                (cut_ns, sections.first().map_or(cut_ns, |section| section.first_due_ns), sections)
            }
            (Warmup::Auto, _) => (0, 0, all()),
        };
        Counted { sections, from_ns, warmup: WarmupSeen::new(used_ns, suggested_ns) }
    }

    /// The measurement of the clients, once the run has [ended](Self::end).
    ///
    /// # Errors
    /// Fails where nothing was due after the warm-up, or nothing was answered.
    pub fn seen(&self) -> Result<Streamed, NotMeasured> {
        let Counted { sections, from_ns, warmup } = self.counted();
        let requests: u64 = sections.iter().map(|section| section.rows()).sum();
        if requests < 2 {
            return Err(NotMeasured::Empty { trial: 1 });
        }
        let response = TimesSeen::of(&sections, |section| &section.response)
            .filter(|response| response.requests > response.censored)
            .ok_or(NotMeasured::NothingAnswered { requests })?;
        let ended = Outcome::ALL.map(|outcome| sections.iter().map(|section| section.count(outcome)).sum());
        let window = self.bins.within(from_ns.max(self.first_due_ns), self.last_due_ns);
        let completed: Vec<f64> =
            window.iter().map(|(bin, _)| bin.completed() as f64 / self.bins.width_s()).collect();
        let present: Vec<f64> = window.iter().map(|(_, present)| *present).collect();
        let growth = growth(&present, self.bins.width_s());
        let unstable = growth.is_some_and(|growth| growth.unstable);
        let settled = |times: TimesSeen| if unstable { times.without_intervals() } else { times };
        Ok(Streamed {
            requests,
            ended,
            response: settled(response),
            service: TimesSeen::of(&sections, |section| &section.service).map(settled),
            send_lag: TimesSeen::of(&sections, |section| &section.send_lag).map(settled),
            throughput_per_s: along(&completed),
            in_flight: along(&present),
            lost: share(&sections, |outcome| !matches!(outcome, Outcome::Answered | Outcome::Wrong)),
            errors: share(&sections, |outcome| outcome != Outcome::Answered),
            warmup,
            growth,
            pauses: Some(self.pauses.seen).filter(|pauses| pauses.paused_ns > 0),
            series: self.bins.series(),
        })
    }
}

impl Streamed {
    /// The measured value of a measure, for an [`Expectation`](crate::expect::Expectation).
    pub fn figure(&self, measure: Measure) -> Figure {
        let unknown = |why: &str| Figure::Unknown { why: why.to_owned(), least: None };
        // Response times of an unstable run grow for as long as it lasts.
        let growing = |least: f64| Figure::Unknown {
            why: "the system is unstable at this rate, so the value grows as long as the run lasts"
                .to_owned(),
            least: Some(least),
        };
        let unstable = self.growth.is_some_and(|growth| growth.unstable);
        match measure {
            Measure::Mean if unstable => growing(self.response.mean_s.value),
            Measure::Mean if self.response.mean_is_bound() => Figure::AtLeast(
                self.response.mean_s.interval.map_or(self.response.mean_s.value, |(low, _)| low),
            ),
            Measure::Mean => Figure::Known(self.response.mean_s),
            Measure::Throughput => {
                self.throughput_per_s.map_or_else(|| unknown("the run was too short"), Figure::Known)
            }
            Measure::Errors => Figure::Known(self.errors),
            Measure::Quantile(p) => match self.response.quantile(p) {
                None => unknown("this quantile is not measured"),
                Some(QuantileSeen { value_s: Some(value), at_least: true, .. }) => Figure::AtLeast(*value),
                Some(QuantileSeen { value_s: Some(value), .. }) if unstable => growing(*value),
                Some(QuantileSeen { value_s: Some(value), interval_s: Some(interval), .. }) => {
                    Figure::Known(Estimate { value: *value, interval: Some(*interval) })
                }
                Some(QuantileSeen { needs, .. }) => {
                    let why = match needs {
                        Some(needs) => {
                            format!("it needs about {needs} requests, and there were {}", self.requests)
                        }
                        None => format!(
                            "the upper end of its interval lies among the {} requests that were given up",
                            self.response.censored
                        ),
                    };
                    let lower = self.response.quantiles.iter().filter(|quantile| quantile.p < p);
                    let least = lower.filter_map(|quantile| Some(quantile.interval_s?.0)).reduce(f64::max);
                    Figure::Unknown { why, least }
                }
            },
        }
    }

    /// The client-side measurement in the form that every crate knows; `None` if the run was too short for a rate.
    pub fn client_side(&self) -> Option<ClientSide> {
        Some(ClientSide {
            response: self.response.summary(),
            throughput_per_s: self.throughput_per_s?,
            in_system: self.in_flight?,
            lost: self.lost,
        })
    }
}

/// How precise an estimate is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// The requests behind it.
    pub requests: u64,
    /// Half the width of its 95 % interval over its value.
    pub relative: f64,
}

impl Precision {
    fn new(requests: u64, value: f64, (low, high): (f64, f64)) -> Option<Self> {
        let relative = (high - low) / 2.0 / value;
        relative.is_finite().then_some(Self { requests, relative })
    }

    /// How many requests more bring it to `wanted`, by the square of the width; 0 where it is there.
    pub fn missing(&self, wanted: f64) -> u64 {
        (self.requests as f64 * ((self.relative / wanted).powi(2) - 1.0)).max(0.0).ceil() as u64
    }
}

/// The mean of what was seen in equal spans of time, with its interval by batch means.
fn along(values: &[f64]) -> Option<Estimate> {
    let value = (!values.is_empty()).then(|| statistics::mean(values))?;
    let interval = statistics::batch_means(values).map(|found| {
        ((value + found.interval.0 - found.mean).max(0.0), value + found.interval.1 - found.mean)
    });
    Some(Estimate { value, interval })
}

/// A share of the requests: its interval is the wider of the exact one for independent requests and that of batch means.
fn share(sections: &[&Section], which: fn(Outcome) -> bool) -> Estimate {
    let count = |section: &&Section| -> u64 {
        Outcome::ALL.into_iter().filter(|&outcome| which(outcome)).map(|outcome| section.count(outcome)).sum()
    };
    let (some, all) =
        sections.iter().fold((0, 0), |(some, all), section| (some + count(section), all + section.rows()));
    let value = some as f64 / all as f64;
    let (low, high) = share_interval(some, all);
    let shares: Vec<f64> =
        sections.iter().map(|section| count(section) as f64 / section.rows() as f64).collect();
    let (below, above) = statistics::batch_means(&shares).map_or((value, value), |found| {
        (value + found.interval.0 - found.mean, value + found.interval.1 - found.mean)
    });
    Estimate { value, interval: Some((low.min(below).max(0.0), high.max(above).min(1.0))) }
}

/// Whether the number present grew, by its means in slices of equal length.
fn growth(present: &[f64], width_s: f64) -> Option<Growth> {
    let bins = present.len() / SLICES;
    if bins == 0 {
        return None;
    }
    let slices: Vec<f64> =
        present[present.len() - bins * SLICES..].chunks_exact(bins).map(statistics::mean).collect();
    let trend = trend_of(&slices, bins as f64 * width_s);
    Some(Growth { per_s: trend.growth_per_s, unstable: trend.grows })
}
