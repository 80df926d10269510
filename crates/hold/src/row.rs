//! The synthetic server as a row of the table of systems.

use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};

use crate::{Config, Dialect, HoldMode, HoldOptions, HoldSessionWorkload, HoldWorkload};
use kendall_linkmodel::Transport;
use kendall_station::{Discipline, Law, Servers};
use kendall_system::{
    Home, Kind, LoadResult, Parameter, Serving, Settings, StationShape, Subcommands, System, named_law,
    no_limits,
};

/// The row of this system.
pub const ROW: System = System {
    name: "hold",
    about: "holds each request for a time drawn from a law: a station A/S/c/K whose every part is known",
    default_port: 5010,
    home: Home::Here,
    server: &[
        Parameter {
            name: "service",
            help: "law of the hold times: exponential, constant, erlang-2 (any number of stages), hyperexponential, \
                   uniform, log-normal or pareto",
            kind: Kind::Word(|name| named_law(name, 1.0, Some(EXAMPLE_SCV)).map(drop).or_else(bounded)),
            default: Some("exponential"),
        },
        Parameter { name: "mean", help: "mean of the hold times", kind: Kind::Time, default: Some("5ms") },
        Parameter {
            name: "scv",
            help: "squared coefficient of variation of the hold times, for hyperexponential, log-normal and pareto",
            kind: Kind::Number { least: 0.0, most: 1e6 },
            default: None,
        },
        Parameter {
            name: "workers",
            help: "number of requests held at the same time: the servers of the station; they sleep, so there can be more than cores",
            kind: Kind::Whole { least: 1, most: 1024 },
            default: Some("1"),
        },
        Parameter {
            name: "room",
            help: "capacity: the most requests, those that are held included; further ones are rejected at once; 16384 can wait if \
                   left out",
            kind: Kind::Whole { least: 1, most: 1_000_000 },
            default: None,
        },
        Parameter {
            name: "discipline",
            help: "order of service: fifo, lifo, processor-sharing, shortest-remaining, gittins, …; requests all have the \
                   same priority",
            kind: Kind::Word(|name| name.parse::<Discipline>().map(drop).map_err(|error| error.to_string())),
            default: Some("fifo"),
        },
        Parameter {
            name: "seed",
            help: "seed of the hold times; the same seed gives the same request the same time",
            kind: Kind::Whole { least: 0, most: u64::MAX },
            default: Some("1"),
        },
        Parameter {
            name: "busy",
            help: "whether a worker computes for the drawn time instead of sleeping: on or off",
            kind: Kind::Word(check_switch),
            default: Some("off"),
        },
        Parameter {
            name: "sessions",
            help: "whether users hold sessions, and answers arrive on the session of the user that a request names: on or off",
            kind: Kind::Word(check_switch),
            default: Some("off"),
        },
    ],
    workload: &[
        Parameter {
            name: "users",
            help: "number of users with a session each, for a server with --sessions on; without it, requests have connections",
            kind: Kind::Whole { least: 1, most: 100_000 },
            default: None,
        },
        Parameter {
            name: "others-percent",
            help: "share of the requests of users whose answer arrives on the session of another user",
            kind: Kind::Number { least: 0.0, most: 100.0 },
            default: Some("0"),
        },
    ],
    station: |server| {
        let servers =
            server.whole("workers").and_then(|workers| u32::try_from(workers).ok()).and_then(Servers::new);
        StationShape {
            servers: servers.expect("between 1 and 1024 workers"),
            discipline: discipline(server),
            capacity: server.whole("room"),
        }
    },
    transport: |_| Transport::TCP,
    load,
    serve,
    limits: no_limits,
    subcommands: Subcommands::NONE,
};

/// With it, every kind of law with a coefficient of variation is valid.
const EXAMPLE_SCV: f64 = 2.0;

/// Whether only the example is invalid for a law, and not its name.
fn bounded(why: String) -> Result<(), String> {
    if why.starts_with("must be") { Err(why) } else { Ok(()) }
}

fn check_switch(word: &str) -> Result<(), String> {
    match word {
        "on" | "off" => Ok(()),
        _ => Err(format!("must be on or off, not {word:?}")),
    }
}

fn load(address: SocketAddr, workload: &Settings, seed: u64) -> LoadResult {
    let users = workload.whole("users").and_then(|users| NonZeroU32::new(u32::try_from(users).ok()?));
    let Some(users) = users else { return Ok(Box::new(HoldWorkload::new(address, seed))) };
    let to_others = workload.number("others-percent").expect("it has a default") / 100.0;
    Ok(Box::new(HoldSessionWorkload::new(address, seed, users, to_others)))
}

fn discipline(server: &Settings) -> Discipline {
    let word = server.word("discipline").expect("it has a default");
    word.parse().expect("its kind checked the discipline")
}

fn law(server: &Settings) -> Result<Law, String> {
    let (name, mean) = (server.word("service"), server.time("mean"));
    let mean_s = mean.expect("mean has a default").as_secs_f64();
    let law = named_law(name.expect("service has a default"), mean_s, server.number("scv"))
        .map_err(|why| format!("--service: {why}; see --scv"))?;
    law.validate().map_err(|error| format!("--mean: {error}"))?;
    Ok(law)
}

fn serve(server: &Settings, Serving { listen, metrics, stamps, ready, .. }: Serving) -> Result<(), String> {
    let whole = |name| server.whole(name).map(|value| value as usize);
    let workers = whole("workers").and_then(NonZeroUsize::new).expect("at least one worker, by default one");
    let usual = Config::new(listen);
    let max_waiting = match whole("room") {
        Some(room) if room < workers.get() => {
            return Err(format!("--room: a capacity of {room} is less than the {workers} workers need"));
        }
        Some(room) => room - workers.get(),
        None => usual.max_waiting,
    };
    let options = HoldOptions {
        service: Config { workers, max_waiting, discipline: discipline(server), metrics, stamps, ..usual },
        law: law(server)?,
        seed: server.whole("seed").expect("seed has a default"),
        mode: if server.word("busy") == Some("on") { HoldMode::Computing } else { HoldMode::Sleeping },
        dialect: if server.word("sessions") == Some("on") { Dialect::Sessions } else { Dialect::Requests },
    };
    crate::serve(options, ready).map_err(|error| error.to_string())
}
