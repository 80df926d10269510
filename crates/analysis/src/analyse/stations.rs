//! The stations that an experiment names as models, and whether its systems serve in one order.

use crate::models::Order;
use kendall_station::Notation;

use kendall_experiment::Combination;
use kendall_experiment::RunFolder;

/// Whether the combinations differ in their order of service.
pub(super) fn order(run: &RunFolder) -> Order {
    let of = |combination: &Combination| (run.experiment().system.station)(&combination.server).1;
    let mut all = run.combinations().iter().map(of);
    let first = all.next();
    if all.all(|discipline| Some(discipline) == first) { Order::Same } else { Order::Varied }
}

/// The stations that the experiment names as models.
pub(super) fn named(run: &RunFolder) -> Vec<Notation> {
    run.experiment().models.iter().map(|model| model.station.clone()).collect()
}
