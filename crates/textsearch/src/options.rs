//! What a text search server is told at its start.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread::available_parallelism;
use std::time::Duration;

use kendall_service::Config;

use crate::opening::{Layout, OpenOptions};
use crate::protocol::Dialect;
use crate::rows::Form;
use crate::semantics::{Matching, Semantics};

/// How long a client may have a connection open and ask nothing, and how long it may take no byte of its answer. A person who types
/// requests needs some seconds for each.
pub(crate) const IDLE: Duration = Duration::from_secs(30);

/// What a text search server is told at its start. Begin with [`Options::new`].
#[derive(Clone, Debug)]
pub struct Options {
    /// What any server is told: its workers are the servers of the station.
    pub service: Config,
    /// The file of lines `type@@@sentence`.
    pub data: PathBuf,
    /// How it is laid in memory and indexed.
    pub open: OpenOptions,
    /// How requests and answers are framed.
    pub dialect: Dialect,
    /// What patterns mean.
    pub semantics: Semantics,
    /// What is sent of a row.
    pub form: Form,
    /// Threads that search at most: workers, and besides them some that help where a worker is free.
    pub threads: NonZeroUsize,
    /// The longest time that is spent on a request, waiting excluded.
    pub deadline: Duration,
    /// The most memory that answers take which are being made or sent. With more, further requests are refused.
    pub answer_bytes: usize,
    /// The most memory that answers take which are remembered; 0 remembers none.
    pub cache_bytes: usize,
}

impl Options {
    /// The defaults: the statement's dialect, everything found by an index, a worker and a thread for each processor, ten
    /// seconds for a request, 1 GiB for answers, 64 MiB for those that are remembered.
    pub fn new(listen: SocketAddr, data: PathBuf) -> Self {
        Self {
            service: Config { patience: IDLE, ..Config::new(listen) },
            data,
            open: OpenOptions::default(),
            dialect: Dialect::default(),
            semantics: Semantics::default(),
            form: Form::default(),
            threads: available_parallelism().unwrap_or(NonZeroUsize::MIN),
            deadline: Duration::from_secs(10),
            answer_bytes: 1 << 30,
            cache_bytes: 64 << 20,
        }
    }
}

impl FromStr for Layout {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|layout| layout.name() == name);
        known.ok_or_else(|| format!("must be flat, by-type or indexed, not {name:?}"))
    }
}

impl FromStr for Matching {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "find" => Ok(Self::Find),
            "whole" => Ok(Self::Whole),
            _ => Err(format!("must be find or whole, not {name:?}")),
        }
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "row" => Ok(Self::Row),
            "sentence" => Ok(Self::Sentence),
            _ => Err(format!("must be row or sentence, not {name:?}")),
        }
    }
}
