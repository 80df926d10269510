//! The messages between kendall and the process that emulates a link: lines of JSON.

use std::io::{self, BufRead, Write};
use std::os::fd::RawFd;
use std::path::PathBuf;

use kendall_linkmodel::Settings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::back_end::BackEnd;
use crate::error::LinkError;
use crate::namespace::Privilege;
use crate::outcome::Outcome;

/// The settings of a link: of its hops from client to server, and from server to client.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSettings {
    /// The hops from client to server, in the order in which packets cross them.
    pub up: Vec<Settings>,
    /// The hops from server to client, in the order in which packets cross them.
    pub down: Vec<Settings>,
}

/// The settings of hops as text, which reads back as the same.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hops(Vec<String>);

impl From<&[Settings]> for Hops {
    fn from(settings: &[Settings]) -> Self {
        Self(settings.iter().map(ToString::to_string).collect())
    }
}

impl Hops {
    pub(crate) fn read(&self) -> Result<Vec<Settings>, LinkError> {
        self.0.iter().map(|text| Ok(text.parse()?)).collect()
    }
}

/// A request to the emulator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Sets up the link, without forwarding.
    Lay { back_end: BackEnd, congestion: Option<String> },
    /// Starts to forward, and writes the logs to these files if there are any.
    Start { up: Hops, down: Hops, seed: u64, log: Option<PathBuf> },
    /// Stops forwarding and replies with the counts. Writes the log as a table with times from an instant.
    Stop { table: Option<(PathBuf, i64)> },
}

/// A reply of the emulator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The link is set up; these are the numbers under which the emulator holds the files of its namespaces.
    SetUp {
        privilege: Privilege,
        client: RawFd,
        server: RawFd,
        notes: Vec<String>,
    },
    Started,
    Stopped(Box<Outcome>),
    Refused(String),
}

pub(crate) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// The next message; `None` where the other side has closed.
pub(crate) fn receive<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_str(&line)?)),
    }
}
