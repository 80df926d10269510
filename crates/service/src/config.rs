//! The configuration of a server.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread::available_parallelism;
use std::time::Duration;

use kendall_station::Discipline;

/// The configuration of a server. Begin with [`Config::new`] and replace what should differ.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Worker threads: the servers of the station. By default one per processor.
    pub workers: NonZeroUsize,
    /// The order of service.
    pub discipline: Discipline,
    /// The address of the HTTP endpoint for metrics, if any.
    pub metrics: Option<SocketAddr>,
    /// The file for the server's own stamps of each answered request, if any.
    pub stamps: Option<PathBuf>,
    /// The most open connections; the server rejects further ones.
    pub max_connections: usize,
    /// The most requests that wait while all workers are busy; the server rejects further ones. In Kendall's
    /// notation the capacity of the station is `workers + max_waiting`.
    pub max_waiting: usize,
    /// How long a client may send nothing while the server waits for a request or the rest of one, and how long
    /// it may read no byte of an answer. Waiting for service has no limit.
    pub patience: Duration,
    /// The longest time for a request to arrive completely, however steadily it trickles in. Counted from its
    /// first byte: an idle connection is a matter of `patience`.
    pub request_deadline: Duration,
    /// How long admitted requests may continue after a shutdown begins, before the server rejects them.
    pub grace: Duration,
    /// How long a worker serves before it checks whether a more urgent request waits.
    pub chunk: Duration,
}

impl Config {
    /// The defaults: FIFO, a worker per processor, at most 16,384 connections and as many waiting requests, 10 s
    /// of patience, 60 s for a request to arrive, 5 s of grace, chunks of 1 ms, neither metrics nor stamps.
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
