//! The records of `kendall link`: the settings of a link, its calibration, and its counts.

use kendall_link::calibrate::Calibration;
use kendall_link::relay::Relayed;
use kendall_link::{LinkSettings, Outcome};
use kendall_linkmodel::Settings;
use serde::Serialize;

/// The settings of a link and its counts.
#[derive(Debug, Serialize)]
pub struct LinkRun {
    /// How the link was emulated.
    pub link: String,
    /// The seed of everything random.
    pub seed: u64,
    /// The requested settings of the link.
    #[serde(flatten)]
    pub asked: LinkHops,
    /// The calibration of the link before use.
    pub measured: Option<Calibration>,
    /// The counts of the link.
    pub outcome: Outcome,
}

/// The hops as given, in each direction in the order in which packets cross them.
#[derive(Debug, Serialize)]
pub struct LinkHops {
    /// From client to server.
    pub up: Vec<String>,
    /// From server to client.
    pub down: Vec<String>,
}

impl From<&LinkSettings> for LinkHops {
    fn from(asked: &LinkSettings) -> Self {
        let written = |way: &[Settings]| way.iter().map(ToString::to_string).collect();
        Self { up: written(&asked.up), down: written(&asked.down) }
    }
}

/// `link.json`: a command that ran over a link.
#[derive(Debug, Serialize)]
pub struct LinkRunRecord<'a> {
    /// The command.
    pub command: &'a [String],
    /// The instant from which times in `link.parquet` count, by the monotonic clock of the machine.
    pub start_ns: i64,
    /// The link.
    #[serde(flatten)]
    pub run: &'a LinkRun,
}

/// The record of a relay.
#[derive(Debug, Serialize)]
pub struct RelayRecord<'a> {
    /// How the link was emulated, and how the emulation differs from a real link.
    pub link: &'a str,
    /// The seed of everything random.
    pub seed: u64,
    /// The settings of the link, from client to server.
    pub up: String,
    /// From server to client.
    pub down: String,
    /// The counts of the relay.
    pub relayed: &'a Relayed,
}
