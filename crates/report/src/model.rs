//! The data of a report: what the laboratory fills in from records, and all that the renderings and findings read.
//!
//! Times are in seconds, rates per second. Every number is finite; what is not known is `None`.

use std::fmt;

use kendall_evidence::Candidates;
use kendall_record::Outcome;
use kendall_station::{Answer, By, Estimate};
use serde::{Deserialize, Serialize};

use crate::effects::EffectsSeen;
use crate::link::TrialLink;
use crate::published::Published;
use crate::replay::Expected;
use crate::resources::Resources;
use crate::scaling::Scaling;
use crate::trial_view::TrialView;

/// Everything a report shows of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the experiment.
    pub name: String,
    /// What the experiment asks, as one sentence.
    pub question: String,
    /// What explains it, in plain paragraphs with an empty line between them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// When its first trial started, in UTC, as "2026-11-21 04:15:00".
    pub started_utc: String,
    /// The command that runs it again.
    pub command: String,
    /// The machine and the versions: what, and its value.
    pub machine: Vec<(String, String)>,
    /// What was varied. The first factor is the horizontal axis; the others, if any, make groups.
    pub factors: Vec<Factor>,
    /// One point a combination of factors, in the order of the tables.
    pub points: Vec<Point>,
    /// Each trial, in the order in which they were run.
    pub trials: Vec<TrialLine>,
    /// What happened in each trial that counts, in the order of `trials`. It is not in the JSON of the report: the rows are in
    /// the record, and `kendall export` writes them.
    #[serde(skip)]
    pub trial_views: Vec<TrialView>,
    /// What was measured of the emulated link before each trial; empty where there was none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<TrialLink>,
    /// How many trials the experiment plans; more than `trials` has where it was interrupted.
    pub planned_trials: usize,
    /// Smooth lines of formulas, for the figure; without them the figure joins the formula's answers at the points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// How much the system bears, for each group of points for which that could be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// What each factor does, on each measure for which that could be told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectsSeen>,
    /// Figures that others published of the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// Which assumptions of the models hold in the trials, each at its point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<kendall_evidence::check::Finding>,
    /// What was expected at each point, judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<crate::ExpectedAt>,
    /// Reasons to doubt the run as a whole, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// What server, generator and machine used in the trials that were watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resources>,
    /// The experiment as run, every default written out.
    pub experiment_toml: String,
}

/// Something that was varied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Its name, as in the experiment file: "rate".
    pub name: String,
    /// The unit of its values, as it follows a number: "/s", "ms"; empty without one.
    pub unit: String,
    /// How its values are shown.
    #[serde(default)]
    pub kind: FactorKind,
    /// Whether it is what the generator was told, and not the system: a rate, a number of clients.
    #[serde(default)]
    pub is_load: bool,
    /// Its values, as text without the unit.
    pub values: Vec<String>,
}

/// How the values of a factor are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FactorKind {
    /// Along a line of numbers.
    #[default]
    Number,
    /// One beside the other.
    Category,
}

/// One combination of factors: what was measured there, and what the models say of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Factor and value, as text without the unit, in the order of [`Report::factors`].
    pub settings: Vec<(String, String)>,
    /// The value of the first factor as a number; its place in the list (0, 1, …) where it is none.
    pub x: f64,
    /// Requests that were due per second, over all trials; `None` for a closed population.
    pub offered_per_s: Option<f64>,
    /// The measurement, over all trials.
    pub measured: Answer,
    /// The part of the response time that passes outside the station: network, accept, generator.
    pub delay_s: f64,
    /// Each model's answers. Their response times already include `delay_s`.
    pub models: Vec<Modelled>,
    /// Measured response times in ascending order: all of them, or an evenly thinned sample.
    pub responses_s: Vec<f64>,
    /// Shares of the requests and the response time that they stayed within, from the fastest to as far out as the number of
    /// requests tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tail_s: Vec<(f64, f64)>,
    /// The service times by the server's own stamps, where it gives them.
    pub service: Option<ServiceSeen>,
    /// The mean of the part of them that every request costs whatever it asks, where the server tells it apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed_s: Option<f64>,
    /// How these spread; `None` where there are few, or all are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<ServiceSpread>,
    /// Offered rate × mean service time / servers; `None` for a closed population or without stamps.
    pub utilisation_offered: Option<f64>,
    /// Set where response times grow while the trials run, so that their mean depends on how long that is.
    pub growing: Option<Growth>,
    /// From the first request due to the last answer of a trial, over the trials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_time_s: Option<Estimate>,
    /// The trials' own arrivals and service times replayed through candidate stations, their pairs perhaps thinned; `None`
    /// where the server told no service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<Candidates>,
    /// How wide theory expects the intervals of the measured means to be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<Expected>,
}

