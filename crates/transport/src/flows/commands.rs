//! The subcommands: `kendall transport flows`, `compete` and `handshake`, and the two ends of a link.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kendall_archive::{utc_now, write_json};
use kendall_flows::{ABOUT, Competition, TOURNAMENT, Tournament, competition, handshakes};
use kendall_link::LinkSettings;
use kendall_system::{
    Caller, Console, Kind as Values, Parameter, Settings, Subcommand, SubcommandEnd, Subcommands,
};
use serde::Serialize;

use super::about;
use super::course::{self, Setting};
use super::end::server_address;
use super::far;
use super::impaired::{CONDITIONS, Impaired};
use super::near;
use super::plan::{TROUBLE, Task};
use super::published::{Here, ROWS, Reproduced};
use super::source::{Flow, Source, read_connections, read_contenders, read_echo, read_flows};
use super::table;
use crate::kind::Kind;

const LINK: Parameter = Parameter {
    name: "link",
    help: "the link, or several in a row with > between them: \"delay=10ms rate=10mbit queue=64k loss=1%\"; the server \
           sends, so a rate, queue or loss applies to its direction",
    kind: Values::Text(|text| {
        LinkSettings::read_row(text).map(drop).map_err(|fault| format!("cannot be used: {fault}"))
    }),
    default: Some("delay=10ms rate=10mbit queue=64k"),
};
const LASTING: Parameter = Parameter {
    name: "duration",
    help: "measured time of the flows, after the warm-up",
    kind: Values::Time,
    default: Some("15s"),
};
const WARM_UP: Parameter = Parameter {
    name: "warmup",
    help: "time that flows run before they are measured, once the last has begun",
    kind: Values::Time,
    default: Some("5s"),
};
const ECHO: Parameter = Parameter {
    name: "echo",
    help: "the kind of the echoes alongside the flows, 64 bytes each, which show the latency under load: any kind but scp",
    kind: Values::Word(|word| read_echo(word).map(drop)),
    default: Some("tcp"),
};
const CONGESTION: Parameter = Parameter {
    name: "congestion",
    help: "congestion control of TCP, at both ends: cubic, reno, bbr; curve and quic always use their own CUBIC",
    kind: Values::Word(kendall_link::check_congestion_control),
    default: Some("cubic"),
};
const SEED: Parameter = Parameter {
    name: "seed",
    help: "seed of the losses and delays on the link",
    kind: Values::Whole { least: 0, most: u64::MAX },
    default: Some("1"),
};
const RECORD: Parameter = Parameter {
    name: "record",
    help: "new folder for the results: the page report.html, near.json every 100 ms, and the link's own record, every 10 ms",
    kind: Values::File,
    default: None,
};
const JSON: Parameter =
    Parameter { name: "json", help: "print the result as JSON", kind: Values::Switch, default: Some("off") };
const CONTENDERS: Parameter = Parameter {
    name: "kinds",
    help: "kinds with commas between them: curve, tcp, tls, quic, https, ssh or scp (OpenSSH), nacl (the reference programs of \
           CurveCP), tunnel or wireguard (TCP within one); up:tcp goes from client to server",
    kind: Values::Word(|text| read_contenders(text).map(drop)),
    default: None,
};
const CONNECTIONS: Parameter = Parameter {
    help: "kinds with commas between them: curve, tcp, tls, quic, https, ssh or scp (OpenSSH), nacl (the reference programs of \
           CurveCP), tunnel or wireguard (TCP within one, which is set up anew for each connection)",
    kind: Values::Word(|text| read_connections(text).map(drop)),
    ..CONTENDERS
};
const FOLDER: Parameter =
    Parameter { name: "folder", help: "the folder that both ends share", kind: Values::File, default: None };

