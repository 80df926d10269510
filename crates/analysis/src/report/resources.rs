//! The use of resources by server, generator and machine in a trial that was watched.

use kendall_probe::{Profile, Summary};
use serde::{Deserialize, Serialize};

use crate::bottleneck::Bottleneck;
use crate::request_split::RequestSplit;

/// The measurements of resources while a trial ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// The trial.
    pub trial: String,
    /// The index of the trial's point, if it is in the answers.
    pub point: Option<usize>,
    /// The use of resources by server, generator and machine.
    pub summary: Summary,
    /// The resource that limited the server.
    pub limit: Option<Bottleneck>,
    /// The split of the time of one request in the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<RequestSplit>,
    /// The stacks of the server, where they were sampled.
    pub profile: Option<Profile>,
}

impl Resources {
    /// The cores that the server used; 0 where it was not watched.
    pub fn server_cores(&self) -> f64 {
        self.summary.server.as_ref().map_or(0.0, |server| server.cpu_cores)
    }

    /// The one of several trials in which the server used most.
    pub fn busiest(all: &[Self]) -> Option<&Self> {
        all.iter().max_by(|a, b| a.server_cores().total_cmp(&b.server_cores()))
    }
}
