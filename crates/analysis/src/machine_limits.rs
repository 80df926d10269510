//! The limits that the machine sets for a system, as a run measured them, and those that the best trials reached.
//!
//! By the utilisation law, the share of a limit that is used is throughput × demand of a request ÷ limit.

use std::fmt;

use kendall_archive::read_json;
use kendall_experiment::{Combination, RunFolder, settings};
use kendall_record::RecordError;
use kendall_stats::number::{NONE, percent, significant, time};
use kendall_system::Demand;
use serde::{Deserialize, Serialize};

use crate::report::Report;
use crate::report::limits::{LimitUnit, LimitUse, LimitsUsed};
use crate::table::Table;

/// The file in the folder of a run that keeps the limits that were measured.
pub const LIMITS: &str = "limits.json";
/// From this share on, a limit binds: a part of each flush, and of each request, is work that the bare limit does not have.
const BINDS: f64 = 0.8;
/// Below this share, no limit is near.
const NEAR: f64 = 0.5;

/// The limits for one way of serving and asking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SettingsLimits {
    /// The settings of server and workload.
    pub settings: String,
    /// Each limit.
    pub limits: Vec<MeasuredLimit>,
}

/// One measured limit of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeasuredLimit {
    /// The limit's name.
    pub name: String,
    /// The part of the limit that requests use.
    pub demand: LimitDemand,
    /// The measured value.
    pub value: MeasuredValue,
}

/// The use of a limit by requests, which also determines its unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitDemand {
    /// A request uses one unit for each connection; the measured limit is the number of connections per second.
    Connections,
    /// A request uses one unit for each event that the server counts under this name; the measured limit is the number of
    /// events per second.
    Counted(String),
    /// Processor time; measured are the seconds of a core that the mean request takes.
    Processors,
}

impl From<Demand> for LimitDemand {
    fn from(demand: Demand) -> Self {
        match demand {
            Demand::Connections => Self::Connections,
            Demand::Counted(name) => Self::Counted(name.to_owned()),
            Demand::Processors => Self::Processors,
        }
    }
}

/// The result of measuring a limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MeasuredValue {
    /// A number in the unit of the demand.
    Value(f64),
    /// The limit was not measured, for this reason.
    NotMeasured(String),
}

impl SettingsLimits {
    /// All limits that were measured in a run; none in the record of an older version.
    ///
    /// # Errors
    /// Fails where their file cannot be read.
    pub fn read(run: &RunFolder) -> Result<Vec<Self>, RecordError> {
        let file = run.folder().join(LIMITS);
        if file.exists() { read_json(&file) } else { Ok(Vec::new()) }
    }

    /// The limits of a combination, if any were measured.
    pub fn of<'k>(combination: &Combination, known: &'k [Self]) -> Option<&'k [MeasuredLimit]> {
        let settings = settings(combination);
        known.iter().find(|known| known.settings == settings).map(|known| &*known.limits)
    }
}

/// The limit of the machine that a trial reached. Its clause is its `Display`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "binding")]
#[expect(missing_docs, reason = "the fields are the numbers of the clause")]
pub enum Binding {
    /// This limit binds: the best trial reached it.
    Binds { limit: String, share: f64, others: f64 },
    /// No limit binds, and this one is nearest.
    Nearest { limit: String, share: f64, others: f64 },
    /// No limit is near.
    Free { limit: String, share: f64 },
}

/// Which limit a trial came up against; `None` where none was measured.
pub fn binding(used: &LimitsUsed) -> Option<Binding> {
    // What keeps the processors busy binds as well as they do, and says more.
    let part = largest(used, |one| !one.is_whole_machine).filter(|(_, share)| *share >= BINDS);
    let (found, share) = part.or_else(|| largest(used, |_| true))?;
    let (limit, others) = (found.name.clone(), found.others / found.allowed);
    Some(match share {
        share if share >= BINDS => Binding::Binds { limit, share, others },
        share if share >= NEAR => Binding::Nearest { limit, share, others },
        share => Binding::Free { limit, share },
    })
}

/// The limit of which the largest share is used, among some.
fn largest(used: &LimitsUsed, among: impl Fn(&LimitUse) -> bool) -> Option<(&LimitUse, f64)> {
    let shares = used.uses.iter().filter(|one| among(one)).map(|one| (one, one.share(used.throughput_per_s)));
    shares.max_by(|a, b| a.1.total_cmp(&b.1))
}

impl Binding {
    /// The word of this verdict in the table, in the row of its limit.
    fn word(&self) -> &'static str {
        match self {
            Self::Binds { .. } => "binds",
            Self::Nearest { .. } => "nearest",
            Self::Free { .. } => NONE,
        }
    }

    fn limit(&self) -> &str {
        match self {
            Self::Binds { limit, .. } | Self::Nearest { limit, .. } | Self::Free { limit, .. } => limit,
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_others = |others: &f64| match *others >= 0.01 {
            true => format!(", {} by other programs", percent(*others)),
            false => String::new(),
        };
        match self {
            Self::Binds { limit, share, others } => {
                write!(
                    f,
                    "a limit of the machine is reached: {limit}, {} used{}.",
                    percent(*share),
                    by_others(others)
                )
            }
            Self::Nearest { limit, share, others } => write!(
                f,
                "no limit of the machine is reached; the nearest is {limit}, {} used{}.",
                percent(*share),
                by_others(others)
            ),
            Self::Free { limit, share } => write!(
                f,
                "no limit of the machine is near; the nearest is {limit}, {} used. Something else limits the throughput, such as \
                 requests that wait for each other.",
                percent(*share)
            ),
        }
    }
}

