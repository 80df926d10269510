//! Text search as a row of the table of systems.

use std::env;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;
use std::thread::available_parallelism;

use crate::protocol::Dialect;
use crate::subcommands::SUBCOMMANDS;
use crate::workload::{MOST_PATTERNS, Mix, Parameters, Requests, TextSearchWorkload, Wrapping};
use crate::{
    Alphabet, Backtracking, Config, Form, Generate, Layout, Matching, OpenOptions, Semantics, Size,
    TextSearchOptions, synthetic,
};
use kendall_linkmodel::Transport;
use kendall_load::Reuse;
use kendall_station::{Discipline, Knows, Servers};
use kendall_system::{Home, Kind, Parameter, Serving, Settings, StationShape, System, no_limits};

const MB: u64 = 1_000_000;
/// The most types.
const MOST_TYPES: u64 = 10_000;

/// The row of this system.
pub const ROW: System = System {
    name: "textsearch",
    about: "answers regular expressions over a file of typed sentences",
    default_port: 5056,
    home: Home::Here,
    server: &[
        Parameter {
            name: "data",
            help: "file of lines type@@@sentence; read again on SIGHUP",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "data-rows",
            help: "instead of a file, a synthetic one of this many rows, made once and kept with the user's caches",
            kind: Kind::Whole { least: 1, most: 1_000_000_000 },
            default: None,
        },
        Parameter {
            name: "data-bytes",
            help: "instead of a file, a synthetic one of this many bytes",
            kind: Kind::Whole { least: 1, most: 1 << 40 },
            default: None,
        },
        Parameter {
            name: "data-types",
            help: "number of types of a synthetic file, numbered from 0",
            kind: Kind::Whole { least: 1, most: MOST_TYPES },
            default: Some("6"),
        },
        Parameter {
            name: "data-seed",
            help: "seed of a synthetic file",
            kind: Kind::Whole { least: 0, most: u64::MAX },
            default: Some("1"),
        },
        Parameter {
            name: "layout",
            help: "layout and search of sentences: flat (row by row as in the file), by-type (row by row, those of a type \
                   together) or indexed (the fastest method for each pattern)",
            kind: Kind::Word(check::<Layout>),
            default: Some("indexed"),
        },
        Parameter {
            name: "index-memory",
            help: "most memory of the index, in MB; rows beyond it are scanned; unlimited if left out",
            kind: Kind::Whole { least: 0, most: 10_000_000 },
            default: None,
        },
        Parameter {
            name: "workers",
            help: "number of requests searched at the same time: the servers of the station; the number of cores if left out",
            kind: Kind::Whole { least: 1, most: 1024 },
            default: None,
        },
        Parameter {
            name: "threads",
            help: "most threads that search; threads without a request help the others; with 1, a \
                   request has one core, as models of a station with one server assume; the number of cores if left out",
            kind: Kind::Whole { least: 1, most: 1024 },
            default: None,
        },
        Parameter {
            name: "discipline",
            help: "order of service: fifo, lifo, processor-sharing, or by the time that the plan expects a search to take: \
                   shortest-remaining, cmu, gittins",
            kind: Kind::Word(check_discipline),
            default: Some("fifo"),
        },
        Parameter {
            name: "protocol",
            help: "framing of requests and answers: lines, or utf (messages of Java's writeUTF)",
            kind: Kind::Word(check::<Dialect>),
            default: Some("lines"),
        },
        Parameter {
            name: "match",
            help: "whether a pattern must be found in a sentence (find) or match all of it (whole)",
            kind: Kind::Word(check::<Matching>),
            default: Some("find"),
        },
        Parameter {
            name: "answer",
            help: "part of a row to send: row (type@@@sentence) or sentence",
            kind: Kind::Word(check::<Form>),
            default: Some("row"),
        },
        Parameter {
            name: "unicode",
            help: r"whether \w, \d, \s, \b and (?i) mean the letters and digits of all scripts instead of ASCII: on or off",
            kind: Kind::Switch,
            default: Some("off"),
        },
        Parameter {
            name: "backtracking",
            help: "allow look-around, back-references and the like, with at most this many steps for a sentence; they are \
                   rejected if left out",
            kind: Kind::Whole { least: 1, most: u32::MAX as u64 },
            default: None,
        },
        Parameter {
            name: "deadline",
            help: "most time for a request: reading its pattern, planning and searching, waiting excluded",
            kind: Kind::Time,
            default: Some("10s"),
        },
        Parameter {
            name: "idle",
            help: "most time that a client may keep a connection open and send nothing, or read no byte of its answer; then the \
                   server closes the connection",
            kind: Kind::Time,
            default: Some("30s"),
        },
        Parameter {
            name: "answer-memory",
            help: "most memory of answers that are being sent, in MB; beyond it the server rejects requests",
            kind: Kind::Whole { least: 1, most: 10_000_000 },
            default: Some("1024"),
        },
        Parameter {
            name: "cache",
            help: "most memory of cached answers, in MB; 0 caches none",
            kind: Kind::Whole { least: 0, most: 10_000_000 },
            default: Some("64"),
        },
        Parameter {
            name: "pattern-memory",
            help: "most memory of compiled patterns kept for later requests, and of their searches, in MB; 0 keeps none",
            kind: Kind::Whole { least: 0, most: 10_000_000 },
            default: Some("64"),
        },
    ],
    workload: &[
        Parameter {
            name: "mix",
            help: "families of patterns, with weights, as in literal=4,class=1: literal (two words), \
                   alternation (three times two words), class (letters between two words), anchored (two words at the \
                   beginning), ignoring-case, none (matches nothing), all (matches everything); each is a class of the report",
            kind: Kind::Word(check::<Mix>),
            default: Some("literal"),
        },
        Parameter {
            name: "patterns",
            help: "number of different requests; the pattern and types of each are drawn once",
            kind: Kind::Whole { least: 1, most: MOST_PATTERNS as u64 },
            default: Some("1000"),
        },
        Parameter {
            name: "popularity",
            help: "Zipf's exponent: the k-th most popular request has a probability proportional to 1 / k to this power; \
                   0 makes all equally likely",
            kind: Kind::Number { least: 0.0, most: 100.0 },
            default: Some("0"),
        },
        Parameter {
            name: "types-asked",
            help: "number of types of a request; 0 is all",
            kind: Kind::Whole { least: 0, most: MOST_TYPES },
            default: Some("1"),
        },
        Parameter {
            name: "types",
            help: "number of types to choose from, numbered from 0",
            kind: Kind::Whole { least: 1, most: MOST_TYPES },
            default: Some("6"),
        },
        Parameter {
            name: "wrapped",
            help: "whether to write patterns as (.*)X(.*), for servers that match whole sentences: on or off",
            kind: Kind::Switch,
            default: Some("off"),
        },
        Parameter {
            name: "requests-file",
            help: "file of requests instead of drawn ones, one line types;pattern each, the most popular first",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "protocol",
            help: "framing of requests and answers, the same as the server's: lines or utf",
            kind: Kind::Word(check::<Dialect>),
            default: Some("lines"),
        },
        Parameter {
            name: "reuse",
            help: "whether a connection carries many requests (keep) or one (close)",
            kind: Kind::Word(|name| reuse(name).map(drop)),
            default: Some("keep"),
        },
    ],
    station: |server| {
        let servers = Servers::new(u32::try_from(workers(server).get()).expect("at most 1024, or the cores"));
        StationShape::unlimited(servers.expect("at least one worker"), word(server, "discipline"))
    },
    transport: |_| Transport::TCP,
    load: |address, workload, seed| {
        let parameters = parameters(workload);
        let workload =
            TextSearchWorkload::new(address, &parameters, seed).map_err(|error| error.to_string())?;
        Ok(Box::new(workload))
    },
    serve,
    limits: no_limits,
    subcommands: SUBCOMMANDS,
};

