//! The parameters of a load and their values.

use kendall_load::Timing;
use kendall_station::{Kind as LawKind, Law, Spacing};

use super::{Threads, stages};
use kendall_system::{Kind, Parameter, law_kind};

/// The value for a warm-up that MSER-5 determines, and for as many threads as there are free cores.
const AUTO: &str = "auto";

/// The parameters of `[load]`, which `kendall load` also takes as options.
pub const LOAD: &[Parameter] = &[
    Parameter {
        name: "arrivals",
        help: "law of the gaps between requests: poisson, constant, erlang-2 (any number of stages), \
               hyperexponential, uniform, log-normal, pareto; or trace, closed, or sessions",
        kind: Kind::Word(check_arrivals),
        default: Some("poisson"),
    },
    Parameter {
        name: "arrivals-scv",
        help: "squared coefficient of variation of the gaps, for hyperexponential, log-normal and pareto",
        kind: Kind::Number { least: 0.0, most: 1e6 },
        default: None,
    },
    Parameter {
        name: "rate",
        help: "requests per second, or a share of what the machine can do, such as 80%",
        kind: Kind::Rate,
        default: None,
    },
    Parameter {
        name: "gap",
        help: "mean time between two requests, such as 600ms, instead of a rate",
        kind: Kind::Time,
        default: None,
    },
    Parameter {
        name: "capacity",
        help: "requests per second that 100% stands for; found by calibration if left out",
        kind: Kind::Rate,
        default: None,
    },
    Parameter {
        name: "stages",
        help: "rates over time instead of a rate, such as \"10s: 0→500/s, 30s: 500/s, 10s: 500→0/s\"; \
               for poisson and constant arrivals; or numbers of users for closed ones, \"10s: 5, 20s: 5→50\"",
        kind: Kind::Word(check_stages),
        default: None,
    },
    Parameter {
        name: "trace",
        help: "file of instants, for trace arrivals: seconds, one a line; an access log of nginx or Apache; \
               or a table with trace-column",
        kind: Kind::Word(any_word),
        default: None,
    },
    Parameter {
        name: "trace-column",
        help: "the trace is a table, CSV with a line of names or JSON lines, and this column holds the instants",
        kind: Kind::Word(any_word),
        default: None,
    },
    Parameter {
        name: "trace-ties",
        help: "how to spread requests within a second where the trace has whole seconds: even, if left out, or random",
        kind: Kind::Word(check_ties),
        default: None,
    },
    Parameter {
        name: "speed",
        help: "replay the trace at this multiple of its original speed",
        kind: Kind::Number { least: 1e-6, most: 1e6 },
        default: None,
    },
    Parameter {
        name: "users",
        help: "how many users, for closed arrivals",
        kind: Kind::Whole { least: 1, most: 100_000 },
        default: None,
    },
    Parameter {
        name: "think",
        help: "mean time between an answer and the same user's next request",
        kind: Kind::Time,
        default: Some("0s"),
    },
    Parameter {
        name: "think-law",
        help: "law of the think time: exponential or constant",
        kind: Kind::Word(check_think),
        default: Some("exponential"),
    },
    Parameter {
        name: "requests-per-session",
        help: "mean number of requests that a session makes, for arrivals by sessions",
        kind: Kind::Number { least: 1.0, most: 1e6 },
        default: None,
    },
    Parameter {
        name: "session-law",
        help: "law of the number of requests of a session: geometric, if left out, or constant",
        kind: Kind::Word(check_session_law),
        default: None,
    },
    Parameter {
        name: "requests",
        help: "stop after this many requests",
        kind: Kind::Whole { least: 1, most: 1_000_000_000 },
        default: None,
    },
    Parameter { name: "duration", help: "stop after this time", kind: Kind::Time, default: None },
    Parameter {
        name: "warmup",
        help: "requests due in this first part of a trial are sent but not counted in its answer; auto leaves out what \
               MSER-5 finds",
        kind: Kind::TimeOr(AUTO),
        default: Some("0s"),
    },
    Parameter {
        name: "timeout",
        help: "give up a request after this time",
        kind: Kind::Time,
        default: Some("30s"),
    },
    Parameter {
        name: "drain",
        help: "after the last request, wait this long for answers that are still due",
        kind: Kind::Time,
        default: Some("10s"),
    },
    Parameter {
        name: "connections",
        help: "at most this many connections; further requests wait in the generator, and that is counted",
        kind: Kind::Whole { least: 1, most: 60_000 },
        default: Some("1000"),
    },
    Parameter {
        name: "timing",
        help: "how to wait for the next send: sleep, or precise, which spins for the last tens of µs and costs up to a core",
        kind: Kind::Word(check_timing),
        default: Some("sleep"),
    },
    Parameter {
        name: "core",
        help: "the one core for the generator to run on; if left out, an isolated one, or the idlest of those to which the server is \
               not confined",
        kind: Kind::Whole { least: 0, most: 4095 },
        default: None,
    },
    Parameter {
        name: "generator-threads",
        help: "how many threads send the requests, each over its own connections; or auto, for the cores that the server \
               leaves free",
        kind: Kind::Word(check_threads),
        default: Some("1"),
    },
];

