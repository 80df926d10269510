//! What kendall and the process that emulates a link say to each other: a line of JSON each.

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

/// What is asked of the emulator.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Lay the link; nothing passes yet.
    Lay { back_end: BackEnd, congestion: Option<String> },
    /// Let packets pass, and keep the logs in files of these names if there are any.
    Start { up: Hops, down: Hops, seed: u64, log: Option<PathBuf> },
    /// Let nothing pass any more, and say what was done; write the log as a table counted from an instant.
    Stop { table: Option<(PathBuf, i64)> },
}

/// What the emulator answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The link is laid; the files behind its namespaces are open in the emulator under these numbers.
    Laid {
        privilege: Privilege,
        client: RawFd,
        server: RawFd,
        notes: Vec<String>,
    },
    Started,
    Stopped(Box<Outcome>),
    Refused(String),
}

pub(crate) fn say(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    to.write_all(&line)?;
    to.flush()
}

/// The next message; `None` where the other side is gone.
pub(crate) fn hear<T: DeserializeOwned>(from: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = String::new();
    match from.read_line(&mut line)? {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_str(&line)?)),
    }
}