/// The title of the table.
pub const TITLE: &str = "Limits of this machine";

/// The explanation of the table.
pub const CAPTION: &str = "Each limit was measured separately, before the trials; processor time is that of server and generator in \
                           the trial. The best trial is the one of the highest throughput. Share used = throughput × demand of a \
                           request ÷ limit; the share of the processors includes other programs, such as a database. More than 100 %: \
                           the machine was faster during the trial than during the measurement.";

/// The limits and the best trial of each group of points; without rows where none were measured.
pub fn table(report: &Report) -> Table {
    let mut head = report.place_head();
    let own = ["limit", "the machine allows", "a request uses", "best throughput", "share used", "verdict"];
    head.extend(own.map(str::to_owned));
    let mut rows = Vec::new();
    for used in &report.machine_limits {
        let Some(point) = report.points.get(used.point) else { continue };
        let binding = binding(used);
        for one in &used.uses {
            let verdict = binding.as_ref().filter(|binding| binding.limit() == one.name);
            let mut row = report.place_cells(point);
            row.extend([
                one.name.clone(),
                amount(one.unit, one.allowed),
                demand(one),
                per_s(used.throughput_per_s),
                percent(one.share(used.throughput_per_s)),
                verdict.map_or_else(String::new, |binding| binding.word().to_owned()),
            ]);
            rows.push(row);
        }
    }
    Table { head, rows }
}

/// The reason why limits are missing, as sentences.
pub fn missing(report: &Report) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for sentence in report.machine_limits.iter().flat_map(|used| &used.missing) {
        if !sentences.contains(sentence) {
            sentences.push(sentence.clone());
        }
    }
    sentences
}

fn per_s(rate: f64) -> String {
    format!("{}/s", significant(rate, 3))
}

fn amount(unit: LimitUnit, amount: f64) -> String {
    match unit {
        LimitUnit::PerSecond => per_s(amount),
        LimitUnit::Cores => format!("{} cores", significant(amount, 2)),
    }
}

fn demand(one: &LimitUse) -> String {
    match one.unit {
        LimitUnit::PerSecond => significant(one.per_request, 2),
        LimitUnit::Cores => time(one.per_request),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &str, allowed: f64, per_request: f64) -> LimitUse {
        let (unit, name) = (LimitUnit::PerSecond, name.to_owned());
        LimitUse { name, unit, allowed, per_request, others: 0.0, is_whole_machine: false }
    }

    fn processors(per_request: f64, others: f64) -> LimitUse {
        let unit = LimitUnit::Cores;
        LimitUse { unit, others, is_whole_machine: true, ..limit("processors", 2.0, per_request) }
    }

    /// At 1000 requests a second.
    fn said(uses: Vec<LimitUse>) -> String {
        let used = LimitsUsed {
            point: 0,
            trial: String::new(),
            throughput_per_s: 1000.0,
            uses,
            missing: Vec::new(),
        };
        binding(&used).map_or_else(String::new, |binding| binding.to_string())
    }

    #[test]
    fn the_share_of_a_limit_is_throughput_times_demand_over_the_limit() {
        assert!((limit("fdatasync", 500.0, 0.1).share(1000.0) - 0.2).abs() < 1e-12);
        assert!((processors(1e-3, 0.4).share(1000.0) - 0.7).abs() < 1e-12);
    }

    #[test]
    fn the_limit_with_the_largest_share_binds() {
        let words = said(vec![limit("fdatasync", 500.0, 0.45), limit("accepts", 9000.0, 1.0)]);
        assert_eq!(words, "a limit of the machine is reached: fdatasync, 90 % used.");
        let words = said(vec![limit("fdatasync", 500.0, 0.1), limit("accepts", 1600.0, 1.0)]);
        assert_eq!(words, "no limit of the machine is reached; the nearest is accepts, 62 % used.");
        let words = said(vec![limit("fdatasync", 500.0, 0.1), processors(5e-4, 0.2)]);
        assert!(words.contains("the nearest is processors, 35 % used. Something else limits"), "{words}");
        assert_eq!(said(vec![]), "");
    }

    /// Whatever computes uses the processors as well.
    #[test]
    fn a_limit_that_binds_is_named_before_the_processors_that_it_keeps_busy() {
        let words = said(vec![limit("passwords", 2.0, 1.7e-3), processors(1.9e-3, 0.0)]);
        assert!(words.contains("is reached: passwords, 85 % used."), "{words}");
        let words = said(vec![limit("passwords", 2.0, 1.5e-3), processors(1.2e-3, 0.7)]);
        assert!(words.ends_with("is reached: processors, 95 % used, 35 % by other programs."), "{words}");
    }
}
