//! The limits of the machine, and the part that a trial used.

use serde::{Deserialize, Serialize};

/// The part of the machine's limits that a trial used: the trial of the highest throughput among points that differ in the first
/// factor only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitsUsed {
    /// The index of the trial's point in `Report::points`.
    pub point: usize,
    /// The name of its folder.
    pub trial: String,
    /// The trial's throughput.
    pub throughput_per_s: f64,
    /// Each limit, in the order of the system, and the processors at the end.
    pub uses: Vec<LimitUse>,
    /// The reason why other limits are missing, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One limit, and the part of it that requests use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitUse {
    /// The limit's name.
    pub name: String,
    /// The unit of the limit.
    pub unit: LimitUnit,
    /// The measured limit of the machine, in this unit.
    pub allowed: f64,
    /// The use of a request: a number of units, or seconds of a core.
    pub per_request: f64,
    /// The use by other programs, in this unit, as far as it is known.
    #[serde(default)]
    pub others: f64,
    /// Whether the limit is that of all processors together, of which other limits are a part.
    #[serde(default)]
    pub is_whole_machine: bool,
}

/// The unit of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitUnit {
    /// How many a second.
    PerSecond,
    /// Cores of the machine.
    Cores,
}

impl LimitUse {
    /// The share of it that is used at a throughput.
    pub fn share(&self, throughput_per_s: f64) -> f64 {
        (throughput_per_s * self.per_request + self.others) / self.allowed
    }
}
