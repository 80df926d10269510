//! The classes that a discipline distinguishes, and their order.

use kendall_station::{Class, Formulas, Knows, Law, Station};

/// Whether a discipline that uses classes has any to distinguish.
pub(super) fn matters(station: &Station) -> bool {
    let order = |class: &Class| urgency(station, class);
    let differ = |pair: &[Class]| order(&pair[0]).total_cmp(&order(&pair[1])).is_ne();
    let knows = station.discipline.formulas() == Formulas::Classes;
    knows && station.classes.windows(2).any(differ)
}

pub(super) fn law_of<'a>(station: &'a Station, class: &'a Class) -> &'a Law {
    class.service.as_ref().unwrap_or(&station.service)
}

/// The urgency of a class; the larger goes first.
pub(super) fn urgency(station: &Station, class: &Class) -> f64 {
    match station.discipline.knows() {
        Knows::WeightAndMean => class.weight / law_of(station, class).mean_s(),
        Knows::Nothing | Knows::Weight | Knows::WeightAndLaw | Knows::Size => class.weight,
    }
}
