//! The emulated link of a trial, as a report shows it.

use kendall_link::calibrate::{Calibration, Judged, Quantity, Side};
use kendall_link::{LatenessSummary, Outcome};
use kendall_station::Estimate;

use crate::report::link::{LinkProperty, LinkQuantity, TrialLink};
use crate::trial_result::LinkRecord;

/// What was asked of the link that a trial crossed, what was measured, and how late the emulator was.
pub(super) fn link(trial: &str, record: &LinkRecord) -> TrialLink {
    let LinkRecord { emulated, differs, measured, outcome, .. } = record;
    let rows = measured.iter().flat_map(|Calibration { rows, .. }| rows);
    TrialLink {
        trial: trial.to_owned(),
        emulated: emulated.clone(),
        differs: differs.clone(),
        properties: rows.map(property).collect(),
        late_s: late_s(outcome),
    }
}

fn property(row: &Judged) -> LinkProperty {
    let way = match row.side {
        Side::Up => "up",
        Side::Down => "down",
    };
    let quantity = match row.quantity {
        Quantity::Delay => LinkQuantity::Delay,
        Quantity::Jitter => LinkQuantity::Jitter,
        Quantity::Rate => LinkQuantity::Rate,
        Quantity::Loss => LinkQuantity::Loss,
    };
    let measured = row.measured.map(|of| Estimate { value: of.value, interval: Some((of.low, of.high)) });
    LinkProperty { way: way.to_owned(), quantity, asked: row.asked, measured, holds: row.holds() }
}

/// The later of both ways.
fn late_s(outcome: &Outcome) -> Option<[f64; 3]> {
    let of_way = |late: &LatenessSummary| [late.p50_ns, late.p99_ns, late.max_ns].map(|ns| ns as f64 / 1e9);
    let ways = [&outcome.up.late, &outcome.down.late].into_iter().flatten().map(of_way);
    ways.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1]), a[2].max(b[2])])
}
