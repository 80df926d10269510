//! What is tested: how each system is started, loaded and probed, and what it may not lose. Every server and client is a process
//! of the program `kendall`, so nothing here knows a protocol.

mod chat;
mod lab;
mod loaded;
mod remote;
mod running;
mod scene;
mod tunnel;

use std::process::{Command, Output};

use kendall_testbed::DatabaseKind;

pub use loaded::NGINX;
pub use running::{Client, Counts, Load, Running};
pub use scene::{PROBE_LIMIT, Scene, within};

/// How a request or a command of a client ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The complete and correct answer came.
    Right,
    /// An answer came that is not the correct one.
    Wrong(String),
    /// The client got no answer, and reported it.
    Failed(String),
}

/// A program that a system needs beside kendall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// A database server.
    Database(DatabaseKind),
    /// A NATS server; with `true`, it keeps queues on disk.
    Nats(bool),
}

/// A process of kendall that is part of a system.
pub struct Part {
    /// What it is to the system: `server`, `worker`, `agent`, `client`.
    pub role: &'static str,
    /// Starts it.
    pub command: Command,
    /// Text of its output that shows that it is ready.
    pub ready: &'static str,
}

/// The requests of a load.
#[derive(Clone, Copy)]
pub enum Requests {
    /// `kendall load` of this URL, with further options.
    Url(fn(&Scene) -> Vec<String>),
    /// The probe, again and again.
    Probes,
    /// The system makes its own.
    Inside,
}

/// A system under test.
pub struct Subject {
    /// The name in commands and results.
    pub name: &'static str,
    /// The heading of its column in the table.
    pub system: &'static str,
    /// What it needs beside kendall.
    pub peer: Option<Peer>,
    /// Whether its clients send datagrams.
    pub datagrams: bool,
    /// Makes keys, data and networks, before the first start.
    pub prepare: fn(&Scene) -> Result<(), String>,
    /// Its processes, in the order in which they are started. The first is the one that faults of servers hit.
    pub parts: fn(&Scene) -> Vec<Part>,
    /// What loads it.
    pub requests: Requests,
    /// The command of a valid client; the number makes it unique.
    pub probe: fn(&Scene, u64) -> Command,
    /// The memory that its caches take over hours.
    pub cache_bytes: u64,
    /// How that command ended.
    pub judge: fn(&Scene, u64, &Output) -> Outcome,
    /// Whether what that command was acknowledged is still there. `None` where the answer is all that was promised.
    pub is_kept: Option<KeptCheck>,
}

/// Whether the effect of the command with this number is still there; otherwise what is lost.
pub type KeptCheck = fn(&Scene, u64) -> Result<(), String>;

/// All systems.
pub const SUBJECTS: &[Subject] = &[
    loaded::REVERSE,
    loaded::RECOVER,
    loaded::TEXTSEARCH,
    loaded::HOLD,
    chat::SQLITE,
    chat::POSTGRES,
    chat::MARIADB,
    chat::REDIS,
    loaded::TRANSPORT,
    remote::CURVE,
    remote::COPY,
    remote::SHELL,
    tunnel::TUNNEL,
    loaded::WEB,
    loaded::CLUSTER,
    loaded::AGENTS,
    lab::LAB,
];

/// The system of this name.
pub fn subject(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|subject| subject.name == name)
}
