//! Replay: a run's own arrivals and service times go through a station, request by request.
//!
//! A formula and a simulation describe a run by a rate and a distribution, so they differ from it at random even if the model is right:
//! at 90 % utilisation, by tens of per cent in a thousand requests. A replay knows the run itself. What it predicts differs from what
//! was measured only where the station is another one, which shows in a few hundred requests.
//!
//! The station gets the instants at which the requests reached the server and what each kept a server busy, and nothing of
//! how long any of them waited. The send lag of a request is added to its own prediction, since the station does not cause it.
//! The delay outside, from the client and back to it, is added as one number for all requests: its median. So no measured
//! waiting leaks into a prediction.

mod candidates;
mod fit;
mod serve;
mod visits;

use kendall_station::{Discipline, Servers};
use serde::{Deserialize, Serialize};

pub use candidates::{Candidate, Candidates, ReplayVerdict, candidates};
pub use fit::{Fit, Pair, QuantileError};
pub use serve::{Visit, departures};

use crate::{RowClass, Trial};
use visits::Visits;

/// The properties of a station that a replay needs in addition to the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules<'a> {
    /// How many servers.
    pub servers: Servers,
    /// The order in which the servers serve.
    pub discipline: Discipline,
    /// Room for this many requests, waiting and in service; `None` is unlimited.
    pub capacity: Option<u64>,
    /// The classes of the rows by number, for their weights; a row of no class weighs 1.
    pub classes: &'a [RowClass],
}

impl<'a> Rules<'a> {
    /// Unlimited room.
    pub fn new(servers: Servers, discipline: Discipline, classes: &'a [RowClass]) -> Self {
        Self { servers, discipline, capacity: None, classes }
    }

    fn weight(&self, class: usize) -> f64 {
        self.classes.get(class).map_or(1.0, |class| class.weight)
    }
}

/// Whence the instants of arrival at the station are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivedBy {
    /// The server stamped when it had each request.
    Server,
    /// The client's instants: when each request was sent (or due, where that is unknown), and half the delay outside the station.
    Client,
}

/// A run and its replay through one station.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replay {
    /// The servers of the station.
    pub servers: Servers,
    /// The station's order of service.
    pub discipline: Discipline,
    /// Requests that went through it and were answered after the warm-up, so that they can be compared.
    pub compared: u64,
    /// The station's capacity, in requests waiting and in service; `None` is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// Requests whose service time is not known, so that they had no part in the replay: those that were lost.
    pub left_out: u64,
    /// Requests that were answered and for which the replay had no room.
    pub turned_away: u64,
    /// The number of requests that the server rejected and that found this capacity in use, as it was. A replay with unlimited capacity
    /// leaves them out, as lost for another reason.
    #[serde(default)]
    pub refused_too: u64,
    /// The logarithm of the likelihood of the observed rejections if this capacity decides, relative to random rejections.
    #[serde(default)]
    pub refusal_evidence: f64,
    /// Whence the instants of arrival are known.
    pub arrived_by: ArrivedBy,
    /// The median delay outside the station, in seconds, which every prediction includes.
    pub delay_s: f64,
    /// The errors of the predictions.
    pub fit: Fit,
    /// Each request that was compared, in order of arrival.
    pub pairs: Vec<Pair>,
}

/// The reason why a run cannot be replayed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NotReplayed {
    #[error(
        "the server reported a service time for none of the {requests} requests, so the run cannot be replayed; start the server with \
         --stamps"
    )]
    NoService { requests: usize },
    #[error("no request whose service time is known was answered after the warm-up; run longer")]
    NothingToCompare,
}

/// Sends the requests of each trial through a station of these rules that is empty at first, and compares what it predicts
/// with what was measured, over all trials together. The warm-up goes through the station too, and is not compared.
///
/// Shortest-remaining is given true service times; Gittins and cµ the distribution of those measured in the class.
///
/// # Errors
/// Fails where no service time is known, and where none of those requests was answered after the warm-up.
pub fn replay(trials: &[Trial<'_>], rules: &Rules<'_>) -> Result<Replay, NotReplayed> {
    let visits = Visits::of(trials)?;
    Ok(visits.replay(rules))
}
