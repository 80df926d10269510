//! The options of a text search server.

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

/// How long a client may keep a connection open without a request, and how long it may read no byte of its answer. A person who
/// types requests needs some seconds for each.
pub(crate) const IDLE: Duration = Duration::from_secs(30);

/// The options of a text search server. Begin with [`TextSearchOptions::new`].
#[derive(Clone, Debug)]
pub struct TextSearchOptions {
    /// The options of every server: its workers are the servers of the station.
    pub service: Config,
    /// The file of lines `type@@@sentence`.
    pub data: PathBuf,
    /// The layout in memory and the index.
    pub open: OpenOptions,
    /// The framing of requests and answers.
    pub dialect: Dialect,
    /// The semantics of patterns.
    pub semantics: Semantics,
    /// The part of a row that is sent.
    pub form: Form,
    /// The most threads that search: workers, and further ones that help while a worker is free.
    pub threads: NonZeroUsize,
    /// The longest time for a request, waiting excluded.
    pub deadline: Duration,
    /// The most memory of answers that are being computed or sent. Beyond it, the server rejects further requests.
    pub answer_bytes: usize,
    /// The most memory of cached answers; 0 caches none.
    pub cache_bytes: usize,
    /// The most memory of compiled patterns kept for later requests, and of their searches; 0 keeps none.
    pub pattern_bytes: usize,
}

impl TextSearchOptions {
    /// The defaults: the statement's dialect, all rows indexed, a worker and a thread for each processor, ten seconds for a
    /// request, 1 GiB for answers, 64 MiB for cached ones, and as much for compiled patterns.
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
            pattern_bytes: 64 << 20,
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
