//! The subcommands of kendall with their options, read from its man pages, so that new ones are tried, too.

use std::fs;
use std::path::Path;

use super::world::World;

/// A subcommand that does something.
pub(super) struct Subcommand {
    pub(super) path: Vec<String>,
    pub(super) options: Vec<CliOption>,
    /// The names of arguments that have none.
    pub(super) positionals: Vec<String>,
}

/// An option, and the name of its value if it takes one.
pub(super) struct CliOption {
    pub(super) name: String,
    pub(super) value: Option<String>,
}

/// All subcommands, in the order of their names.
pub(super) fn all(world: &World) -> Vec<Subcommand> {
    let folder = world.path("out/man");
    fs::create_dir(&folder).unwrap();
    let written = super::process::kendall(world).arg("man").arg(&folder).status().unwrap();
    assert!(written.success());
    let mut pages: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    pages.iter().filter_map(|page| subcommand(page)).collect()
}

/// Reads a page; none where it is that of several subcommands.
fn subcommand(page: &Path) -> Option<Subcommand> {
    let text = fs::read_to_string(page).unwrap();
    let mut section = String::new();
    let mut path = Vec::new();
    let (mut options, mut positionals) = (Vec::new(), Vec::new());
    let mut is_head = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix(".SH ") {
            section = name.trim_matches('"').to_owned();
        } else if line == ".TP" {
            is_head = true;
            continue;
        } else if section == "SYNOPSIS" && path.is_empty() {
            let (name, _) = line.strip_prefix("\\fB")?.split_once("\\fR")?;
            path = bare(name).split(' ').skip(1).map(str::to_owned).collect();
        } else if section.contains("COMMANDS") {
            return None;
        } else if is_head && line.starts_with("\\fB") {
            options.extend(option(&bare(line)));
        } else if is_head && line.starts_with(['<', '[']) {
            let name = bare(line);
            let name = name.trim_start_matches(['<', '[']);
            positionals.push(name.split(['>', ']']).next().unwrap_or_default().to_owned());
        }
        is_head = false;
    }
    (!path.is_empty()).then_some(Subcommand { path, options, positionals })
}

/// Text without the marks of roff.
fn bare(line: &str) -> String {
    line.replace("\\fB", "")
        .replace("\\fI", "")
        .replace("\\fR", "")
        .replace("\\-", "-")
        .replace("\\*(Aq", "'")
}

/// The option of a line such as `-q, --quiet` or `--rate <RATE> [default: 5]`.
fn option(line: &str) -> Option<CliOption> {
    let (_, long) = line.split_once("--")?;
    let end =
        long.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(long.len());
    let (name, rest) = long.split_at(end);
    let value =
        rest.trim_start_matches(['[', '=', ' ']).strip_prefix('<').and_then(|rest| rest.split('>').next());
    // The page of a run opens a browser.
    (!["help", "version", "open"].contains(&name))
        .then(|| CliOption { name: name.to_owned(), value: value.map(str::to_owned) })
}

/// A valid use of a subcommand, into which something hostile is put: options, arguments, and what stands after `--`.
pub(super) struct Base {
    pub(super) options: Vec<String>,
    pub(super) positionals: Vec<String>,
    pub(super) trailing: Vec<String>,
}