/// The kind of law that a name of arrivals stands for.
pub(super) fn gap_kind(name: &str) -> Result<LawKind, String> {
    let named = if name == "poisson" { Some(LawKind::Exponential) } else { law_kind(name) };
    named.filter(|_| name != "exponential").ok_or_else(|| {
        format!(
            "must be poisson, constant, erlang-2 (any number of stages), hyperexponential, uniform, \
             log-normal, pareto, trace, closed or sessions, not {name:?}"
        )
    })
}

fn check_arrivals(name: &str) -> Result<(), String> {
    if matches!(name, "closed" | "trace" | "sessions") { Ok(()) } else { gap_kind(name).map(drop) }
}

fn check_think(name: &str) -> Result<(), String> {
    match name {
        "exponential" | "constant" => Ok(()),
        _ => Err(format!("must be exponential or constant, not {name:?}")),
    }
}

fn check_session_law(name: &str) -> Result<(), String> {
    match name {
        "geometric" | "constant" => Ok(()),
        _ => Err(format!("must be geometric or constant, not {name:?}")),
    }
}

fn check_ties(name: &str) -> Result<(), String> {
    match name {
        "even" | "random" => Ok(()),
        _ => Err(format!("must be even or random, not {name:?}")),
    }
}

fn check_stages(text: &str) -> Result<(), String> {
    let users = stages::read_users(text, Law::Constant { mean_s: 0.0 });
    users.map(drop).or_else(|_| stages::read(text, Spacing::default()).map(drop))
}

pub(super) fn timing(name: &str) -> Option<Timing> {
    match name {
        "sleep" => Some(Timing::Sleep),
        "precise" => Some(Timing::Precise),
        _ => None,
    }
}

/// The most threads of a generator.
pub(super) const THREADS_AT_MOST: u32 = 64;

pub(super) fn threads(text: &str) -> Option<Threads> {
    match text {
        AUTO => Some(Threads::Auto),
        _ => text.parse().ok().filter(|number| (1..=THREADS_AT_MOST).contains(number)).map(Threads::Number),
    }
}

fn check_threads(text: &str) -> Result<(), String> {
    let why = || format!("must be a whole number from 1 to {THREADS_AT_MOST}, or {AUTO}, not {text:?}");
    threads(text).map(drop).ok_or_else(why)
}

fn check_timing(name: &str) -> Result<(), String> {
    timing(name).map(drop).ok_or_else(|| format!("must be sleep or precise, not {name:?}"))
}

fn any_word(word: &str) -> Result<(), String> {
    if word.is_empty() { Err("must not be empty".into()) } else { Ok(()) }
}