/// One model beside the measurement: a station, answered by formula and by simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Modelled {
    /// The station in Kendall's notation, as it stands in the experiment.
    pub notation: String,
    /// What queueing theory says.
    pub formula: Modelling,
    /// What the simulator says.
    pub simulation: Modelling,
}

/// What one way of modelling gives: an answer, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Modelling {
    /// Its answer.
    Answer(Box<Answer>),
    /// Why it has none, as a clause: "utilisation is 1.31, so the queue grows without bound".
    NoAnswer(String),
}

impl Modelling {
    /// The answer, if there is one.
    pub fn answer(&self) -> Option<&Answer> {
        match self {
            Self::Answer(answer) => Some(answer),
            Self::NoAnswer(_) => None,
        }
    }
}

impl<E: fmt::Display> From<Result<Answer, E>> for Modelling {
    fn from(result: Result<Answer, E>) -> Self {
        match result {
            Ok(answer) => Self::Answer(Box::new(answer)),
            Err(why) => Self::NoAnswer(why.to_string()),
        }
    }
}

/// The service times that the server stamped.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSeen {
    /// Their mean.
    pub mean_s: f64,
    /// Their squared coefficient of variation: variance / mean².
    pub scv: f64,
    /// How many there are.
    pub n: u64,
}

/// A histogram of service times, and what laws expect of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServiceSpread {
    /// The ends of its intervals, ascending; there are two or more.
    pub edges_s: Vec<f64>,
    /// The share of the requests in each interval.
    pub shares: Vec<f64>,
    /// Each law by its name, and the shares that it expects.
    pub laws: Vec<(String, Vec<f64>)>,
}

/// Response times that grow during a trial.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Growth {
    /// Mean response time of the requests due in the first half.
    pub first_half_s: f64,
    /// Mean response time of the requests due in the second half.
    pub second_half_s: f64,
}

/// A formula's line over the first factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// The model, as in [`Modelled::notation`].
    pub notation: String,
    /// The values of the factors after the first, as in [`Point::settings`]; empty with one factor.
    pub group: Vec<(String, String)>,
    /// First factor and mean response time, delay included, in ascending order of the factor. It ends where the
    /// formula has no answer.
    pub mean_response_s: Vec<(f64, f64)>,
    /// First factor and mean waiting time, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean_waiting_s: Vec<(f64, f64)>,
}

