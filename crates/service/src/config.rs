//! What a server is told at its start.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use kendall_station::Discipline;

/// What a server is told at its start. Begin with [`Config::new`] and replace what should differ.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Worker threads: the servers of the station. By default one per processor.
    pub workers: NonZeroUsize,
    /// The order of service.
    pub discipline: Discipline,
    /// Where to answer HTTP requests for metrics, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// Where to write the server's own stamps of each answered request, if anywhere.
    pub stamps: Option<PathBuf>,
    /// Connections open at a time; more are refused.
    pub max_connections: usize,
    /// Requests that may wait while all workers are busy; more are refused. In Kendall's notation the station
    /// has room for `workers + max_waiting`.
    pub max_waiting: usize,
    /// How long a client may send nothing while a request of its is awaited or half there, and how long it may
    /// take no byte of an answer. Waiting for service has no limit.
    pub patience: Duration,
    /// How long a request may take to arrive in full, however steadily it trickles in. Counted from the opening
    /// of the connection, or from the answer before it.
    pub request_deadline: Duration,
    /// How long requests already admitted may go on after shutdown was asked for, before they are refused.
    pub grace: Duration,
    /// How long a worker serves before it looks up to see whether somebody more urgent waits.
    pub chunk: Duration,
}

impl Config {
    /// The defaults: FIFO, a worker per processor, room for 16,384 connections and as many waiting requests,
    /// 10 s of patience, 60 s for a request to arrive, 5 s of grace, chunks of 1 ms, neither metrics nor stamps.
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            workers: available_parallelism().unwrap_or(NonZeroUsize::MIN),
            discipline: Discipline::Fifo,
            metrics: None,
            stamps: None,
            max_connections: 16_384,
            max_waiting: 16_384,
            patience: Duration::from_secs(10),
            request_deadline: Duration::from_secs(60),
            grace: Duration::from_secs(5),
            chunk: Duration::from_millis(1),
        }
    }
}