/// The subcommands.
pub(crate) const SUBCOMMANDS: Subcommands = Subcommands {
    about: "Let transports compete for an emulated link, and count what their handshakes cost",
    all: &[
        Subcommand {
            name: "flows",
            about: "Send flows over one link at a time, from its server to its client or back: kendall transport flows 2xtcp,curve",
            arguments: &[Parameter {
                name: "flows",
                help: "flows with commas between them: curve, tcp, tls, quic, https, ssh, scp, nacl, tunnel or wireguard (TCP \
                       within one); 3xtcp is three, tcp+5 begins 5 seconds late, and up:tcp goes from client to server",
                kind: Values::Word(|text| read_flows(text).map(drop)),
                default: None,
            }],
            options: &[
                LINK,
                LASTING,
                WARM_UP,
                ECHO,
                CONGESTION,
                SEED,
                Parameter {
                    name: "move-after",
                    help: "when the client's address changes, after the first flows have begun; needs the program ip",
                    kind: Values::Time,
                    default: None,
                },
                RECORD,
                JSON,
            ],
            caller: Caller::User,
            run: flows,
        },
        Subcommand {
            name: "compete",
            about: "Let every two of some kinds share a link, and print the matrix: kendall transport compete curve,tcp,quic",
            arguments: &[CONTENDERS],
            options: &[LINK, LASTING, WARM_UP, ECHO, CONGESTION, SEED, RECORD, JSON],
            caller: Caller::User,
            run: compete,
        },
        Subcommand {
            name: "handshake",
            about: "Count time, bytes and packets of new connections with one byte each: kendall transport handshake curve,tls",
            arguments: &[CONNECTIONS],
            options: &[
                Parameter { default: Some("delay=25ms"), ..LINK },
                Parameter {
                    name: "count",
                    help: "number of connections of each kind, one after the other",
                    kind: Values::Whole { least: 1, most: 10_000 },
                    default: Some("20"),
                },
                CONGESTION,
                SEED,
                JSON,
            ],
            caller: Caller::User,
            run: handshake,
        },
        Subcommand {
            name: "impaired",
            about: "Send a flow of each kind over a link that loses and reorders packets or is silent, and from a new address: kendall \
                    transport impaired ssh,curve",
            arguments: &[CONTENDERS],
            options: &[LINK, LASTING, WARM_UP, CONGESTION, SEED, JSON],
            caller: Caller::User,
            run: impaired,
        },
        Subcommand {
            name: "published",
            about: "Repeat the study of CurveCP from 2011, with its programs and kendall's: kendall transport published",
            arguments: &[],
            options: &[LASTING, WARM_UP, ECHO, CONGESTION, SEED, JSON],
            caller: Caller::User,
            run: published,
        },
        Subcommand {
            name: "far",
            about: "Serve flows at the server's end of a link",
            arguments: &[FOLDER],
            options: &[],
            caller: Caller::Server,
            run: far_end,
        },
        Subcommand {
            name: "near",
            about: "Receive flows at the client's end of a link",
            arguments: &[FOLDER],
            options: &[],
            caller: Caller::Server,
            run: near_end,
        },
    ],
};

/// How long echoes measure the latency of the link alone before flows begin.
const IDLE: Duration = Duration::from_secs(2);

fn setting(settings: &Settings, link: &str) -> Setting {
    let congestion = settings.word("congestion").expect("it has a default").to_owned();
    Setting { link: link.to_owned(), congestion, seed: settings.whole("seed").expect("it has a default") }
}

fn link(settings: &Settings) -> &str {
    settings.word("link").expect("it has a default")
}

fn echo(settings: &Settings) -> Source {
    settings
        .word("echo")
        .and_then(|word| read_echo(word).ok())
        .expect("it has a default that its kind checked")
}

/// Flows over a link, with concurrent echoes.
struct Run<'a> {
    flows: Vec<Flow>,
    link: &'a str,
    echo: Source,
    /// How long echoes run before flows begin.
    idle: Duration,
    /// The instant at which the client's address changes.
    moving_after: Option<Duration>,
}

impl<'a> Run<'a> {
    /// A run by the options.
    fn new(flows: Vec<Flow>, settings: &'a Settings) -> Self {
        let moving_after = settings.time("move-after");
        Self { flows, link: link(settings), echo: echo(settings), idle: IDLE, moving_after }
    }

