//! The meaning of a finding for the reader.

use kendall_evidence::check::Check;
use serde::{Deserialize, Serialize};

/// The meaning of a finding for the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The finding answers the question of the experiment.
    Answer,
    /// The finding explains a result.
    Note,
    /// The finding is a reason to doubt a number.
    Doubt,
}

/// What a broken assumption means to the reader: a doubt where numbers are not what they seem, else a note on the model.
pub(super) fn of_broken(check: Check) -> Severity {
    match check {
        Check::Rate
        | Check::OpenLoop
        | Check::WarmUp
        | Check::Retries
        | Check::InteractiveLaw
        | Check::ClockResolution
        | Check::InstantsInOrder
        | Check::Servers
        | Check::Shares => Severity::Doubt,
        _ => Severity::Note,
    }
}
