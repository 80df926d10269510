//! What must hold for any table of measured points, and for objectives and expectations as users write them.

use kendall_testbed::fuzz::Target;

use crate::compare::table as runs;
use crate::expect::Expectation;
use crate::fit::Slo;
use crate::table::Table;

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[
    Target { name: "evidence-table", seeds: table_seeds, run: table },
    Target { name: "evidence-texts", seeds: text_seeds, run: texts },
];

/// A table has rows, not more than bytes. The same text is read as runs.
fn table(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(table) = Table::read(text) {
        assert!(!table.rows.is_empty() && table.rows.len() <= text.len());
        let _ = (table.warnings(), table.understood());
        for row in &table.rows {
            let _ = (row.place(), row.service_s(), row.open_rate_per_s(), row.busy(2.0));
        }
    }
    if let Ok((metrics, runs)) = runs::read(text) {
        assert!(!metrics.is_empty() && !runs.is_empty() && runs.len() <= text.len());
    }
}

fn table_seeds() -> Vec<Vec<u8>> {
    [
        "rate_per_s,mean_ms,p99_us,utilisation,name\n10,5,7000,50%,a\n20,6.5,9000,0.6,b\n",
        "users;think_s;throughput;response_s\n5;1;4,5;0.1\n",
        "block\tmean\n1\t2\n1\t3\n",
        "[{\"rate\": 5, \"mean_ms\": 3}]",
        "1\n2\n3\n",
    ]
    .map(Vec::from)
    .to_vec()
}

/// What is read is read again as it is shown.
fn texts(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(expectation) = text.parse::<Expectation>() {
        let shown = expectation.to_string();
        assert_eq!(shown.parse::<Expectation>().map(|again| again.to_string()).ok(), Some(shown));
    }
    if let Ok(slo) = text.parse::<Slo>() {
        let shown = slo.to_string();
        assert!(shown.parse::<Slo>().is_ok(), "{shown}");
    }
}

fn text_seeds() -> Vec<Vec<u8>> {
    ["p99<50ms", "mean<=1.5s", "errors<1%", "throughput>100/s", "p99.9 < 2 min"].map(Vec::from).to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