/// One trial: what was sent, what became of it, and how far it can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialLine {
    /// The name of its folder: "001-rate=20,length=3".
    pub id: String,
    /// Its point, as an index into [`Report::points`]; `None` where nothing was answered, so that there is none.
    pub point: Option<usize>,
    /// The seed of its workload and arrivals. Trials with the same seed were asked the same.
    pub seed: u64,
    /// Its own mean response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_s: Option<f64>,
    /// Its own response time of 99 % of the requests, where there were enough to tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p99_s: Option<f64>,
    /// Its own mean of weight × response time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weighted_response_s: Option<f64>,
    /// How its requests ended.
    pub counts: Counts,
    /// Mean number in the system over throughput × mean response, less 1 (Little's law says 0); `None` where the
    /// trial did not drain.
    pub little_gap: Option<f64>,
    /// 99 % of the requests were sent at most this long after they were due.
    pub send_lag_p99_s: Option<f64>,
    /// Processor time of the server per second of the trial, in cores.
    pub server_cpu_cores: Option<f64>,
    /// What its answer leaves out at the front; `None` where there is none, or the record does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<LeftOut>,
    /// Why the generator or the run is not to be trusted, each as a clause: "a core was busy at 97 %".
    pub doubts: Vec<String>,
    /// Why the trial shows the generator as much as the server, each as a clause; empty where it does not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Whether another attempt of the same trial counts in its place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replaced: bool,
}

/// The warm-up that the answer of a trial leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Requests that were due before this, in nanoseconds since the start of the trial.
    pub until_ns: i64,
    /// So many they are.
    pub requests: u64,
    /// Who says so.
    pub by: WarmupBy,
}

/// What a warm-up is by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmupBy {
    /// The experiment sets it.
    Set,
    /// MSER-5 found where it ends.
    Found,
    /// There was not enough data to find where it ends, and nothing is left out.
    Untold,
}

/// How the requests of a trial ended, the warm-up included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests that were due.
    pub sent: u64,
    /// Complete and right answers.
    pub answered: u64,
    /// Complete and wrong answers.
    pub wrong: u64,
    /// Turned away by the server.
    pub refused: u64,
    /// No complete answer within the time allowed for one request.
    pub timed_out: u64,
    /// Still out when the trial ended.
    pub unanswered: u64,
}

impl Counts {
    /// The number of requests that ended so.
    pub fn of(&self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Answered => self.answered,
            Outcome::Wrong => self.wrong,
            Outcome::Refused => self.refused,
            Outcome::TimedOut => self.timed_out,
            Outcome::Unanswered => self.unanswered,
        }
    }

    /// Counts one request that was due and ended so.
    pub fn add(&mut self, outcome: Outcome) {
        self.sent += 1;
        *match outcome {
            Outcome::Answered => &mut self.answered,
            Outcome::Wrong => &mut self.wrong,
            Outcome::Refused => &mut self.refused,
            Outcome::TimedOut => &mut self.timed_out,
            Outcome::Unanswered => &mut self.unanswered,
        } += 1;
    }

    /// The requests that ended in some way. Each ends in exactly one, so this is `sent`.
    pub fn ended(&self) -> u64 {
        Outcome::ALL.iter().map(|&outcome| self.of(outcome)).sum()
    }
}

