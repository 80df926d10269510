//! The directory server as a row of the table of systems.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::Path;

use kendall_linkmodel::Transport;
use kendall_load::Reuse;
use kendall_record::counts;
use kendall_service::Config;
use kendall_station::{Discipline, Servers};
use kendall_system::{
    Home, Kind, LoadResult, MachineLimit, Parameter, Serving, Settings, StationShape, Subcommands, System,
};

use crate::client::security::{Security, read_fingerprint, show_fingerprint};
use crate::directory::Limits;
use crate::limits::{PasswordShares, limits as machine_limits};
use crate::password::{AuthMethod, Stretch};
use crate::server::keys::{self, Identity};
use crate::server::{ChatError, DirectoryOptions, bind};
use crate::store_choice::{self, IN_MEMORY, Opened, url_of_trial};
use crate::workload::{ChatWorkload, Mix, Operation};

/// The row of this system.
pub const ROW: System = System {
    name: "chat",
    about: "keeps the accounts of a chat, knows who is there, and lets two users meet",
    default_port: 5011,
    home: Home::Here,
    server: &[
        Parameter {
            name: "store",
            help: "where accounts are kept: sqlite:PATH, postgres://USER@HOST/DATABASE, mysql://USER@HOST/DATABASE, \
                   redis://HOST/NUMBER, or memory: until the server ends; if left out, SQLite in \
                   kendall/chat-server/accounts.db below XDG_DATA_HOME, which is ~/.local/share if unset, and for a server of an \
                   experiment or with --throwaway on, SQLite in a folder below TMPDIR or /var/tmp that ends with the server",
            kind: Kind::Word(check_store),
            default: None,
        },
        Parameter {
            name: "keys",
            help: "folder of the server's keys, which are made there at the first start, and to be backed up with the store; \
                   needed where --store names one that outlives the server; if both are left out, keys beside accounts.db",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "throwaway",
            help: "whether new keys are made that end with the server, so that no account of its store can be entered again: \
                   for experiments, whose store is thrown away",
            kind: Kind::Switch,
            default: Some("off"),
        },
        Parameter {
            name: "group-commit",
            help: "whether one transaction of a database takes all registrations that wait; off, each has its own, with its \
                   own flush of the disk: for experiments",
            kind: Kind::Word(check_switch),
            default: Some("on"),
        },
        Parameter {
            name: "auth",
            help: "how passwords are proved: opaque, for users; or, for comparison in experiments, argon2id (the server sees \
                   and hashes them) or scram (SCRAM-SHA-256)",
            kind: Kind::Word(check_auth),
            default: Some("opaque"),
        },
        Parameter {
            name: "tls",
            help: "whether TLS 1.3 secures connections; without it, the server listens on the loopback only",
            kind: Kind::Switch,
            default: Some("off"),
        },
        Parameter {
            name: "certificate",
            help: "PEM file of the certificate for --tls; if left out, the server makes its own and prints its \
                   fingerprint, which clients pin; a server of an experiment has one whose key is public",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "certificate-key",
            help: "PEM file of the key of --certificate",
            kind: Kind::File,
            default: None,
        },
        Parameter {
            name: "limits",
            help: "whether log-ins and registrations of a network, and calls of an account, are limited, on or off; off for a \
                   benchmark, whose clients all come from one",
            kind: Kind::Word(check_switch),
            default: Some("on"),
        },
        Parameter {
            name: "workers",
            help: "requests that compute with keys or wait for the store at a time; they wait most of the time, so there \
                   may be more than cores",
            kind: Kind::Whole { least: 1, most: 1024 },
            default: Some("64"),
        },
        Parameter {
            name: "connections",
            help: "connections that may be open at a time; more are closed at once",
            kind: Kind::Whole { least: 1, most: 1_000_000 },
            default: Some("16384"),
        },
    ],
    workload: &[
        Parameter {
            name: "register",
            help: "weight of registrations, each of a new name, among the operations",
            kind: WEIGHT,
            default: Some("1"),
        },
        Parameter { name: "log-in", help: "weight of log-ins", kind: WEIGHT, default: Some("0") },
        Parameter {
            name: "who",
            help: "weight of questions who is there, in a session",
            kind: WEIGHT,
            default: Some("0"),
        },
        Parameter {
            name: "call",
            help: "weight of calls, from the call to the address of a peer that accepts at once",
            kind: WEIGHT,
            default: Some("0"),
        },
        Parameter {
            name: "accounts",
            help: "accounts that log-ins are to; the workload registers them before its first connection",
            kind: Kind::Whole { least: 1, most: 1_000_000 },
            default: Some("100"),
        },
        Parameter {
            name: "connect",
            help: "whether a connection carries many operations, or one as in the published study: kept or per-request",
            kind: Kind::Word(check_connect),
            default: Some("kept"),
        },
        Parameter {
            name: "auth",
            help: "how passwords are proved, as the server's --auth says: opaque, argon2id or scram",
            kind: Kind::Word(check_auth),
            default: Some("opaque"),
        },
        Parameter {
            name: "client-stretch",
            help: "how clients stretch passwords: argon2id, which costs the generator 10 ms of a core each time (with \
                   auth=scram it is PBKDF2 of 4,096 iterations), or off; the server's work is the same",
            kind: Kind::Word(check_stretch),
            default: Some("off"),
        },
        Parameter {
            name: "fingerprint",
            help: "SHA-256 of the server's certificate, for a server with --tls on; or trial: that of every server that an \
                   experiment starts, whose key is public",
            kind: Kind::Word(check_fingerprint),
            default: None,
        },
    ],
    station: |server| {
        let workers = u32::try_from(whole(server, "workers")).ok().and_then(Servers::new);
        StationShape::unlimited(workers.expect("between 1 and 1024 workers"), Discipline::Fifo)
    },
    transport: |_| Transport::TCP,
    load,
    serve,
    limits,
    subcommands: Subcommands::NONE,
};

