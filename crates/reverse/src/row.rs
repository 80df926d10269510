//! Hash reversal as a row of the table of systems.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::thread;

use crate::process::{SEARCH_ONE, SYSTEM, search_one};
use crate::{Config, Execution, Memory, Parameters, ReverseOptions, ReverseWorkload, Sharing, UnknownName};
use kendall_cluster::Cluster;
use kendall_digest::gpu::Device;
use kendall_linkmodel::Transport;
use kendall_station::{Discipline, Servers};
use kendall_system::{
    CLUSTER, CLUSTER_LEDGER, Caller, Home, Kind, NATS_CA, NATS_CREDS, Parameter, Serving, Settings,
    StationShape, Subcommand, SubcommandEnd, Subcommands, System, cluster_options, digest_engine, no_limits,
};

/// The row of this system.
pub const ROW: System = System {
    name: SYSTEM,
    about: "finds the 64-bit integer behind a SHA-256 digest, by search within a range",
    default_port: 5003,
    home: Home::Here,
    server: &[
        Parameter {
            name: "workers",
            help: "number of threads that search; the number of cores if left out",
            kind: Kind::Whole { least: 1, most: 1024 },
            default: None,
        },
        Parameter {
            name: "execution",
            help: "how searches are assigned to threads: shared-chunks (all on one request, the most urgent), \
                   thread-pool (each on a separate one), sequential (one thread, one request at a time) or \
                   process-per-request",
            kind: Kind::Word(check::<Execution>),
            default: Some("shared-chunks"),
        },
        Parameter {
            name: "discipline",
            help: "order of service: fifo, lifo, priority, preemptive-priority, processor-sharing, \
                   shortest-remaining, cmu or gittins; the operating system's with a process per request",
            kind: Kind::Word(check_discipline),
            default: Some("gittins"),
        },
        Parameter {
            name: "cache",
            help: "whether answers are cached: off, map, or map+bloom (a map behind a Bloom filter)",
            kind: Kind::Word(check::<Memory>),
            default: Some("map"),
        },
        Parameter {
            name: "cache-entries",
            help: "most answers in the cache; the least recently used is evicted first",
            kind: Kind::Whole { least: 1, most: 100_000_000 },
            default: Some("65536"),
        },
        Parameter {
            name: "sharing",
            help: "whether equal requests at the same time share one search, and overlapping \
                   ranges one pass: on or off",
            kind: Kind::Word(check::<Sharing>),
            default: Some("on"),
        },
        Parameter {
            name: "device",
            help: "where to search shared chunks: auto (the processor, and a graphics card if one is found), \
                   cpu or gpu (both; it is an error if no card is found)",
            kind: Kind::Word(|name| name.parse::<Device>().map(drop).map_err(|error| error.to_string())),
            default: Some("auto"),
        },
        CLUSTER,
        NATS_CREDS,
        NATS_CA,
        CLUSTER_LEDGER,
        Parameter {
            name: "max-processes",
            help: "most processes at a time, with a process per request; further requests wait",
            kind: Kind::Whole { least: 1, most: 4096 },
            default: Some("256"),
        },
        Parameter {
            name: "most-candidates",
            help: "most candidates of a request; the server rejects larger ranges with the answer 0",
            kind: Kind::Whole { least: 1, most: u64::MAX },
            default: Some("100000000000"),
        },
        Parameter {
            name: "deadline",
            help: "most time for a request, waiting excluded; then it is abandoned, and its answer is 0",
            kind: Kind::Time,
            default: Some("60s"),
        },
    ],
    workload: &[
        Parameter {
            name: "difficulty",
            help: "number of candidates in the range of a request",
            kind: Kind::Whole { least: 1, most: 1 << 62 },
            default: Some("300000"),
        },
        Parameter {
            name: "repeat-percent",
            help: "probability, in percent, that a request repeats an earlier one",
            kind: Kind::Number { least: 0.0, most: 100.0 },
            default: Some("0"),
        },
        Parameter {
            name: "priority-lambda",
            help: "priorities 1 to 16 are exponential with this rate, so a larger one means fewer high ones; \
                   0 makes all priorities 1",
            kind: Kind::Number { least: 0.0, most: 100.0 },
            default: Some("0"),
        },
        Parameter {
            name: "start",
            help: "start of every range; drawn for each request if left out",
            kind: Kind::Whole { least: 0, most: u64::MAX },
            default: None,
        },
    ],
    station,
    transport: |_| Transport::TCP,
    load: |address, workload, seed| {
        let parameters = Parameters {
            difficulty: workload.whole("difficulty").expect("difficulty has a default"),
            repeat_percent: workload.number("repeat-percent").expect("repeat-percent has a default"),
            priority_lambda: workload.number("priority-lambda").expect("priority-lambda has a default"),
            start: workload.whole("start"),
        };
        let workload = ReverseWorkload::new(address, parameters, seed).map_err(|error| error.to_string())?;
        Ok(Box::new(workload))
    },
    serve,
    limits: no_limits,
    subcommands: Subcommands {
        about: "Search for one request",
        all: &[Subcommand {
            name: SEARCH_ONE,
            about: "Search for the request on standard input, and write the answer to standard output",
            arguments: &[],
            options: &[],
            caller: Caller::Server,
            run: |_, console| {
                let engine = digest_engine()?;
                let mut answer = Vec::new();
                search_one(engine, console.input(), &mut answer).map_err(|error| error.to_string())?;
                let out = console.output();
                out.write_all(&answer).and_then(|()| out.flush()).map_err(|error| error.to_string())?;
                Ok(SubcommandEnd::Done)
            },
        }],
    },
};

