//! The view of one trial, counted and thinned for the eye: along time, request by request, by law, by quantile.
//!
//! However many requests a trial has, its view is of some ten thousand numbers: intervals keep their least and largest value,
//! as M4 does (Jugel et al. 2014, "M4: a visualization-oriented time series data aggregation"), and the slowest requests are
//! always among those shown one by one.

use kendall_record::Outcome;

/// The view of one trial. Times are in seconds since its start.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialView {
    /// The trial, as [`crate::report::trial::TrialLine::id`] names it.
    pub trial: String,
    /// How many requests were due.
    pub requests: u64,
    /// Until the last request had ended.
    pub length_s: f64,
    /// Requests due before this are in no answer.
    pub left_out_s: f64,
    /// The length of an interval.
    pub interval_s: f64,
    /// The intervals, from the start on.
    pub intervals: Vec<Interval>,
    /// How many requests due then took how long.
    pub heat: Heat,
    /// The slowest requests of all, by when they were due.
    pub slowest: Vec<EndedRequest>,
    /// Requests without a right answer; evenly thinned where there are many.
    pub failed: Vec<EndedRequest>,
    /// Windows with single requests: the whole trial, then details of it.
    pub windows: Vec<Window>,
    /// Service times against the closest distribution; `None` if the server reported none.
    pub service: Option<AgainstLaw>,
    /// Gaps between arrivals against the requested law; `None` where no law was requested.
    pub gaps: Option<AgainstLaw>,
    /// The dispersion of the requests, by the length of the spans in which they are counted.
    pub dispersion: Vec<Dispersion>,
    /// Share and response time: this share of the requests took no longer. As far out as the sample supports, after the warm-up.
    pub quantiles_s: Vec<(f64, f64)>,
}

impl TrialView {
    /// The beginning and the end of an interval.
    pub fn bounds_s(&self, at: usize) -> (f64, f64) {
        let end_s =
            if at + 1 == self.intervals.len() { self.length_s } else { (at + 1) as f64 * self.interval_s };
        (at as f64 * self.interval_s, end_s)
    }
}

/// The counts of one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The counts of the requests that were due in the interval, in the order of [`Outcome::ALL`].
    pub due: [u64; Outcome::ALL.len()],
    /// Requests sent in the interval.
    pub sent: u64,
    /// Answers completed in the interval.
    pub completed: u64,
    /// Requests that were due and not over.
    pub in_flight: Spread,
    /// Requests that the server had and no worker had taken up; `None` if the server does not report it.
    pub queued: Option<Spread>,
    /// Half of the requests due in it took no longer; `None` without any.
    pub p50_s: Option<f64>,
    /// 90 % took no longer; `None` for fewer than 10.
    pub p90_s: Option<f64>,
    /// 99 % took no longer; `None` for fewer than 100.
    pub p99_s: Option<f64>,
    /// The longest.
    pub longest_s: Option<f64>,
}

impl Interval {
    /// All requests that were due in the interval.
    pub fn due(&self) -> u64 {
        self.due.iter().sum()
    }
}

/// A number over an interval of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The mean over time.
    pub mean: f64,
    /// The most.
    pub most: f64,
}

/// Counts of requests by when they were due and how long they took.
#[derive(Clone, Debug, PartialEq)]
pub struct Heat {
    /// Edges in time, one more than columns.
    pub due_s: Vec<f64>,
    /// Edges of response times, one more than rows, at equal ratios.
    pub response_s: Vec<f64>,
    /// Row by row from the fastest.
    pub counts: Vec<u64>,
}

/// The due time, response time and outcome of one request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EndedRequest {
    /// The due time.
    pub due_s: f64,
    /// The time from due until the request ended.
    pub out_s: f64,
    /// How the request ended.
    pub outcome: Outcome,
}

/// Requests one by one, in the order in which they were due.
#[derive(Clone, Debug, PartialEq)]
pub struct Window {
    /// The part of the trial that the window shows.
    pub of: WindowOf,
    /// The requests.
    pub requests: Vec<Stages>,
}

/// A part of a trial that is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowOf {
    /// The whole trial, thinned evenly, and the given number of the slowest requests.
    Whole {
        /// How many of the slowest are shown.
        slowest: usize,
    },
    /// Every request around the slowest one.
    Slowest,
    /// Every request around one of median response time.
    Median,
}

/// The instants of one request; `None` stands for an unknown one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stages {
    /// The request's number.
    pub index: u64,
    /// The instant at which the request was due.
    pub due_s: f64,
    /// The instant at which the request was sent.
    pub sent_s: Option<f64>,
    /// The instant at which the server queued the request.
    pub queued_s: Option<f64>,
    /// The instant at which a worker started the request.
    pub started_s: Option<f64>,
    /// The instant at which the server had its answer.
    pub finished_s: Option<f64>,
    /// The instant at which the request ended.
    pub ended_s: f64,
    /// The outcome of the request.
    pub outcome: Outcome,
}

impl Stages {
    /// The time from due to the end.
    pub fn out_s(&self) -> f64 {
        self.ended_s - self.due_s
    }
}

/// Measured times against a law: where they follow it, each pair is of two equal times.
#[derive(Clone, Debug, PartialEq)]
pub struct AgainstLaw {
    /// The law in words: "exponential law with mean 1.08 ms".
    pub law: String,
    /// The law's squared coefficient of variation.
    pub law_scv: f64,
    /// The number of measured times.
    pub n: u64,
    /// The squared coefficient of variation of the measured times.
    pub scv: f64,
    /// Quantiles of the law and of the measured times, ascending; thinned, with the extremes.
    pub pairs_s: Vec<(f64, f64)>,
    /// At quantiles of the law, in which range 95 % of samples of this size would have theirs.
    pub expected_s: Vec<(f64, (f64, f64))>,
}

/// How unevenly requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// The length of the spans of time in which they are counted.
    pub span_s: f64,
    /// How many such spans there are.
    pub spans: u64,
    /// Variance of the counts over their mean: 1 for a Poisson stream, 0 for constant gaps.
    pub index: f64,
    /// The range in which the value lies for 95 % of Poisson streams.
    pub poisson: (f64, f64),
}