    /// Runs the flows in a folder, and measures them.
    fn measure(self, settings: &Settings, folder: &Path) -> Result<Competition, String> {
        let Self { flows, link, echo, idle, moving_after } = self;
        let latest = flows.iter().map(|flow| flow.after).max().unwrap_or_default();
        let warm_up = time(settings, "warmup");
        let lasting = latest + warm_up + time(settings, "duration");
        let setting = setting(settings, link);
        let about = about::flows(&flows, &setting, echo, warm_up, settings);
        write_json(&folder.join(ABOUT), &about).map_err(|error| error.to_string())?;
        let task = Task::Flows { flows, idle, lasting, moving_after };
        competition(&about, &course::run(task, echo, &setting, folder)?)
    }
}

fn time(settings: &Settings, name: &str) -> Duration {
    settings.time(name).expect("it has a default")
}

/// The new folder that --record names, or a temporary one.
enum Folder {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Folder {
    fn of(settings: &Settings) -> Result<Self, String> {
        let Some(folder) = settings.word("record") else { return temporary().map(Self::Temporary) };
        let made = fs::create_dir(folder);
        made.map_err(|error| format!("cannot make {folder}: {error}; name a new folder for the record"))?;
        Ok(Self::Kept(folder.into()))
    }

    fn path(&self) -> &Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(folder) => folder.path(),
        }
    }
}

fn temporary() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}; set TMPDIR"))
}

fn print(
    console: &mut dyn Console,
    settings: &Settings,
    result: &impl Serialize,
    text: &str,
) -> Result<(), String> {
    if settings.is_on("json") {
        let json = serde_json::to_string_pretty(result).map_err(|error| error.to_string())?;
        return console.print(&format!("{json}\n"));
    }
    console.print(text)
}

/// The end of a run in which this many flows or connections failed.
fn ended(failures: usize) -> SubcommandEnd {
    match failures {
        0 => SubcommandEnd::Done,
        _ => SubcommandEnd::NotAsExpected(format!(
            "{failures} flows or connections failed; the result has the reasons"
        )),
    }
}

fn flows(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let flows = read_flows(settings.word("flows").expect("it is required"))?;
    let result = Run::new(flows, settings).measure(settings, Folder::of(settings)?.path())?;
    print(console, settings, &result, &table::competition(&result))?;
    Ok(ended(result.failures.len()))
}

/// The result of two flows that shared a link.
#[derive(Serialize)]
struct Pair {
    first: String,
    second: String,
    result: Competition,
}

fn compete(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let text = settings.word("kinds").expect("it is required");
    let flows = read_contenders(text)?;
    let kinds: Vec<String> = text.split(',').map(str::to_owned).collect();
    let folder = Folder::of(settings)?;
    let mut record = Tournament {
        started_utc: utc_now(),
        command: about::command("compete", settings),
        kinds: kinds.clone(),
        pairs: Vec::new(),
    };
    let mut pairs: Vec<Pair> = Vec::new();
    for one in 0..flows.len() {
        for other in one..flows.len() {
            let [first, second] = [one, other].map(|place| kinds[place].clone());
            console.note(&format!("{first} and {second}"));
            let name = format!("{:03}-{first}-{second}", pairs.len() + 1).replace(':', "-");
            let own = folder.path().join(&name);
            fs::create_dir(&own).map_err(|error| format!("cannot make {}: {error}", own.display()))?;
            let result = Run::new(vec![flows[one], flows[other]], settings).measure(settings, &own)?;
            pairs.push(Pair { first, second, result });
            // After each pair, so that kendall report can show an interrupted run.
            record.pairs.push(name);
            write_json(&folder.path().join(TOURNAMENT), &record).map_err(|error| error.to_string())?;
        }
    }
    let share = |own: &str, other: &str| {
        pairs.iter().find_map(|pair| {
            let place = match (pair.first.as_str(), pair.second.as_str()) {
                two if two == (own, other) => 0,
                two if two == (other, own) => 1,
                _ => return None,
            };
            Some(pair.result.flows[place].share)
        })
    };
    print(console, settings, &pairs, &table::matrix(&kinds, share))?;
    let failures: Vec<&String> = pairs.iter().flat_map(|pair| &pair.result.failures).collect();
    failures.iter().for_each(|failure| console.note(&format!("failed: {failure}")));
    Ok(ended(failures.len()))
}

