//! The part of a trial's `answer.json` about the resources that were watched in it.

use std::path::Path;

use kendall_load::RunSummary;
use kendall_probe::{Profile, Summary};
use serde::{Deserialize, Serialize};

use crate::bottleneck::{AnswersSeen, Bottleneck, LoadSeen, bottleneck};
use crate::generator::GeneratorVerdict;
use crate::report::resources::Resources;
use crate::request_split::RequestSplit;

/// The sampled stacks of a trial, in its folder.
pub const STACKS: &str = "profile.folded";
/// The longest file of stacks that is read.
const MOST_STACKS_BYTES: u64 = 256_000_000;

/// The measurements of resources in a trial, as in its `answer.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ResourceRecord {
    /// The process that was taken for the server, if one was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<u32>,
    /// The use of resources by server, generator and machine.
    pub summary: Summary,
    /// The resource that limited the server, where it is judged with the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bottleneck>,
    /// The split of the time of one request in the server, where it is judged with the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<RequestSplit>,
    /// Stacks, if they were sampled; in a record they are in a separate file, and this is its description.
    pub profile: Option<Profile>,
}

impl ResourceRecord {
    /// The record, with the stacks from its folder.
    #[must_use]
    pub fn with_stacks_of(mut self, folder: &Path) -> Self {
        let stacks = || {
            let bytes = kendall_files::read(&folder.join(STACKS), MOST_STACKS_BYTES).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        self.profile = self.profile.map(|profile| profile.with_stacks(&stacks()));
        self
    }

    /// The record with a judgement: the resource that limited the server in a run with this verdict on its generator and these
    /// answers, and the parts of the mean request's time.
    #[must_use]
    pub fn judged(self, run: &RunSummary, verdict: &GeneratorVerdict, answers: AnswersSeen) -> Self {
        let send_lag_p99_s = run.lag.p99_ns as f64 / 1e9;
        let limit = bottleneck(&self.summary, Some(&LoadSeen { answers, send_lag_p99_s, verdict }));
        let split = RequestSplit::of(&self.summary, &answers);
        Self { limit, split, ..self }
    }

    /// For a report: with the stacks that lie in the trial's folder.
    pub(crate) fn resources(self, trial: &str, point: Option<usize>, folder: &Path) -> Resources {
        let Self { summary, limit, split, profile, .. } = self.with_stacks_of(folder);
        Resources { trial: trial.into(), point, summary, limit, split, profile }
    }
}
