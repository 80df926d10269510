//! The stations that an experiment names as models, and what differs between the stations of its systems.

use crate::models::Varied;
use kendall_station::Notation;
use kendall_system::StationShape;

use kendall_experiment::Combination;
use kendall_experiment::RunFolder;

/// What differs between the stations of the combinations.
pub(super) fn varied(run: &RunFolder) -> Varied {
    let of = |combination: &Combination| (run.experiment().system.station)(&combination.server);
    let shapes: Vec<StationShape> = run.combinations().iter().map(of).collect();
    let varies = |differ: fn(&StationShape, &StationShape) -> bool| {
        shapes.windows(2).any(|pair| differ(&pair[0], &pair[1]))
    };
    Varied {
        discipline: varies(|a, b| a.discipline != b.discipline),
        capacity: varies(|a, b| a.capacity != b.capacity),
    }
}

/// The stations that the experiment names as models.
pub(super) fn named(run: &RunFolder) -> Vec<Notation> {
    run.experiment().models.iter().map(|model| model.station.clone()).collect()
}
