//! The stations that an experiment names as models, and whether its systems serve in one order.

use kendall_analysis::models::Order;
use kendall_station::Notation;

use crate::experiment::Combination;
use crate::lab::Lab;

/// Whether the combinations differ in their order of service.
pub(super) fn order(lab: &Lab) -> Order {
    let of = |combination: &Combination| (lab.experiment().system.station)(&combination.server).1;
    let mut all = lab.combinations().iter().map(of);
    let first = all.next();
    if all.all(|discipline| Some(discipline) == first) { Order::Same } else { Order::Varied }
}

/// The stations that the experiment names as models.
pub(super) fn named(lab: &Lab) -> Vec<Notation> {
    lab.experiment().models.iter().map(|model| model.station.clone()).collect()
}
