//! What the machine itself allows, beside what a trial used of it.

use serde::{Deserialize, Serialize};

/// What a trial used of the machine's limits: the one of the highest throughput among points that differ in the first factor only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitsUsed {
    /// Its point, as an index into `Report::points`.
    pub point: usize,
    /// The name of its folder.
    pub trial: String,
    /// Its throughput.
    pub throughput_per_s: f64,
    /// Each limit, in the order of the system, and the processors at the end.
    pub uses: Vec<LimitUse>,
    /// Why other limits are missing, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
}

/// One limit, and what requests use of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LimitUse {
    /// Its name.
    pub name: String,
    /// What it is measured in.
    pub unit: LimitUnit,
    /// What the machine allows, in this unit.
    pub allowed: f64,
    /// What a request uses: how many of it, or seconds of a core.
    pub per_request: f64,
    /// What other programs used of it, in this unit, as far as that is known.
    #[serde(default)]
    pub others: f64,
    /// Whether it is the processors as a whole, of which other limits are a part.
    #[serde(default)]
    pub is_whole_machine: bool,
}

/// What a limit is measured in.
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