const IS_SET: &str = "it has a default, and its kind checked it";

fn parameters(workload: &Settings) -> Parameters {
    let whole = |name| workload.whole(name).expect(IS_SET);
    let requests = match workload.word("requests-file") {
        Some(file) => Requests::File(file.into()),
        None => Requests::Drawn {
            patterns: whole("patterns") as usize,
            mix: word(workload, "mix"),
            wrapping: if workload.is_on("wrapped") { Wrapping::Wrapped } else { Wrapping::Bare },
            types_asked: whole("types-asked") as u32,
            types: whole("types") as u32,
        },
    };
    Parameters {
        requests,
        popularity: workload.number("popularity").expect(IS_SET),
        dialect: word(workload, "protocol"),
        reuse: workload.word("reuse").and_then(|name| reuse(name).ok()).expect(IS_SET),
    }
}

fn cores() -> NonZeroUsize {
    available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

fn count(server: &Settings, name: &str) -> Option<NonZeroUsize> {
    server.whole(name).and_then(|value| NonZeroUsize::new(value as usize))
}

fn workers(server: &Settings) -> NonZeroUsize {
    count(server, "workers").unwrap_or_else(cores)
}

fn serve(server: &Settings, Serving { listen, metrics, stamps, ready, .. }: Serving) -> Result<(), String> {
    let index_memory_bytes = server.whole("index-memory").map_or(u64::MAX, |megabytes| megabytes * MB);
    let usual = TextSearchOptions::new(listen, data(server)?);
    let options = TextSearchOptions {
        service: Config {
            workers: workers(server),
            discipline: word(server, "discipline"),
            metrics,
            stamps,
            patience: server.time("idle").expect(IS_SET),
            ..usual.service.clone()
        },
        open: OpenOptions { layout: word(server, "layout"), index_memory_bytes, ..OpenOptions::default() },
        dialect: word(server, "protocol"),
        semantics: Semantics {
            matching: word(server, "match"),
            alphabet: if server.is_on("unicode") { Alphabet::Unicode } else { Alphabet::Ascii },
            backtracking: Backtracking::of(server.whole("backtracking")),
            ..Semantics::default()
        },
        form: word(server, "answer"),
        threads: count(server, "threads").unwrap_or_else(cores),
        deadline: server.time("deadline").expect(IS_SET),
        cache_bytes: (server.whole("cache").expect(IS_SET) * MB) as usize,
        pattern_bytes: (server.whole("pattern-memory").expect(IS_SET) * MB) as usize,
        answer_bytes: (server.whole("answer-memory").expect(IS_SET) * MB) as usize,
        ..usual
    };
    crate::serve(&options, ready).map_err(|error| error.to_string())
}

/// The given file, or a generated one.
fn data(server: &Settings) -> Result<PathBuf, String> {
    let size = match (server.word("data"), server.whole("data-rows"), server.whole("data-bytes")) {
        (Some(file), None, None) => return Ok(file.into()),
        (None, Some(rows), None) => Size::Rows(rows),
        (None, None, Some(bytes)) => Size::Bytes(bytes),
        (None, None, None) => {
            return Err(
                "no data to search: give --data FILE, or --data-rows 1000000 for a synthetic file".into()
            );
        }
        _ => return Err("data, data-rows and data-bytes exclude each other; keep one of them".into()),
    };
    let what = Generate {
        size,
        types: server.whole("data-types").expect(IS_SET) as u32,
        seed: server.whole("data-seed").expect(IS_SET),
        threads: cores().get(),
    };
    let folder = caches().join("kendall").join("textsearch");
    synthetic(&folder, &what).map_err(|error| {
        format!("cannot make a synthetic file in {}: {error}; see XDG_CACHE_HOME", folder.display())
    })
}

/// The folder of the user's caches, by the XDG base directory specification.
fn caches() -> PathBuf {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".cache")))
        .unwrap_or_else(env::temp_dir)
}

fn reuse(name: &str) -> Result<Reuse, String> {
    match name {
        "keep" => Ok(Reuse::Keep),
        "close" => Ok(Reuse::Close),
        _ => Err(format!("must be keep or close, not {name:?}")),
    }
}

/// A word that its kind has checked.
fn word<T: FromStr>(settings: &Settings, name: &str) -> T {
    let word = settings.word(name).expect("it has a default");
    word.parse().unwrap_or_else(|_| unreachable!("its kind checked {name}"))
}

fn check<T: FromStr<Err = String>>(name: &str) -> Result<(), String> {
    name.parse::<T>().map(drop)
}

fn check_discipline(name: &str) -> Result<(), String> {
    match name.parse::<Discipline>() {
        Ok(discipline) if discipline.knows() == Knows::Weight => Err(format!(
            "must not be {name}: requests have no priority; shortest-remaining serves short searches first"
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}
