//! The times that figures of points can show.

use kendall_station::{Answer, Estimate};

use kendall_analysis::Curve;

/// A time of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// The mean response time.
    Response,
    /// The mean waiting time.
    Waiting,
    /// The mean of weight × response time.
    Weighted,
}

impl Shown {
    /// The time's name within a sentence.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Response => "mean response time",
            Self::Waiting => "mean waiting time",
            Self::Weighted => "weighted response",
        }
    }

    /// The time's name at the head of a figure.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Response => "Mean response time",
            Self::Waiting => "Mean waiting time",
            Self::Weighted => "Weighted response",
        }
    }

    /// What an answer says of it.
    pub(super) fn of(self, answer: &Answer) -> Option<Estimate> {
        match self {
            Self::Response => Some(answer.response.mean_s),
            Self::Waiting => Some(answer.waiting.mean_s),
            Self::Weighted => answer.weighted_response_s,
        }
    }

    /// The line of a formula along the first factor; empty if it does not give this time.
    pub(super) fn along(self, curve: &Curve) -> &[(f64, f64)] {
        match self {
            Self::Response => &curve.mean_response_s,
            Self::Waiting => &curve.mean_waiting_s,
            Self::Weighted => &[],
        }
    }
}