const WEIGHT: Kind = Kind::Number { least: 0.0, most: 1e6 };
/// The fingerprint that stands for that of the servers of experiments.
const OF_TRIALS: &str = "trial";
/// The name under which the server counts the transactions in which it stored new accounts.
const TRANSACTIONS: &str = "transactions";
/// The threads that the store's futures run on.
const STORE_THREADS: usize = 1;

/// Anything with a scheme passes: the program repeats a refused value, and a URL may have a password. Whether it names a store is
/// checked when it is opened, by [`StoreUrl`], whose errors hide the password.
///
/// [`StoreUrl`]: kendall_accounts::StoreUrl
fn check_store(word: &str) -> Result<(), String> {
    match word.contains(':') {
        true => Ok(()),
        false => Err(format!("must be a store such as sqlite:accounts.db or {IN_MEMORY}, not {word:?}")),
    }
}

fn check_switch(word: &str) -> Result<(), String> {
    match word {
        "on" | "off" => Ok(()),
        _ => Err(format!("must be on or off, not {word:?}")),
    }
}

fn check_auth(word: &str) -> Result<(), String> {
    word.parse::<AuthMethod>().map(drop)
}

fn check_connect(word: &str) -> Result<(), String> {
    reuse(word).map(drop)
}

fn check_stretch(word: &str) -> Result<(), String> {
    stretch(word).map(drop)
}

fn check_fingerprint(word: &str) -> Result<(), String> {
    fingerprint(word).map(drop)
}

fn fingerprint(word: &str) -> Result<[u8; 32], String> {
    if word == OF_TRIALS { Ok(keys::trial_identity().fingerprint) } else { read_fingerprint(word) }
}

fn reuse(word: &str) -> Result<Reuse, String> {
    match word {
        "kept" => Ok(Reuse::Keep),
        "per-request" => Ok(Reuse::Close),
        _ => Err(format!("must be kept or per-request, not {word:?}")),
    }
}

fn stretch(word: &str) -> Result<Stretch, String> {
    match word {
        "argon2id" => Ok(Stretch::Argon2id),
        "off" => Ok(Stretch::Off),
        _ => Err(format!("must be argon2id or off, not {word:?}")),
    }
}

fn method(settings: &Settings) -> Result<AuthMethod, String> {
    settings.word("auth").expect("it has a default").parse()
}

fn whole(settings: &Settings, name: &str) -> u64 {
    settings.whole(name).expect("it has a default")
}

