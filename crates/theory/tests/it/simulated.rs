//! The invariants of every simulated network.

use kendall_simulation::NetworkAnswer;
use kendall_station::Estimate;

/// Every customer ends exactly one way.
pub(crate) fn adds_up(answer: &NetworkAnswer) {
    let counts = &answer.counts;
    let ends = counts.served + counts.turned_away + counts.abandoned + counts.broken + counts.inside;
    assert_eq!(ends, counts.arrived, "{counts:?}");
}

/// Within twice the interval, which must be there.
#[track_caller]
pub(crate) fn near(what: &str, found: Estimate, exact: f64) {
    let (low, high) = found.interval.unwrap_or_else(|| panic!("{what} has no interval"));
    // A share's interval may be cut at 0 or 1 on one side.
    let width = 2.0 * (high - found.value).max(found.value - low);
    assert!(
        (found.value - exact).abs() <= width + 1e-12,
        "{what}: {} ± {width}, exactly {exact}",
        found.value
    );
    assert!(width <= 0.5 * exact.abs() + 1e-3, "{what}: {} ± {width} says nothing", found.value);
}
