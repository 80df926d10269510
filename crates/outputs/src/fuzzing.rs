//! What must hold for any text that another load generator may have printed.

use kendall_testbed::fuzz::Target;

use crate::read;

/// The parser of this crate.
pub const TARGETS: &[Target] = &[Target { name: "outputs-text", seeds, run }];

/// Whatever is read has a tool and ordered quantiles, each of which is found, and not more quantiles than bytes.
fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match read(text) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(outputs) => {
            for output in outputs.into_iter().flatten() {
                assert!(!output.tool.is_empty() && output.quantiles_s.len() <= text.len());
                assert!(output.quantiles_s.is_sorted_by(|a, b| a.0.total_cmp(&b.0).is_lt()));
                assert!(output.lost().is_none_or(|share| (0.0..=1.0).contains(&share)));
            }
        }
    }
}

fn seeds() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../testdata/fortio.json").to_vec(),
        include_bytes!("../testdata/hey.csv").to_vec(),
        include_bytes!("../testdata/hey.txt").to_vec(),
        include_bytes!("../testdata/hyperfine.json").to_vec(),
        include_bytes!("../testdata/k6-handle-summary.json").to_vec(),
        include_bytes!("../testdata/k6-summary-export.json").to_vec(),
        include_bytes!("../testdata/locust_stats.csv").to_vec(),
        include_bytes!("../testdata/oha.json").to_vec(),
        include_bytes!("../testdata/oha.txt").to_vec(),
        include_bytes!("../testdata/vegeta.json").to_vec(),
        include_bytes!("../testdata/vegeta.txt").to_vec(),
        include_bytes!("../testdata/wrk.txt").to_vec(),
        include_bytes!("../testdata/wrk2.txt").to_vec(),
    ]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
