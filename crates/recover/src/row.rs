//! File recovery as a row of the table of systems.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::search::Space;
use crate::subcommands::SUBCOMMANDS;
use crate::{
    Algorithm, Config, Dialect, FinderOptions, Parameters, RecoverOptions, RecoverWorkload, SpoolOptions,
    Strategy, Words,
};
use kendall_cluster::Cluster;
use kendall_linkmodel::Transport;
use kendall_station::{Discipline, Servers};
use kendall_system::{
    CLUSTER, CLUSTER_LEDGER, Home, Kind, LoadResult, NATS_CA, NATS_CREDS, Parameter, Serving, Settings,
    StationShape, System, cluster_options, digest_engine, no_limits,
};

/// The row of this system.
pub const ROW: System = System {
    name: "recover",
    about: "finds the password of a file from its digest, and returns the file decrypted",
    default_port: 3333,
    home: Home::Here,
    server: &[
        Parameter {
            name: "workers",
            help: "number of threads that search, each for one password; the number of cores if left out",
            kind: Kind::Whole { least: 1, most: 1024 },
            default: None,
        },
        Parameter {
            name: "discipline",
            help: "order of service: fifo, lifo, processor-sharing, shortest-remaining, gittins, …; requests all have the \
                   same priority, and the work of a search is uniform up to its number of candidates",
            kind: Kind::Word(|name| name.parse::<Discipline>().map(drop).map_err(|error| error.to_string())),
            default: Some("fifo"),
        },
        Parameter {
            name: "strategy",
            help: "order of the passwords to try: plain (all of the length, in order), dictionary (words first), rules \
                   (words, then changed words) or adaptive (by the passwords found before)",
            kind: Kind::Word(|name| name.parse::<Strategy>().map(drop).map_err(|error| error.to_string())),
            default: Some("adaptive"),
        },
        Parameter {
            name: "protocol",
            help: PROTOCOL,
            kind: Kind::Word(|name| Dialect::named(name).map(drop)),
            default: Some("course"),
        },
        DICTIONARY,
        Parameter {
            name: "charset",
            help: "characters that passwords are made of: ?l lower-case letters, ?u upper-case ones, ?d digits, ?s others, \
                   or characters themselves",
            kind: Kind::Word(|text| text.parse::<Space>().map(drop).map_err(|error| error.to_string())),
            default: Some("?l"),
        },
        Parameter {
            name: "mask",
            help: "pattern of the passwords of a length, position by position, such as ?u?l?l?d; repeat it for each \
                   length with a different mask",
            kind: Kind::Lines(|mask| Space::new("?l", [mask]).map(drop).map_err(|error| error.to_string())),
            default: None,
        },
        CLUSTER,
        NATS_CREDS,
        NATS_CA,
        CLUSTER_LEDGER,
        Parameter {
            name: "most-candidates",
            help: "most passwords to try for a request; the server rejects requests that need more",
            kind: Kind::Whole { least: 1, most: u64::MAX },
            default: Some("8400000000"),
        },
        Parameter {
            name: "seen",
            help: "most passwords, and keys, in the cache; the least recently used are evicted first; with 1, every request \
                   needs a search, also in a calibration, which sends the same passwords many times",
            kind: Kind::Whole { least: 1, most: 100_000_000 },
            default: Some("65536"),
        },
        Parameter {
            name: "table-memory",
            help: "MiB for a table of all short passwords by their SHA-1 digests, built while the server runs; 0 for \
                   no table",
            kind: Kind::Whole { least: 0, most: 1 << 20 },
            default: Some("0"),
        },
        Parameter {
            name: "table-length",
            help: "longest passwords of that table, in characters; the server does not start if it does not fit; 0 for as many \
                   as fit",
            kind: Kind::Whole { least: 0, most: 12 },
            default: Some("0"),
        },
        Parameter {
            name: "most-file",
            help: "MiB of the longest encrypted file that is accepted",
            kind: Kind::Whole { least: 1, most: 1 << 20 },
            default: Some("1024"),
        },
        Parameter {
            name: "spool-memory",
            help: "most MiB of files that wait in memory, over all requests; the rest waits in temporary files",
            kind: Kind::Whole { least: 0, most: 1 << 20 },
            default: Some("256"),
        },
        Parameter {
            name: "spool-disk",
            help: "most MiB of temporary files, over all requests; the server rejects requests whose file does not fit",
            kind: Kind::Whole { least: 0, most: 1 << 30 },
            default: Some("16384"),
        },
        Parameter {
            name: "spool-folder",
            help: "folder of the temporary files, which have no name there; the system's folder if left out",
            // Not a file that an experiment would keep a copy of.
            kind: Kind::Word(|_| Ok(())),
            default: None,
        },
        Parameter {
            name: "trace",
            help: "file that gets a line for each returned file: the time of its search and its key, comma-separated",
            kind: Kind::Word(|_| Ok(())),
            default: None,
        },
    ],
    workload: &[
        Parameter {
            name: "length",
            help: "number of letters of each password that is not a word of the list",
            kind: Kind::Whole { least: 1, most: 12 },
            default: Some("4"),
        },
        Parameter {
            name: "dictionary-percent",
            help: "probability, in percent, that a password is a word of the list, of the same number of lower-case letters",
            kind: Kind::Number { least: 0.0, most: 100.0 },
            default: Some("0"),
        },
        Parameter {
            name: "file-bytes",
            help: "bytes of each file before it is encrypted",
            kind: Kind::Whole { least: 0, most: 1 << 40 },
            default: Some("20480"),
        },
        Parameter {
            name: "passwords",
            help: "number of passwords whose keys are derived before the first request; after that many requests they repeat, and \
                   the server has them in its cache",
            kind: Kind::Whole { least: 1, most: 16_384 },
            default: Some("500"),
        },
        Parameter {
            name: "hash",
            help: "digest of the password that the client sends: sha1, or, as an extension, sha256 or md5",
            kind: Kind::Word(|name| Algorithm::named(name).map(drop)),
            default: Some("sha1"),
        },
        Parameter {
            name: "protocol",
            help: PROTOCOL,
            kind: Kind::Word(|name| Dialect::named(name).map(drop)),
            default: Some("course"),
        },
        DICTIONARY,
    ],
    station: |server| {
        let servers = u32::try_from(workers(server).get()).ok().and_then(Servers::new);
        StationShape::unlimited(servers.expect("between 1 and 1024 workers"), discipline(server))
    },
    transport: |_| Transport::TCP,
    load: |address, workload, seed| -> LoadResult {
        let whole = |name| workload.whole(name).expect("it has a default");
        let parameters = Parameters {
            dialect: Dialect::named(workload.word("protocol").expect("it has a default"))?,
            length: whole("length") as usize,
            dictionary_percent: workload.number("dictionary-percent").expect("it has a default"),
            words: words(workload)?,
            file_bytes: whole("file-bytes"),
            passwords: whole("passwords") as usize,
            algorithm: Algorithm::named(workload.word("hash").expect("it has a default"))?,
        };
        let workload = RecoverWorkload::new(address, &parameters, digest_engine()?, seed);
        Ok(Box::new(workload.map_err(|error| error.to_string())?))
    },
    serve,
    limits: no_limits,
    subcommands: SUBCOMMANDS,
};

