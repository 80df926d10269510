//! What `kendall link` leaves on disk: a link that was asked for, what was measured of it, and what it did.

use kendall_link::calibrate::Calibration;
use kendall_link::relay::Relayed;
use kendall_link::{LinkSettings, Outcome};
use kendall_linkmodel::Settings;
use serde::Serialize;

/// What a link was asked to be and what it did.
#[derive(Debug, Serialize)]
pub struct LinkRun {
    /// How it was emulated.
    pub link: String,
    /// The seed of all that chance decided.
    pub seed: u64,
    /// What was asked for.
    #[serde(flatten)]
    pub asked: LinkHops,
    /// What was measured of it before it was used.
    pub measured: Option<Calibration>,
    /// What it did.
    pub outcome: Outcome,
}

/// The hops as asked for, each way in the order in which packets cross them.
#[derive(Debug, Serialize)]
pub struct LinkHops {
    /// From client to server.
    pub up: Vec<String>,
    /// And back.
    pub down: Vec<String>,
}

impl From<&LinkSettings> for LinkHops {
    fn from(asked: &LinkSettings) -> Self {
        let written = |way: &[Settings]| way.iter().map(ToString::to_string).collect();
        Self { up: written(&asked.up), down: written(&asked.down) }
    }
}

/// `link.json`: what a command did over a link.
#[derive(Debug, Serialize)]
pub struct LinkRunRecord<'a> {
    /// The command.
    pub command: &'a [String],
    /// The instant from which those of `link.parquet` count, by the monotonic clock of the machine.
    pub start_ns: i64,
    /// The link.
    #[serde(flatten)]
    pub run: &'a LinkRun,
}

/// What a relay leaves on disk.
#[derive(Debug, Serialize)]
pub struct RelayRecord<'a> {
    /// How the link was emulated, and how that differs from a link.
    pub link: &'a str,
    /// The seed of all that chance decided.
    pub seed: u64,
    /// The link that was asked for, from client to server.
    pub up: String,
    /// And back.
    pub down: String,
    /// What the relay did.
    pub relayed: &'a Relayed,
}
