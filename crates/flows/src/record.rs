//! The files of a record: the transport laboratory writes them, and this module reads them.

use std::fs;
use std::path::Path;

use kendall_archive::read_json;
use kendall_archive::series::Series;
use kendall_record::RecordError;
use serde::{Deserialize, Serialize};

/// The description of the run.
pub const ABOUT: &str = "flows.json";
/// The measurements of the client's end.
pub const SEEN: &str = "near.json";
/// Processor times of the server's end, a line for each instant: nanoseconds, then seconds of all threads.
pub const PROCESSOR_TIMES: &str = "far.txt";
/// The folder of the link's own record.
pub const LINK: &str = "link";
/// The list of records in a tournament.
pub const TOURNAMENT: &str = "compete.json";
/// The port of the echoes that run with the flows.
pub const ECHO_PORT: u16 = 5200;

/// The description of a run: the flows, their link, and how they were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The start, in UTC.
    pub started_utc: String,
    /// The command that repeats the run.
    pub command: String,
    /// The link, as settings of hops with > between them.
    pub link: String,
    /// The congestion control of TCP at both ends.
    pub congestion: String,
    /// The seed of losses and delays on the link.
    pub seed: u64,
    /// The kind of the echoes that run with the flows.
    pub echo: String,
    /// The warm-up of the flows, from the start of the last one.
    pub warm_up_s: f64,
    /// The flows, in the order in which the user named them.
    pub flows: Vec<FlowAbout>,
}

/// The description of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowAbout {
    /// The flow's source: "curve", "ssh".
    pub source: String,
    /// The port of its server.
    pub port: u16,
    /// The time between the start of the first flows and the start of this flow.
    pub after_s: f64,
    /// Whether the processor time of both its ends was counted. In old records that is so where both were this program.
    #[serde(alias = "is_ours")]
    pub cpu_is_known: bool,
    /// The direction of its bytes.
    #[serde(default)]
    pub way: LinkDirection,
}

/// The direction of a flow over a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LinkDirection {
    /// From server to client.
    #[default]
    Down,
    /// From client to server.
    Up,
}

impl LinkDirection {
    /// The name in the log of a link.
    pub fn name(self) -> &'static str {
        match self {
            Self::Down => "down",
            Self::Up => "up",
        }
    }
}

impl FlowAbout {
    /// The flow's source, with the direction where that is not the default: "curve", "up:curve".
    pub fn kind(&self) -> String {
        match self.way {
            LinkDirection::Down => self.source.clone(),
            LinkDirection::Up => format!("up:{}", self.source),
        }
    }
}

/// The measurements of the client's end. Instants are of the monotonic clock.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ClientRecord {
    /// Every 100 ms: the instant, the processor time, and all bytes that had arrived of each flow.
    pub ticks: Vec<Tick>,
    /// Echoes: when each was sent and how long it took, if it came back.
    pub echoes: Vec<(i64, Option<i64>)>,
    /// When the first flows began, or the first connection that succeeded.
    pub from_ns: i64,
    /// How long each connection took from its beginning to its first byte.
    pub handshakes_ns: Vec<i64>,
    /// The reason why flows or handshakes failed.
    pub failures: Vec<String>,
}

/// The totals at an instant.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Tick {
    /// The instant.
    pub at_ns: i64,
    /// The processor time of the client's end.
    pub processor_s: f64,
    /// The bytes that had arrived of each flow.
    pub bytes: Vec<u64>,
}

/// The records of every pair of some sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tournament {
    /// The start, in UTC.
    pub started_utc: String,
    /// The command that repeats the records.
    pub command: String,
    /// The sources, in the order in which the user named them.
    pub kinds: Vec<String>,
    /// The folder of each pair, within that of the tournament.
    pub pairs: Vec<String>,
}

/// The record of a run.
#[derive(Debug)]
pub struct Traces {
    /// The measurements of the client's end.
    pub seen: ClientRecord,
    /// Instants and processor times of the server's end.
    pub far: Vec<(i64, f64)>,
    /// The counts of each flow on each hop, every 10 ms; times count from `start_ns`.
    pub link: Series,
    /// The instant of the monotonic clock from which those of `link` count.
    pub start_ns: i64,
}

#[derive(Deserialize)]
struct LinkRecord {
    start_ns: i64,
}

impl Traces {
    /// Reads the record of a run in a folder.
    ///
    /// # Errors
    /// Fails where a file is missing or invalid.
    pub fn read(folder: &Path) -> Result<Self, RecordError> {
        let seen = read_json(&folder.join(SEEN))?;
        let LinkRecord { start_ns } = read_json(&folder.join(LINK).join("link.json"))?;
        let link = Series::read(&folder.join(LINK).join("link.parquet"))?;
        let times = fs::read_to_string(folder.join(PROCESSOR_TIMES)).unwrap_or_default();
        let far = times.lines().filter_map(|line| {
            let (at_ns, seconds) = line.split_once(' ')?;
            Some((at_ns.parse().ok()?, seconds.parse().ok()?))
        });
        Ok(Self { seen, far: far.collect(), link, start_ns })
    }
}