impl Report {
    /// The report as JSON, for programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only text keys")
    }

    /// Where a point is, in words: "80/s", or "80/s with length 3" with several factors.
    pub fn place(&self, point: &Point) -> String {
        let first = self.place_in_group(point);
        let group = self.group_name(&point.settings);
        if group.is_empty() { first } else { format!("{first} with {group}") }
    }

    /// Where a point is within its group, in words: by the first factor only, such as "80/s". It needs no name where it
    /// has a unit.
    pub fn place_in_group(&self, point: &Point) -> String {
        let Some(Factor { name, unit, .. }) = self.factors.first() else { return String::new() };
        let value = with_unit(point.setting(name), unit);
        if unit.is_empty() { format!("{name} {value}") } else { value }
    }

    /// Whether the first factor has categories, which are shown one beside the other.
    pub fn is_categorical(&self) -> bool {
        self.factors.first().is_some_and(|factor| factor.kind == FactorKind::Category)
    }

    /// The points under headings: those of one heading differ in the last factor only. Headings are the other factors'
    /// values in words, empty with a single factor.
    pub fn headings(&self) -> Vec<(String, Vec<&Point>)> {
        let others = &self.factors[..self.factors.len().saturating_sub(1)];
        self.grouped(|point| words(others, &point.settings))
    }

    /// The points in groups: those of one group differ in the first factor only, and stand in its order. Groups
    /// stand in the order of their first points, each with its name ("length 3"), empty with a single factor.
    pub fn groups(&self) -> Vec<(String, Vec<&Point>)> {
        let mut groups = self.grouped(|point| self.group_name(&point.settings));
        for (_, points) in &mut groups {
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        groups
    }

    /// The points by what they are called, in the order of the first of each.
    fn grouped(&self, name: impl Fn(&Point) -> String) -> Vec<(String, Vec<&Point>)> {
        let mut groups: Vec<(String, Vec<&Point>)> = Vec::new();
        for point in &self.points {
            let name = name(point);
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(point),
                None => groups.push((name, vec![point])),
            }
        }
        groups
    }

    /// The name of the group that has these settings.
    pub(crate) fn group_name(&self, settings: &[(String, String)]) -> String {
        words(self.factors.get(1..).unwrap_or_default(), settings)
    }

    /// Whether requests were of different weight, so that their weighted response is worth showing.
    pub fn is_weighted(&self) -> bool {
        let differs = |point: &Point| {
            let weighted_s = point.measured.weighted_response_s.map(|weighted| weighted.value);
            weighted_s.is_some_and(|weighted_s| {
                (weighted_s / point.measured.response.mean_s.value - 1.0).abs() > 1e-6
            })
        };
        self.points.iter().any(differs)
    }

    /// The trials of a point.
    pub fn trials_of(&self, point: usize) -> impl Iterator<Item = &TrialLine> {
        self.trials.iter().filter(move |trial| trial.point == Some(point))
    }

    /// The models, in the order in which they first appear.
    pub fn notations(&self) -> Vec<&str> {
        let mut notations = Vec::new();
        for model in self.points.iter().flat_map(|point| &point.models) {
            if !notations.contains(&model.notation.as_str()) {
                notations.push(&model.notation);
            }
        }
        notations
    }
}

impl Point {
    /// The value of a factor as text; empty if it has none.
    pub fn setting(&self, factor: &str) -> &str {
        value_of(&self.settings, factor)
    }

    /// Whether the mean response is a property of the system rather than of the length of the trials.
    pub fn is_steady(&self) -> bool {
        self.growing.is_none() && self.utilisation_offered.is_none_or(|utilisation| utilisation < 1.0)
    }

    /// Whether a model was simulated as the trials were run: so many requests, from an empty server. Its mean is to be
    /// compared with theirs whether or not it is steady.
    pub(crate) fn is_simulated_as_run(&self) -> bool {
        self.models.iter().filter_map(|model| model.simulation.answer()).any(is_of_runs)
    }

    /// What the model with this notation says here.
    pub fn model(&self, notation: &str) -> Option<&Modelled> {
        self.models.iter().find(|model| model.notation == notation)
    }
}

/// Whether an answer is of runs from an empty station.
pub(crate) fn is_of_runs(answer: &Answer) -> bool {
    matches!(answer.by, By::Simulation { runs: Some(_), .. })
}

/// The value of a factor among settings.
fn value_of<'a>(settings: &'a [(String, String)], factor: &str) -> &'a str {
    settings.iter().find(|(name, _)| name == factor).map_or("", |(_, value)| value)
}

/// The values of some factors in words: "length 3 kB, cache off".
pub(crate) fn words(factors: &[Factor], settings: &[(String, String)]) -> String {
    let word = |factor: &Factor| {
        let value = value_of(settings, &factor.name);
        format!("{} {}", factor.name, with_unit(value, &factor.unit))
    };
    factors.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// A value with its unit: "80/s", "20 ms".
pub(crate) fn with_unit(value: &str, unit: &str) -> String {
    let space = if unit.is_empty() || unit.starts_with(['/', '%']) { "" } else { " " };
    format!("{value}{space}{unit}")
}
