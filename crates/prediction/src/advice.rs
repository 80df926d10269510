//! What would make a prediction better, and why there may be none.

use std::fmt;

use kendall_evidence::fit::Slo;
use kendall_stats::number::{percent, significant, time};
use serde::{Deserialize, Serialize};

/// A measure that would make the interval of a prediction narrower.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Advice {
    /// Runs of that length scatter that much; a longer run would measure its quantile better.
    LongerRun {
        /// The length at which the scatter of p99 is ± 10 %.
        duration_s: f64,
    },
    /// The capacity was not measured.
    MeasureCapacity,
    /// The capacity differs from one minute to the next, and response times near saturation differ by many times as much.
    SteadierCapacity {
        /// The standard deviation of the capacity in another minute, over its mean.
        relative_sd: f64,
    },
    /// The measured loads do not distinguish the stations that may be there.
    HigherLoad {
        /// A rate that would.
        rate_per_s: f64,
    },
    /// The law of the service times is not known well enough.
    MoreRequests {
        /// How many times as long the low loads have to be, for ± 10 %.
        times: f64,
    },
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongerRun { duration_s } => write!(
                f,
                "Most of the width of the interval of p99 is the scatter of runs of this length, not of the measured ones: a run of {} would \
                 measure its p99 to ± 10 %.",
                time(*duration_s)
            ),
            Self::MeasureCapacity => f.write_str(
                "The capacity was not measured, and an error of 1 % in it moves the response time near saturation by many per cent: \
                 measure it with a closed load (kendall load URL --users 64 -d 20s --record results/full) and name that record, too.",
            ),
            Self::SteadierCapacity { relative_sd } => write!(
                f,
                "Most of the width of the interval of p99 is that of the capacity, which is known to {} for the minute of the run: a \
                 machine changes its speed. Longer loads do not help; more measurements of the capacity, minutes apart, do where they \
                 agree.",
                percent(*relative_sd)
            ),
            Self::HigherLoad { rate_per_s } => write!(
                f,
                "The measured loads are too low to show how many servers there are and in which order they serve: measure at about {}/s \
                 as well, for a minute.",
                significant(*rate_per_s, 2)
            ),
            Self::MoreRequests { times } => write!(
                f,
                "The distribution of service times is known from too few requests: measure the low loads for {} times as long, for ± 10 %.",
                significant(*times, 2)
            ),
        }
    }
}

/// The reason why there is no prediction.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoPrediction {
    #[error(
        "overload: the rate of {}/s exceeds the capacity of {}/s, so the queue would grow as long as the run lasts; predict a lower rate",
        significant(*.rate_per_s, 4), significant(*.capacity_per_s, 4)
    )]
    Overload { rate_per_s: f64, capacity_per_s: f64 },
    #[error("class {0} of the mix was not measured; measure it first")]
    UnmeasuredClass(usize),
    #[error("no rate meets {0}: a single request at an idle server takes longer")]
    NeverMet(Slo),
}