const PROTOCOL: &str = "course, or with-id, in which each request and answer begins with a number; client and server must \
                        agree";

const DICTIONARY: Parameter = Parameter {
    name: "dictionary",
    help: "file of words, one per line, the likeliest first; 30,000 common passwords if left out",
    kind: Kind::File,
    default: None,
};

fn workers(server: &Settings) -> NonZeroUsize {
    let cores = || thread::available_parallelism().map_or(1, usize::from) as u64;
    let workers = server.whole("workers").unwrap_or_else(cores);
    usize::try_from(workers).ok().and_then(NonZeroUsize::new).expect("at least one worker")
}

fn discipline(server: &Settings) -> Discipline {
    let word = server.word("discipline").expect("it has a default");
    word.parse().expect("its kind checked the discipline")
}

/// The list of words that settings name, or the one that comes with kendall.
fn words(settings: &Settings) -> Result<Arc<Words>, String> {
    let Some(path) = settings.word("dictionary") else { return Ok(Arc::new(Words::common())) };
    let words = Words::open(Path::new(path)).map_err(|error| error.to_string())?;
    let skipped = words.skipped();
    if skipped.not_text + skipped.too_long > 0 {
        tracing::warn!(
            path,
            skipped.not_text,
            skipped.too_long,
            "skipped lines of the list that are not words"
        );
    }
    Ok(Arc::new(words))
}

fn serve(
    server: &Settings,
    Serving { listen, metrics, stamps, for_trial, ready }: Serving,
) -> Result<(), String> {
    let whole = |name| server.whole(name).expect("it has a default");
    let mib = |name| whole(name) << 20;
    let count = |name| NonZeroUsize::new(whole(name) as usize).expect("it is at least 1");
    let word = |name| server.word(name).expect("it has a default");
    let masks = server.word("mask").unwrap_or_default().lines();
    let usual = RecoverOptions::new(listen, digest_engine()?);
    let cluster = cluster_options(server, ROW.name, for_trial)?;
    let cluster = cluster.map(Cluster::start).transpose().map_err(|error| error.to_string())?;
    let finder = FinderOptions {
        cluster,
        strategy: word("strategy").parse().expect("its kind checked the strategy"),
        space: Space::new(word("charset"), masks).map_err(|error| error.to_string())?,
        words: words(server)?,
        most_candidates: whole("most-candidates"),
        seen_entries: count("seen"),
        table_memory_bytes: mib("table-memory"),
        table_length: NonZeroUsize::new(whole("table-length") as usize),
        ..usual.finder
    };
    let spool =
        SpoolOptions { memory_bytes: mib("spool-memory"), disk_bytes: mib("spool-disk"), ..usual.spool };
    let folder = server.word("spool-folder").map(PathBuf::from);
    let options = RecoverOptions {
        service: Config {
            workers: workers(server),
            discipline: discipline(server),
            metrics,
            stamps,
            ..usual.service
        },
        finder,
        dialect: Dialect::named(word("protocol"))?,
        key_entries: count("seen"),
        spool: SpoolOptions { folder: folder.unwrap_or_else(|| spool.folder.clone()), ..spool },
        most_file_bytes: mib("most-file"),
        trace: server.word("trace").map(PathBuf::from),
    };
    crate::serve(options, ready).map_err(|error| error.to_string())
}
