//! The messages between a fleet and its agents. All are bounded, and an agent checks what it reads.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::job::Job;

/// A change of the messages changes this number; an agent of another number takes no part.
pub(crate) const PROTOCOL: u32 = 1;
/// The subject on which a fleet looks for agents.
pub(crate) const HELLO: &str = "kendall.agents.hello";
/// The largest message, below the usual limit of a NATS server.
pub(crate) const MOST_BYTES: usize = 900_000;

/// The subject on which an agent takes orders.
pub(crate) fn orders(agent: &str) -> String {
    format!("kendall.agent.{agent}")
}

/// The subject on which the agent with this place in a run reports.
pub(crate) fn reports(run: &str, place: &str) -> String {
    format!("kendall.agents.run.{run}.{place}")
}

/// A drawn name of an agent or a run.
pub(crate) fn drawn_name() -> String {
    use std::hash::BuildHasher as _;
    let draw = || std::collections::hash_map::RandomState::new().hash_one(kendall_record::clock::now_ns());
    format!("{:016x}", draw())
}

/// Whether a text can be part of a subject, and be shown.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// An agent, as it answers a fleet that looks for agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    pub(crate) id: String,
    /// The name of its machine, or what its command line calls it.
    pub(crate) name: String,
    pub(crate) version: String,
    /// Whether it sends a load already.
    pub(crate) is_busy: bool,
}

/// An order of a fleet to one agent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Order {
    /// Report your clock.
    Clock,
    /// Set up a share of a load.
    Prepare { run: String, place: u32, job: Box<Job> },
    /// Start at this instant of your clock.
    Start { run: String, at_ns: i64 },
    /// The fleet is still there.
    Alive { run: String },
    /// Send no further request, and wait for those in flight.
    Enough { run: String },
    /// Stop at once.
    Stop { run: String },
}

/// The reply to an order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Reply {
    /// The agent's clock.
    Clock {
        now_ns: i64,
    },
    Done,
    Refused {
        why: String,
    },
}

/// What an agent reports of its requests every 100 ms.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Beat {
    pub(crate) sent: u64,
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
}

/// The first byte of a report.
pub(crate) const ROWS: u8 = b'r';
pub(crate) const BEAT: u8 = b'b';
pub(crate) const PART: u8 = b'p';
pub(crate) const FAILED: u8 = b'f';

/// Reads a message of JSON.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    (bytes.len() <= MOST_BYTES).then(|| serde_json::from_slice(bytes).ok()).flatten()
}

/// Writes a message of JSON.
pub(crate) fn write(message: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(message).expect("messages have names as keys")
}