fn published(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let mut results = Vec::new();
    for row in &ROWS {
        let mut here = Vec::new();
        for source in row.sources() {
            console.note(&format!("{source} over {}", row.link));
            let echo = row.echo(source).unwrap_or_else(|| echo(settings));
            let flows = row.flows(source);
            let run = Run { flows, link: row.link, echo, idle: Duration::ZERO, moving_after: None };
            let result = run.measure(settings, temporary()?.path());
            here.push(Here::new(row, source, result));
        }
        results.push(Reproduced::new(row, here));
    }
    print(console, settings, &results, &table::published(&results))?;
    let failures: Vec<&String> =
        results.iter().flat_map(|row| &row.here).flat_map(|here| &here.failures).collect();
    failures.iter().for_each(|failure| console.note(&format!("failed: {failure}")));
    Ok(ended(failures.len()))
}

fn impaired(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let kinds = settings.word("kinds").expect("it is required");
    let (warm_up, lasting) = (time(settings, "warmup"), time(settings, "duration"));
    let mut results = Vec::new();
    for (kind, flow) in kinds.split(',').zip(read_contenders(kinds)?) {
        for condition in &CONDITIONS {
            console.note(&format!("{kind}: {}", condition.name()));
            let link = condition.link(link(settings));
            let moving_after = condition.moving_after(warm_up, lasting);
            let echo = Source::Ours(Kind::Tcp);
            let run = Run { flows: vec![flow], link: &link, echo, idle: Duration::ZERO, moving_after };
            let result = run.measure(settings, temporary()?.path());
            results.push(Impaired::new(kind, condition, link, lasting, result));
        }
    }
    print(console, settings, &results, &table::impaired(&results))?;
    let failures = results.iter().flat_map(|result| result.failures.iter().map(|why| (&result.kind, why)));
    let failures: Vec<String> = failures.map(|(kind, why)| format!("{kind} failed: {why}")).collect();
    failures.iter().for_each(|failure| console.note(failure));
    Ok(ended(failures.len()))
}

fn handshake(settings: &Settings, console: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let count = settings.whole("count").and_then(|count| u32::try_from(count).ok());
    let count = count.expect("its kind bounds it");
    let mut results = Vec::new();
    for source in read_connections(settings.word("kinds").expect("it is required"))? {
        let task = Task::Handshakes { source, count };
        let traces = course::run(
            task,
            Source::Ours(Kind::Tcp),
            &setting(settings, link(settings)),
            temporary()?.path(),
        )?;
        results.push(handshakes(source.to_string(), &traces));
    }
    print(console, settings, &results, &table::handshakes(&results))?;
    let failures: Vec<&String> = results.iter().flat_map(|result| &result.failures).collect();
    failures.iter().for_each(|failure| console.note(&format!("failed: {failure}")));
    Ok(ended(failures.len()))
}

fn folder(settings: &Settings) -> PathBuf {
    PathBuf::from(settings.word("folder").expect("it is required"))
}

fn far_end(settings: &Settings, _: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let folder = folder(settings);
    let result = server_address().and_then(|at| far::run(&course::plan_in(&folder)?, at, &folder));
    if let Err(why) = &result {
        // The caller reads it there; its own output comes too late.
        kendall_files::replace(&folder.join(TROUBLE), why)
            .map_err(|error| format!("{why}; cannot report it: {error}"))?;
    }
    result.map(|()| SubcommandEnd::Done)
}

fn near_end(settings: &Settings, _: &mut dyn Console) -> Result<SubcommandEnd, String> {
    let folder = folder(settings);
    let seen = near::run(&course::plan_in(&folder)?, server_address()?)?;
    course::write_seen(&folder, &seen)?;
    Ok(SubcommandEnd::Done)
}
