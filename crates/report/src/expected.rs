//! What was expected of a system beside what was seen, as a table.

use kendall_evidence::expect::{Judged, Verdict};
use serde::{Deserialize, Serialize};

use crate::figure::Table;
use crate::model::Report;

/// An expectation at one combination, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedAt {
    /// Factor and value, as in [`crate::Point::settings`].
    pub settings: Vec<(String, String)>,
    /// What was expected, what was seen, and the verdict.
    pub judged: Judged,
}

impl Report {
    /// The worst verdict over all that was expected; `None` where nothing was.
    pub fn verdict(&self) -> Option<Verdict> {
        let judged = self.expected.iter().map(|expected| &expected.judged);
        (!self.expected.is_empty()).then(|| kendall_evidence::expect::Expectation::overall(judged))
    }
}

/// The expectations, those that failed first; without rows where there are none.
pub(crate) fn table(report: &Report) -> Table {
    let mut head: Vec<String> = report.factors.iter().map(|factor| factor.name.clone()).collect();
    head.extend(["expected", "verdict", "seen"].map(str::to_owned));
    let mut expected: Vec<&ExpectedAt> = report.expected.iter().collect();
    expected.sort_by_key(|expected| match expected.judged.verdict {
        Verdict::Failed => 0,
        Verdict::Undecided => 1,
        Verdict::Met => 2,
    });
    let row = |expected: &&ExpectedAt| {
        let level = |factor: &crate::Factor| {
            let own = expected.settings.iter().find(|(name, _)| *name == factor.name);
            own.map_or_else(String::new, |(_, value)| value.clone())
        };
        let mut row: Vec<String> = report.factors.iter().map(level).collect();
        // "p99 < 50 ms: met, 41.0 ms [39.0, 44.0]"
        let words = expected.judged.to_string();
        let (what, rest) = words.split_once(": ").unwrap_or((&words, ""));
        let (verdict, seen) = rest.split_once([',', ':']).unwrap_or((rest, ""));
        row.extend([what, verdict, seen.trim()].map(str::to_owned));
        row
    };
    Table { head, rows: expected.iter().map(row).collect() }
}
