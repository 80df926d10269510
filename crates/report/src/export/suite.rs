//! The expectations of a run as a suite of tests.

use kendall_analysis::{Report, TrialResult};
use kendall_evidence::expect::Judged;

/// The expectations of one run.
#[derive(Clone, Debug)]
pub struct Suite<'a> {
    /// The name of the experiment, or the target of the load.
    pub name: String,
    /// The start of the run, in UTC: "2026-11-21T04:15:00Z", or with a space for the T.
    pub started_utc: String,
    /// The place and the expectation of each test case.
    pub cases: Vec<(String, &'a Judged)>,
    /// Whether an expectation that cannot be decided is skipped; otherwise it fails.
    pub allows_undecided: bool,
    /// Every reason to doubt the run, as sentences or clauses.
    pub doubts: Vec<String>,
}

impl<'a> Suite<'a> {
    /// The expectations of an experiment.
    pub fn of(report: &'a Report) -> Self {
        let place = |settings: &[(String, String)]| -> String {
            let settings: Vec<String> =
                settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
            settings.join(",")
        };
        let cases = report.expected.iter().map(|expected| (place(&expected.settings), &expected.judged));
        let of_trials = report.trials.iter().flat_map(|trial| {
            trial.limits.iter().chain(&trial.doubts).map(move |doubt| format!("trial {}: {doubt}", trial.id))
        });
        Self {
            name: report.name.clone(),
            started_utc: report.started_utc.clone(),
            cases: cases.collect(),
            allows_undecided: false,
            doubts: report.doubts.iter().cloned().chain(of_trials).collect(),
        }
    }

    /// The expectations of a single load.
    pub fn of_load(result: &'a TrialResult) -> Self {
        let (limits, doubts) = (result.verdict.limits.iter(), result.verdict.doubts.iter());
        let limits = limits.map(|limit| format!("the generator limited it: {limit}"));
        Self {
            name: result.target.clone().unwrap_or_default(),
            started_utc: result.started_utc.clone().unwrap_or_default(),
            cases: result.expectations.iter().map(|judged| (String::new(), judged)).collect(),
            allows_undecided: false,
            doubts: limits.chain(doubts.map(ToString::to_string)).collect(),
        }
    }
}