const IS_SET: &str = "it has a default, and its kind checked it";

/// The threads, execution and discipline of a server.
fn layout(server: &Settings) -> (Execution, NonZeroUsize, Discipline) {
    let cores = || thread::available_parallelism().map_or(1, usize::from) as u64;
    let workers = server.whole("workers").unwrap_or_else(cores);
    let threads = usize::try_from(workers).ok().and_then(NonZeroUsize::new).expect("at least one worker");
    (word(server, "execution"), threads, word(server, "discipline"))
}

fn station(server: &Settings) -> StationShape {
    let (execution, threads, discipline) = layout(server);
    let (servers, discipline) = execution.station(threads, discipline);
    let servers = u32::try_from(servers.get()).ok().and_then(Servers::new);
    StationShape::unlimited(servers.expect("between 1 and 1024 servers"), discipline)
}

fn serve(
    server: &Settings,
    Serving { listen, metrics, stamps, for_trial, ready }: Serving,
) -> Result<(), String> {
    let (execution, workers, discipline) = layout(server);
    let count = |name| {
        let value = server.whole(name).and_then(|value| NonZeroUsize::new(value as usize));
        value.expect("it has a default and is at least 1")
    };
    let cluster = match cluster_options(server, SYSTEM, for_trial)? {
        Some(_) if execution != Execution::SharedChunks => {
            return Err(format!("--cluster needs --execution shared-chunks, not {execution}"));
        }
        options => options.map(Cluster::start).transpose().map_err(|error| error.to_string())?,
    };
    let options = ReverseOptions {
        service: Config { workers, discipline, metrics, stamps, ..Config::new(listen) },
        execution,
        memory: word(server, "cache"),
        memory_entries: count("cache-entries"),
        sharing: word(server, "sharing"),
        device: word(server, "device"),
        cluster,
        max_processes: count("max-processes"),
        most_candidates: server.whole("most-candidates").expect(IS_SET),
        deadline: server.time("deadline").expect(IS_SET),
        ..ReverseOptions::new(listen, digest_engine()?)
    };
    crate::serve(options, ready).map_err(|error| error.to_string())
}

/// A word that its kind has checked.
fn word<T: FromStr>(server: &Settings, name: &str) -> T {
    let word = server.word(name).expect("it has a default");
    word.parse().unwrap_or_else(|_| unreachable!("its kind checked {name}"))
}

fn check<T: FromStr<Err = UnknownName>>(name: &str) -> Result<(), String> {
    name.parse::<T>().map(drop).map_err(|error| error.to_string())
}

fn check_discipline(name: &str) -> Result<(), String> {
    name.parse::<Discipline>().map(drop).map_err(|error| error.to_string())
}
