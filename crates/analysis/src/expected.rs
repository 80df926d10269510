//! The expectations of a system with their measurements, as a table.

use kendall_evidence::expect::ExpectationVerdict;

use crate::report::Report;
use crate::report::expected::ExpectedAt;
use crate::report::factor::Factor;
use crate::table::Table;

/// The expectations, failed ones first; without rows if nothing was expected.
pub fn table(report: &Report) -> Table {
    let mut head: Vec<String> = report.factors.iter().map(|factor| factor.name.clone()).collect();
    head.extend(["expected", "verdict", "seen"].map(str::to_owned));
    let mut expected: Vec<&ExpectedAt> = report.expected.iter().collect();
    expected.sort_by_key(|expected| match expected.judged.verdict {
        ExpectationVerdict::Failed => 0,
        ExpectationVerdict::Undecided => 1,
        ExpectationVerdict::Met => 2,
    });
    let row = |expected: &&ExpectedAt| {
        let level = |factor: &Factor| {
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
