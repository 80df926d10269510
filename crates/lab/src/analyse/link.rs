//! What a trial's record says of its link, as a report shows it.

use kendall_link::calibrate::{Judged, Quantity, Side};
use kendall_report::{LinkProperty, LinkQuantity, TrialLink};
use kendall_station::Estimate;

use crate::link::LinkRecord;

/// The link of one trial.
pub(super) fn link(trial: &str, record: &LinkRecord) -> TrialLink {
    let ways = [&record.outcome.up, &record.outcome.down];
    let late = ways.iter().filter_map(|way| way.late.as_ref()).map(|late| [late.p50_ns, late.p99_ns, late.max_ns]);
    // That of the worse way.
    let late = late.reduce(|one, other| std::array::from_fn(|i| one[i].max(other[i])));
    let rows = record.measured.iter().flat_map(|measured| &measured.rows);
    TrialLink {
        trial: trial.to_owned(),
        emulated: record.emulated.clone(),
        properties: rows.map(property).collect(),
        late_s: late.map(|late_ns| late_ns.map(|ns| ns as f64 / 1e9)),
    }
}

fn property(row: &Judged) -> LinkProperty {
    let measured = row.measured.as_ref();
    LinkProperty {
        way: match row.side {
            Side::Up => "up",
            Side::Down => "down",
        }
        .to_owned(),
        quantity: match row.quantity {
            Quantity::Delay => LinkQuantity::Delay,
            Quantity::Jitter => LinkQuantity::Jitter,
            Quantity::Rate => LinkQuantity::Rate,
            Quantity::Loss => LinkQuantity::Loss,
        },
        asked: row.asked,
        measured: measured.map(|found| Estimate { value: found.value, interval: Some((found.low, found.high)) }),
        holds: row.holds(),
    }
}
