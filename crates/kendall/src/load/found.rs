//! What a load run found: the schema of `kendall load --json` and of a recorded load's `answer.json`.

use std::process::ExitCode;

use kendall_analysis::generator::GeneratorVerdict;
use kendall_evidence::Score;
use kendall_evidence::expect::{self, Expectation, Judged, Measure};
use kendall_evidence::streamed::Streamed;
use kendall_load::RunSummary;
use kendall_record::Outcome;
use kendall_report::export::suite::Suite;
use serde::{Deserialize, Serialize};

use super::watched::Watched;
use crate::{INTERRUPTED, NOT_AS_EXPECTED};

/// The version of the schema. Fields may be added; where one changes its meaning or goes, this goes up.
pub(crate) const SCHEMA: u32 = 2;

/// What a load run found.
#[derive(Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) schema: u32,
    pub(crate) target: String,
    pub(crate) seed: u64,
    /// When it began, in UTC.
    pub(crate) started_utc: String,
    /// The command that makes the same run again.
    pub(crate) again: String,
    pub(crate) offered_per_s: Option<f64>,
    /// Who limited the run: the server, or the generator.
    pub(crate) verdict: GeneratorVerdict,
    /// What the clients saw, or `None` where they saw nothing.
    pub(crate) seen: Option<Streamed>,
    /// Why they saw nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) nothing_seen: Option<String>,
    /// What was expected, judged.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) expectations: Vec<Judged>,
    /// What precision was asked for, and reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) precision: Option<PrecisionFound>,
    /// What the server used, if it was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) resources: Option<Watched>,
    /// What the requests cost, by class and in all, if any was due after the warm-up.
    pub(crate) score: Option<Score>,
    /// The generator's own account.
    pub(crate) run: RunSummary,
}

/// What precision was asked for, and reached.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct PrecisionFound {
    /// Half the interval over the value.
    pub(crate) wanted: f64,
    pub(crate) of: Measure,
    /// `None` where there are too few requests to say.
    pub(crate) reached: Option<f64>,
    /// About how many requests more it would take; 0 where it is reached.
    pub(crate) missing: Option<u64>,
}

impl Found {
    /// Requests that were due before this are in no number, in nanoseconds since the start.
    pub(crate) fn warmup_ns(&self) -> i64 {
        self.seen.as_ref().map_or(0, |seen| (seen.warmup.used_s * 1e9).round() as i64)
    }

    /// What was expected of it.
    pub(crate) fn suite(&self) -> Suite<'_> {
        let (limits, doubts) = (self.verdict.limits.iter(), self.verdict.doubts.iter());
        let limits = limits.map(|limit| format!("the generator limited it: {limit}"));
        Suite {
            name: self.target.clone(),
            started_utc: self.started_utc.clone(),
            cases: self.expectations.iter().map(|judged| (String::new(), judged)).collect(),
            doubts: limits.chain(doubts.map(ToString::to_string)).collect(),
        }
    }

    /// The status to exit with.
    pub(crate) fn status(&self, interrupted: bool) -> ExitCode {
        let failed = Expectation::overall(&self.expectations) == expect::Verdict::Failed;
        match (interrupted, self.run.count(Outcome::Answered)) {
            (true, _) => ExitCode::from(INTERRUPTED),
            (false, 0) => ExitCode::FAILURE,
            (false, _) if failed => ExitCode::from(NOT_AS_EXPECTED),
            (false, _) => ExitCode::SUCCESS,
        }
    }
}