/// The valid uses, as `options | arguments | trailing`. A subcommand that is not here is tried with hostile arguments alone.
const BASES: &[(&str, &str)] = &[
    ("solve", "--arrival-rate=20 --service-rate=4.2 --customers=2000 | M/M/6"),
    ("plan", "--arrival-rate=20 --service-rate=4.2 | M/M/6"),
    ("run", "--results=out | x.toml"),
    ("web", "--listen=127.0.0.1:0 | folder"),
    ("report", "| folder"),
    ("export", "--format=csv --out=out | folder"),
    ("fit", "| table.csv"),
    ("predict", "--rate=30 | table.csv"),
    ("check", "| table.csv"),
    ("replay", "| folder G/G/2"),
    ("compare", "| numbers a=numbers"),
    ("load", "--rate=50 --requests=5 --quiet | {hold}"),
    ("peak", "--slo=p99<1s --duration=100ms | {hold}"),
    ("validate", "--rounds=1 --low-duration=100ms --duration=100ms | {hold}"),
    ("probe", "--duration=50ms | {pid}"),
    ("link run", "--delay=1ms --quiet || true"),
    ("link relay", "--to=127.0.0.1:1"),
    ("selfcheck", "--seeds=1 --duration=100ms --warmup=10ms --jobs=1"),
    ("completions", "| bash"),
    ("man", "| folder"),
    ("serve http", "--listen=127.0.0.1:0 --command=true"),
    ("serve chat", "--listen=127.0.0.1:0 --store=memory: --throwaway"),
    ("serve textsearch", "--listen=127.0.0.1:0 --data=lines.txt"),
    ("serve transport", "--listen=127.0.0.1:0 --kind=tcp"),
    ("recover encrypt", "--password=abc --out=out | notes"),
    (
        "recover request",
        "--hash=a9993e364706816aba3e25717850c26c9cd0d89d --length=3 --server=127.0.0.1:1 --out=out | notes.enc",
    ),
    ("textsearch query", "| lines.txt ;a"),
    ("textsearch index", "| lines.txt"),
    ("textsearch generate", "--rows=100 | out"),
    ("transport handshake", "| tcp"),
    ("curve keygen", "| out"),
    ("curve show", "| key"),
    ("curve cat", "--timeout=200ms | server.example {key} 127.0.0.1:1"),
    ("curve connect", "--timeout=200ms | server.example {key} 127.0.0.1:1 | true"),
    ("curve serve", "| server.example key 127.0.0.1:0 | true"),
    ("curve serve-files", "--authorized-keys=authorized | server.example key 127.0.0.1:0 folder"),
    ("curve serve-shell", "--authorized-keys=authorized | server.example key 127.0.0.1:0"),
    ("curve copy", "--timeout=200ms --key-directory=key --server host {key} 127.0.0.1:1 | notes host:notes"),
    ("curve shell", "--timeout=200ms --key-directory=key --server host {key} 127.0.0.1:1 | host"),
    ("curve tunnel", "--timeout=200ms --key-directory=key --server host {key} 127.0.0.1:1 | host"),
    ("chat register", "--password-file=password --server=127.0.0.1:1 | ann"),
];

/// Subcommands that may go on until Ctrl-C, because they serve, load, or do what their options ask for as long as those say.
const GOING_ON: &[&str] = &[
    "serve ",
    "web",
    "load",
    "peak",
    "validate",
    "compare",
    "run",
    "probe",
    "link ",
    "selfcheck",
    "chat ",
    "curve ",
    "transport ",
    "textsearch generate",
];

impl Subcommand {
    pub(super) fn name(&self) -> String {
        self.path.join(" ")
    }

    pub(super) fn goes_on(&self) -> bool {
        GOING_ON.iter().any(|name| self.name().starts_with(name.trim_end()))
    }

    /// Its valid use. `replaced` has what stands for {hold}, {key} and so on.
    pub(super) fn base(&self, replaced: &[(&str, &str)]) -> Base {
        let found = BASES.iter().find(|(name, _)| *name == self.name());
        let line =
            found.map_or(if self.path[0] == "serve" { "--listen=127.0.0.1:0" } else { "" }, |(_, line)| line);
        let words = |part: Option<&str>| -> Vec<String> {
            let fill = |word: &str| {
                replaced.iter().fold(word.to_owned(), |word, (name, value)| word.replace(name, value))
            };
            part.unwrap_or_default().split_whitespace().map(fill).collect()
        };
        let mut parts = line.split('|');
        Base { options: words(parts.next()), positionals: words(parts.next()), trailing: words(parts.next()) }
    }
}
