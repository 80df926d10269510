//! What must hold for any value of a parameter. Secrets have no target, because what is concealed stays in a table of the process.

use kendall_testbed::fuzz::Target;

use crate::{Kind, named_law, read_time};

/// The parser of this crate.
pub const TARGETS: &[Target] = &[Target { name: "system-values", seeds: value_seeds, run: values }];

/// A value is read again as it is shown.
fn values(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let number = Kind::Number { least: -1e6, most: 1e6 };
    for kind in
        [Kind::Whole { least: 1, most: 9_000 }, number, Kind::Rate, Kind::Switch, Kind::File, Kind::Time]
    {
        if let Ok(value) = kind.read(text) {
            let shown = value.to_string();
            let again = kind.read(&shown).unwrap_or_else(|why| panic!("{shown:?} of {text:?} {why}"));
            assert_eq!(again.to_string(), shown);
        }
    }
    let _ = (read_time(text), named_law(text, 0.1, None).is_ok());
}

fn value_seeds() -> Vec<Vec<u8>> {
    ["8999", "-1.5e3", "20%", "600/min", "on", "12.5us", "90s", "hyperexponential"].map(Vec::from).to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
