//! A run replayed through a station of the caller's.

use std::path::Path;

use kendall_evidence::{NotReplayed, Replay, Rules};
use kendall_experiment::{Combination, RunError, RunFolder};
use kendall_station::Notation;
use kendall_system::System;
use serde::Serialize;

use super::Sample;
use crate::attempts::{done, usual};
use crate::axis::Axis;
use crate::candidates;
use crate::report::factor::words;
use crate::trial_result::row_classes;

/// A point of a run, and its requests replayed through a station.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayedPoint {
    /// The values of the factors: "rate 80/s, length 3".
    pub place: String,
    /// The replay; its pairs are perhaps thinned.
    #[serde(flatten)]
    pub replay: Replay,
}

/// The reason why no point of a run was replayed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ReplayError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    NotReplayed(#[from] NotReplayed),
    #[error("{0} has no finished trial to replay")]
    Empty(String),
}

/// Replays each point of a run through the servers, the capacity and the order of service of a station; without a capacity or an
/// order, it has that of the system. Arrivals and service times are those of the run. Points that cannot be replayed are left out.
///
/// # Errors
/// Fails where the folder holds no run, and where no point can be replayed.
pub fn replays(
    folder: &Path,
    systems: &'static [System],
    station: &Notation,
) -> Result<Vec<ReplayedPoint>, ReplayError> {
    let run = RunFolder::open(folder, systems)?;
    let axis = Axis::of(&run, &run.capacities().map_err(RunError::from)?);
    let usual = usual(&run, &done(&run).map_err(RunError::from)?);
    let factors = axis.factors(&run);
    let replayed = |(index, combination): (usize, &Combination)| {
        let sample = Sample::read(&run, index, &usual);
        let first = sample.trials.first()?;
        let own = (run.experiment().system.station)(&combination.server);
        let rules = Rules {
            servers: station.servers,
            discipline: station.discipline.unwrap_or(own.discipline),
            capacity: station.capacity.or(own.capacity),
            classes: &row_classes(&first.result.classes),
        };
        let place = words(&factors, &axis.settings(combination));
        let replay = candidates::replayed_through(&sample.views(), &rules);
        Some(replay.map(|replay| ReplayedPoint { place, replay }))
    };
    let all: Vec<Result<ReplayedPoint, NotReplayed>> =
        axis.in_order(&run).into_iter().filter_map(replayed).collect();
    if all.iter().any(Result::is_ok) {
        return Ok(all.into_iter().flatten().collect());
    }
    match all.into_iter().find_map(Result::err) {
        Some(why) => Err(why.into()),
        None => Err(ReplayError::Empty(folder.display().to_string())),
    }
}
