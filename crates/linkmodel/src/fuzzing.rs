//! What must hold for any settings of a link as users write them.

use kendall_testbed::fuzz::Target;

use crate::{Jitter, Loss, Rate, Settings};

/// The parsers of this crate.
pub const TARGETS: &[Target] = &[Target { name: "linkmodel-settings", seeds, run }];

/// Settings that are read are valid, and are read again as they are shown.
fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    if let Ok(settings) = text.parse::<Settings>() {
        assert_eq!(settings.check(), Ok(()));
        let shown = settings.to_string();
        let again = shown.parse::<Settings>().map(|again| again.to_string());
        assert_eq!(again, Ok(shown));
    }
    let _ = (text.parse::<Rate>(), text.parse::<Loss>(), text.parse::<Jitter>());
}

fn seeds() -> Vec<Vec<u8>> {
    [
        "delay=20ms jitter=2ms pareto-normal rate=10mbit 2s, 0 500ms overhead=38 queue=64KiB loss=1% burst 5 corrupt=0.01%",
        "delay=5ms rate=1gbit aqm=codel target 5ms interval 100ms no-ecn loss=gilbert-elliott 1% 20% 100% 0% wire=64M",
        "delay=50ms aqm=fq-codel duplicate=0.1% reorder=1% distance 3 within 50ms",
    ]
    .map(Vec::from)
    .to_vec()
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
