//! The reason why a trial fails.

use kendall_agents::FleetError;
use kendall_link::LinkError;
use kendall_load::LoadError;
use kendall_probe::ProbeError;
use kendall_record::RecordError;

use crate::server::ServerError;

/// The reason why a trial could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TrialError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Agents(#[from] FleetError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the trial cannot be watched: {0}; [probe] every = \"off\" does without")]
    Probe(#[from] ProbeError),
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error("the relay that emulates the link failed: {0}")]
    Relay(Box<ServerError>),
    #[error("the workload of {system} cannot be made: {why}")]
    Workload { system: &'static str, why: String },
    #[error("the server answered nothing in {seconds} s under full load, so its capacity cannot be found")]
    NoCapacity { seconds: f64 },
    #[error("the server answered no single request correctly, so its service time cannot be found")]
    NothingAlone,
    #[error("the server cannot be found: {0}")]
    Nowhere(String),
}