fn load(address: SocketAddr, workload: &Settings, seed: u64) -> LoadResult {
    let weights = weights(workload);
    if weights.iter().sum::<f64>() <= 0.0 {
        return Err("register, log-in, who and call all have the weight 0; give one a weight".to_owned());
    }
    let reuse = reuse(workload.word("connect").expect("it has a default"))?;
    for (operation, weight) in Operation::ALL.into_iter().zip(weights) {
        if reuse == Reuse::Close && operation.needs_session() && weight > 0.0 {
            let name = operation.name();
            return Err(format!(
                "{name} needs a session, which a connection per request ends; set connect=kept"
            ));
        }
    }
    let security = match workload.word("fingerprint") {
        Some(word) => Security::pinned(fingerprint(word)?),
        None => Security::Plain,
    };
    let mix = Mix {
        weights,
        accounts: u32::try_from(whole(workload, "accounts")).expect("at most a million"),
        reuse,
        method: method(workload)?,
        stretch: stretch(workload.word("client-stretch").expect("it has a default"))?,
        security,
    };
    Ok(Box::new(ChatWorkload::new(address, seed, mix)))
}

/// What the machine allows a server with these settings under these requests.
fn limits(server: &Settings, workload: &Settings) -> Vec<MachineLimit> {
    let weights = weights(workload);
    let all = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    let [registrations, log_ins, ..] = weights.map(|weight| weight / all);
    let Ok(method) = method(workload) else { return Vec::new() };
    machine_limits(
        url_of_trial(server).as_ref(),
        TRANSACTIONS,
        PasswordShares { method, registrations, log_ins },
    )
}

fn weights(workload: &Settings) -> [f64; 4] {
    Operation::ALL.map(|operation| workload.number(operation.name()).expect("it has a default"))
}

fn serve(server: &Settings, serving: Serving) -> Result<(), String> {
    run(server, serving).map_err(|error| error.to_string())
}

fn run(
    server: &Settings,
    Serving { listen, metrics, stamps, ready, for_trial }: Serving,
) -> Result<(), ChatError> {
    let usual = Config::new(listen);
    let counts = stamps.as_deref().map(counts::beside);
    let service = Config {
        workers: NonZeroUsize::new(whole(server, "workers") as usize).unwrap_or(usual.workers),
        max_connections: whole(server, "connections") as usize,
        metrics,
        stamps,
        ..usual
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(STORE_THREADS)
        .thread_name("store")
        .enable_all()
        .build()
        .map_err(ChatError::Runtime)?;
    let Opened { store, durable, passwords, keys, temporary: _temporary } =
        store_choice::open(server, for_trial, &runtime)?;
    let identity =
        if server.is_on("tls") { Some(identity(server, keys.as_deref(), for_trial)?) } else { None };
    if let Some(identity) = &identity {
        tracing::warn!("clients pin this server by fingerprint={}", show_fingerprint(&identity.fingerprint));
    }
    let limits = Limits::default();
    let attempts = limits.attempts.filter(|_| server.is_on("limits"));
    let limits = Limits { attempts, ..limits };
    let method = method(server).expect("it was checked when it was read");
    let passwords = passwords.by(method);
    let options = DirectoryOptions { service, limits, store, runtime, passwords, identity };
    bind(options)?.run_until_signalled(ready)?;
    if let Some((file, store)) = counts.zip(durable) {
        counts::write(&file, &[(TRANSACTIONS, store.written().transactions)])?;
    }
    Ok(())
}

fn identity(server: &Settings, keys: Option<&Path>, for_trial: bool) -> Result<Identity, ChatError> {
    Ok(match (server.word("certificate"), server.word("certificate-key")) {
        (Some(certificate), Some(key)) => keys::identity_of(Path::new(certificate), Path::new(key))?,
        (None, None) if for_trial && keys.is_none() => keys::trial_identity(),
        (None, None) => keys::own_identity(keys)?,
        (Some(_), None) | (None, Some(_)) => return Err(ChatError::HalfCertificate),
    })
}

#[cfg(test)]
mod tests {
    use kendall_accounts::StoreUrl;

    use super::*;

    #[test]
    fn a_refused_store_is_shown_without_its_password() {
        for url in ["rediss://:s3cret@db/1", "postgres:/ada:s3cret@db/chat", "oracle://ada:s3cret@db/chat"] {
            assert_eq!(check_store(url), Ok(()));
            let error = url.parse::<StoreUrl>().unwrap_err().to_string();
            assert!(!error.contains("s3cret"), "{error}");
        }
        assert!(check_store("accounts.db").unwrap_err().contains("sqlite:accounts.db"));
    }
}
