//! The exit status of commands that judge expectations.

use clap::{Args, ValueEnum};
use kendall_evidence::expect::ExpectationVerdict;

/// Exit status where an expectation or an objective failed, or one side of a comparison is worse.
pub(crate) const NOT_AS_EXPECTED: u8 = 4;
/// Exit status where nothing failed, and something could not be decided.
pub(crate) const UNDECIDED: u8 = 3;

/// What a gate lets pass.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct Gate {
    /// Exit with status 0 instead of 3 if a result is undecided: an expectation, a difference, a peak without a range, or a load that
    /// the system could not sustain
    #[arg(long, value_name = "WHAT")]
    allow: Option<Allowed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Allowed {
    Undecided,
}

impl Gate {
    /// Whether an undecided expectation passes.
    pub(crate) fn allows_undecided(self) -> bool {
        self.allow == Some(Allowed::Undecided)
    }

    /// The exit status for the worst verdict of a run. If the system could not keep up with the load, an expectation that is met
    /// may fail in a longer run, so it counts as undecided.
    pub(crate) fn status(self, verdict: Option<ExpectationVerdict>, kept_up: bool) -> u8 {
        match verdict {
            None => 0,
            Some(ExpectationVerdict::Failed) => NOT_AS_EXPECTED,
            Some(ExpectationVerdict::Met) if kept_up => 0,
            Some(_) if self.allows_undecided() => 0,
            Some(_) => UNDECIDED,
        }
    }
}
