//! The options of a server of hash reversal.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use kendall_cluster::Cluster;
use kendall_digest::Engine;
use kendall_digest::gpu::Device;
use kendall_service::Config;
use kendall_station::Discipline;

use crate::memory::Memory;

/// How searches are assigned to threads and processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Execution {
    /// One thread serves one request at a time.
    Sequential,
    /// A process for each request, all at the same time: the operating system shares the processors among them.
    ProcessPerRequest,
    /// A pool of threads, each with its own request.
    ThreadPool,
    /// All threads serve one request at a time, the most urgent.
    #[default]
    SharedChunks,
}

impl Execution {
    /// Every kind of execution, in the order in which they are listed to users.
    pub const ALL: [Self; 4] =
        [Self::Sequential, Self::ProcessPerRequest, Self::ThreadPool, Self::SharedChunks];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sequential => "sequential",
            Self::ProcessPerRequest => "process-per-request",
            Self::ThreadPool => "thread-pool",
            Self::SharedChunks => "shared-chunks",
        }
    }

    /// The station that this execution, number of threads and discipline make: its servers, and the effective
    /// discipline. The operating system alternates between processes, whatever the discipline.
    pub fn station(self, threads: NonZeroUsize, discipline: Discipline) -> (NonZeroUsize, Discipline) {
        match self {
            Self::Sequential | Self::SharedChunks => (NonZeroUsize::MIN, discipline),
            Self::ThreadPool => (threads, discipline),
            Self::ProcessPerRequest => (threads, Discipline::ProcessorSharing),
        }
    }
}

/// Whether searches can ride along with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Equal searches are one, and overlapping ranges are tested for all of them at once.
    #[default]
    On,
    /// Each request has a separate search.
    Off,
}

impl Sharing {
    /// Every kind of sharing, in the order in which they are listed to users.
    pub const ALL: [Self; 2] = [Self::On, Self::Off];

    /// The name on command lines and in experiment files.
    pub fn name(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

/// The options of a server of hash reversal. Begin with [`ReverseOptions::new`] and replace what should differ.
#[derive(Clone, Debug)]
pub struct ReverseOptions {
    /// The options of every server. Its `workers` are the threads that search; with a process per request, there is
    /// one process for each request, and `workers` has no effect.
    pub service: Config,
    /// How searches are assigned to threads and processes.
    pub execution: Execution,
    /// Whether answers are cached.
    pub memory: Memory,
    /// The most answers in the cache.
    pub memory_entries: NonZeroUsize,
    /// Whether requests can share work.
    pub sharing: Sharing,
    /// The engine that searches on the processors.
    pub engine: Engine,
    /// Whether a graphics card searches, too. It joins the threads of [`Execution::SharedChunks`] only.
    pub device: Device,
    /// The cluster whose workers search, too. It joins the threads of [`Execution::SharedChunks`] only.
    pub cluster: Option<Cluster>,
    /// With a process per request, the program to run: it has the subcommand [`crate::SEARCH_ONE`] of this system.
    pub program: PathBuf,
    /// With a process per request, the most processes at a time; further requests wait.
    pub max_processes: NonZeroUsize,
    /// The most candidates of a request; one with a wider range is rejected.
    pub most_candidates: u64,
    /// The longest time for a request, waiting excluded; then it is abandoned.
    pub deadline: Duration,
}

impl ReverseOptions {
    /// The defaults of every server, in the order of the Gittins index, all threads on one request, sharing work,
    /// with a cache of 65,536 answers, for ranges of at most 10¹¹ candidates and a minute of search.
    pub fn new(listen: SocketAddr, engine: Engine) -> Self {
        Self {
            service: Config { discipline: Discipline::Gittins, ..Config::new(listen) },
            execution: Execution::default(),
            memory: Memory::default(),
            memory_entries: NonZeroUsize::new(65_536).expect("it is not zero"),
            sharing: Sharing::default(),
            engine,
            device: Device::default(),
            cluster: None,
            program: PathBuf::from("/proc/self/exe"),
            max_processes: NonZeroUsize::new(256).expect("it is not zero"),
            most_candidates: 100_000_000_000,
            deadline: Duration::from_secs(60),
        }
    }

    /// The options of the runtime: its workers are those that take requests from the queue.
    pub(crate) fn runtime(&self) -> Config {
        let service = self.service.clone();
        match self.execution {
            Execution::Sequential | Execution::SharedChunks => {
                Config { workers: NonZeroUsize::MIN, ..service }
            }
            Execution::ThreadPool => service,
            // A process cannot return to the queue.
            Execution::ProcessPerRequest => {
                Config { workers: self.max_processes, discipline: Discipline::Fifo, ..service }
            }
        }
    }
}

/// A parser for an option with a few named values.
macro_rules! named {
    ($($type:ty, $what:literal;)*) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $type {
            type Err = UnknownName;

            fn from_str(name: &str) -> Result<Self, UnknownName> {
                let unknown = || UnknownName {
                    what: $what,
                    name: name.into(),
                    known: Self::ALL.map(Self::name).join(", "),
                };
                Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(unknown)
            }
        }
    )*};
}

named! {
    Execution, "execution";
    Memory, "cache";
    Sharing, "sharing";
}

/// The error for an unknown name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} {name:?}; known are {known}")]
pub struct UnknownName {
    what: &'static str,
    name: String,
    known: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        for execution in Execution::ALL {
            assert_eq!(execution.name().parse(), Ok(execution));
        }
        for memory in Memory::ALL {
            assert_eq!(memory.name().parse(), Ok(memory));
        }
        let refused = "bloom".parse::<Memory>().unwrap_err().to_string();
        assert_eq!(refused, "unknown cache \"bloom\"; known are off, map, map+bloom");
    }
}
