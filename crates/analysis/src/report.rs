//! The data of a report: the results of the analysis, for drawings and findings.
//!
//! Times are in seconds, rates per second. Every number is finite; an unknown value is absent (`None`).

pub mod effects;
pub mod expected;
pub mod factor;
pub mod limits;
pub mod link;
pub mod point;
pub mod published;
pub mod resources;
pub mod scaling;
pub mod trial;
pub mod trial_view;

use kendall_evidence::expect::Expectation;
use kendall_evidence::expect::ExpectationVerdict;
use kendall_experiment::Letter;
use serde::{Deserialize, Serialize};

use crate::report::effects::EffectsSeen;
use crate::report::expected::ExpectedAt;
use crate::report::factor::{Factor, FactorKind, place, words};
use crate::report::limits::LimitsUsed;
use crate::report::link::TrialLink;
use crate::report::point::{Curve, Point};
use crate::report::published::Published;
use crate::report::resources::Resources;
use crate::report::scaling::Scaling;
use crate::report::trial::TrialLine;
use crate::report::trial_view::TrialView;
use crate::traffic::Traffic;

/// Everything a report shows of one experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the experiment.
    pub name: String,
    /// The question of the experiment, as one sentence.
    pub question: String,
    /// The explanation of the question, in plain paragraphs with an empty line between them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub notes: String,
    /// The start of the first trial, in UTC, as "2026-11-21 04:15:00".
    pub started_utc: String,
    /// The command that runs it again.
    pub command: String,
    /// The machine and the versions: what, and its value.
    pub machine: Vec<(String, String)>,
    /// The factors that were varied. The first one is the horizontal axis; the others, if any, make groups.
    pub factors: Vec<Factor>,
    /// The letters that abbreviate values of factors that are too long for a table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub letters: Vec<Letter>,
    /// The points, one for each combination of factors, in the order of the tables.
    pub points: Vec<Point>,
    /// Each trial, in the order in which they were run.
    pub trials: Vec<TrialLine>,
    /// The view of each trial that counts, in the order of `trials`. It is not in the JSON of the report: the rows are in the
    /// record, and `kendall export` writes them.
    #[serde(skip)]
    pub trial_views: Vec<TrialView>,
    /// The measurements of the emulated link before each trial; empty without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<TrialLink>,
    /// The traffic over the emulated link along time, in one trial of each combination. It is not in the JSON of the report: the
    /// link's own log is in the record.
    #[serde(skip)]
    pub traffic: Traffic,
    /// How many trials the experiment plans; more than `trials` has where it was interrupted.
    pub planned_trials: usize,
    /// Smooth lines of formulas, for the figure; without them the figure joins the formula's answers at the points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub curves: Vec<Curve>,
    /// The capacity of the system, for each group of points that shows it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scaling: Vec<Scaling>,
    /// The effect of each factor, on each measure with enough data.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectsSeen>,
    /// Figures that others published of the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<Published>,
    /// The assumptions of the models, each with its verdict at its point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<kendall_evidence::check::Finding>,
    /// The expectations at each point, judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<ExpectedAt>,
    /// Reasons to doubt the run as a whole, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<String>,
    /// The use of resources by server, generator and machine in the trials that were watched.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<Resources>,
    /// The limits of the machine, and the part that the best trial of each group used; empty where nothing was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_limits: Vec<LimitsUsed>,
    /// The experiment as run, every default written out.
    pub experiment_toml: String,
}

impl Report {
    /// The report as JSON, for programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has only text keys")
    }

    /// Where a point is, in words: "80/s", or "80/s with length 3" with several factors.
    pub fn place(&self, point: &Point) -> String {
        place(&self.factors, &point.settings)
    }

    /// Where a point is within its group, in words: by the first factor only, such as "80/s".
    pub fn place_in_group(&self, point: &Point) -> String {
        place(&self.factors[..self.factors.len().min(1)], &point.settings)
    }

    /// Whether the first factor has categories, which are shown next to each other.
    pub fn is_categorical(&self) -> bool {
        self.factors.first().is_some_and(|factor| factor.kind == FactorKind::Category)
    }

    /// The points under headings: those of one heading differ in the last factor only. Headings are the other factors'
    /// values in words, empty with a single factor.
    pub fn headings(&self) -> Vec<(String, Vec<&Point>)> {
        let others = &self.factors[..self.factors.len().saturating_sub(1)];
        self.grouped(|point| words(others, &point.settings))
    }

    /// The points in groups: those of one group differ in the first factor only, and are in its order. Groups are in the order
    /// of their first points, each with its name ("length 3"), empty with a single factor.
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
    pub fn group_name(&self, settings: &[(String, String)]) -> String {
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

    /// Whether the capacity of a station is limited, so that the share of lost requests is worth showing.
    pub fn is_limited(&self) -> bool {
        self.points.iter().any(|point| point.capacity.is_some())
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

    /// The heads of the columns that name a point.
    pub fn place_head(&self) -> Vec<String> {
        self.factors.iter().map(Factor::title).collect()
    }

    /// The cells that name a point.
    pub fn place_cells(&self, point: &Point) -> Vec<String> {
        self.factors.iter().map(|factor| point.setting(&factor.name).to_owned()).collect()
    }

    /// The worst verdict over all that was expected; `None` where nothing was.
    pub fn verdict(&self) -> Option<ExpectationVerdict> {
        let judged = self.expected.iter().map(|expected| &expected.judged);
        (!self.expected.is_empty()).then(|| Expectation::overall(judged))
    }
}
