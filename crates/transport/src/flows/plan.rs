//! What the two ends of a link and their caller agree on: the plan, files and ports.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::peer::Peer;
use super::source::{Flow, Source};
use super::tunnel::Tunnel;

/// The plan of a run, as its caller writes it into the folder that all share.
pub(crate) const PLAN: &str = "plan.json";
/// What went wrong at the far end, if anything.
pub(crate) const TROUBLE: &str = "far.error";
/// How often both ends write down what they see.
pub(crate) const EVERY: Duration = Duration::from_millis(100);
/// What both ends are to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) task: Task,
    /// What carries the echoes beside the flows.
    pub(crate) echo: Source,
    /// The congestion control of TCP within tunnels; that of the link is the link's.
    pub(crate) congestion: String,
    /// A folder for keys that exist for this run only, outside the record.
    pub(crate) secrets: PathBuf,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Task {
    /// After some time without flows, these flows for this long after they have begun.
    Flows { flows: Vec<Flow>, idle: Duration, lasting: Duration, moving_after: Option<Duration> },
    /// This many connections, one after the other, with a byte each.
    Handshakes { source: Source, count: u32 },
}

impl Plan {
    /// The programs that others wrote and that its flows or handshakes need.
    pub(crate) fn peers(&self) -> Vec<Peer> {
        Peer::ALL.into_iter().filter(|peer| self.needs(Source::Peer(*peer))).collect()
    }

    /// The tunnels that it needs.
    pub(crate) fn tunnels(&self) -> Vec<Tunnel> {
        let is_needed = |tunnel: &Tunnel| {
            let source = Source::Tunnel(*tunnel);
            self.needs(source) || self.echo == source
        };
        Tunnel::ALL.into_iter().filter(is_needed).collect()
    }

    /// The folder of the keys of a program that answers echoes; its flows have their own.
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
