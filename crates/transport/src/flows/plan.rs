//! The conventions of the two ends of a link and their caller: the plan, files and ports.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::peer::Peer;
use super::source::{Flow, Source};
use super::tunnel::Tunnel;

/// The plan of a run, which its caller writes into the shared folder.
pub(crate) const PLAN: &str = "plan.json";
/// The error of the far end, if any.
pub(crate) const TROUBLE: &str = "far.error";
/// The interval at which both ends record their observations.
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// The plan of both ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) task: Task,
    /// The source of the echoes alongside the flows.
    pub(crate) echo: Source,
    /// The congestion control of TCP within tunnels; the link sets its own.
    pub(crate) congestion: String,
    /// A folder for keys of this run only, outside the record.
    pub(crate) secrets: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// After some time without flows, these flows for this long after they have begun.
    Flows { flows: Vec<Flow>, idle: Duration, lasting: Duration, moving_after: Option<Duration> },
    /// The task opens this many connections, one after the other, and sends a byte over each.
    Handshakes { source: Source, count: u32 },
}

impl Plan {
    /// The third-party programs for its flows or handshakes.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        Peer::ALL.into_iter().filter(|peer| self.needs(Source::Peer(*peer))).collect()
    }

    /// The tunnels for its flows or handshakes.
    pub(crate) fn tunnels(&self) -> Vec<Tunnel> {
        let is_needed = |tunnel: &Tunnel| {
            let source = Source::Tunnel(*tunnel);
            self.needs(source) || self.echo == source
        };
        Tunnel::ALL.into_iter().filter(is_needed).collect()
    }

    /// The folder of the keys of a program that answers echoes; its flows have separate ones.
    pub(crate) fn echo_secrets(&self) -> PathBuf {
        self.secrets.join("echo")
    }

    fn needs(&self, wanted: Source) -> bool {
        match &self.task {
            Task::Flows { flows, .. } => flows.iter().any(|flow| flow.source == wanted),
            Task::Handshakes { source, .. } => *source == wanted,
        }
    }
}
