//! Arranges the help of all commands: `-h` shows the first sentence on each frequent option, so that it fits in a screen; `--help` shows
//! everything. Commands with many options have them in groups, and each command that does something has examples.

use clap::{Arg, Command};

mod examples;

/// A heading with the names of the options below it.
type Group = (&'static str, &'static [&'static str]);

/// The options of a command, named by its path, in groups.
const GROUPS: &[(&str, &[Group])] = &[
    (
        "load",
        &[
            (
                "Arrivals",
                &[
                    "arrivals",
                    "arrivals-scv",
                    "rate",
                    "gap",
                    "capacity",
                    "stages",
                    "trace",
                    "trace-column",
                    "trace-ties",
                    "speed",
                    "users",
                    "think",
                    "think-law",
                    "requests-per-session",
                    "session-law",
                    "seed",
                ],
            ),
            ("Length of the run", &["requests", "duration", "warmup", "drain", "precision", "precision_of"]),
            ("Load generator", &["timeout", "connections", "timing", "core", "generator-threads"]),
            ("Agents", &["agents", "agents_count", "nats-creds", "nats-ca"]),
            ("Checks", &["expect", "allow", "junit"]),
            ("Server on this machine", &["probe", "profile", "keep_awake"]),
            ("Output", &["record", "export", "otlp", "remote_write", "quiet", "json"]),
        ],
    ),
    (
        "run",
        &[
            ("Run", &["results", "resume", "trust", "seed", "profile", "keep_awake"]),
            ("Checks", &["allow", "junit"]),
            ("Agents", &["agents", "agents_count", "nats-creds", "nats-ca"]),
            ("Output", &["export", "otlp", "remote_write", "open", "web", "json"]),
        ],
    ),
    (
        "serve reverse",
        &[
            ("Service", &["workers", "execution", "discipline", "device", "max-processes"]),
            ("Cluster", &["cluster", "nats-creds", "nats-ca", "cluster-ledger"]),
            ("Answers", &["cache", "cache-entries", "sharing"]),
            ("Limits", &["most-candidates", "deadline"]),
        ],
    ),
    (
        "serve recover",
        &[
            ("Service", &["workers", "discipline", "protocol"]),
            (
                "Passwords",
                &[
                    "strategy",
                    "dictionary",
                    "charset",
                    "mask",
                    "most-candidates",
                    "seen",
                    "table-memory",
                    "table-length",
                ],
            ),
            ("Cluster", &["cluster", "nats-creds", "nats-ca", "cluster-ledger"]),
            ("Files", &["most-file", "spool-memory", "spool-disk", "spool-folder", "trace"]),
        ],
    ),
    (
        "serve textsearch",
        &[
            (
                "Data",
                &["data", "data-rows", "data-bytes", "data-types", "data-seed", "layout", "index-memory"],
            ),
            ("Service", &["workers", "threads", "discipline", "protocol"]),
            ("Patterns", &["match", "answer", "unicode", "backtracking"]),
            ("Limits", &["deadline", "idle", "answer-memory", "cache", "pattern-memory"]),
        ],
    ),
    (
        "serve hold",
        &[
            ("Hold times", &["service", "mean", "scv", "seed", "busy"]),
            ("Station", &["workers", "room", "discipline", "sessions"]),
        ],
    ),
    (
        "serve chat",
        &[
            ("Accounts", &["store", "keys", "throwaway", "group-commit", "auth"]),
            ("TLS", &["tls", "certificate", "certificate-key"]),
            ("Limits", &["limits", "workers", "connections"]),
        ],
    ),
];

/// The options that `-h` leaves out, by the path of the command; without a path, in every command.
const RARE: &[(&str, &[&str])] = &[
    (
        "",
        &[
            "secret",
            "body-file",
            "requests-file",
            "expect-text",
            "expect-length",
            "expect-sha256",
            "streams",
            "reuse",
            "ca",
            "nats-creds",
            "nats-ca",
        ],
    ),
    (
        "load",
        &[
            "arrivals-scv",
            "capacity",
            "trace-column",
            "trace-ties",
            "speed",
            "think-law",
            "requests-per-session",
            "session-law",
            "drain",
            "precision_of",
            "timing",
            "core",
            "generator-threads",
            "agents",
            "agents_count",
            "junit",
            "otlp",
            "remote_write",
            "gap",
            "allow",
            "insecure",
        ],
    ),
    (
        "solve",
        &[
            "patience",
            "retry",
            "breakdown",
            "setup",
            "batch_size",
            "replications",
            "trace",
            "trace_customers",
            "services",
            "arrivals",
            "rate_profile",
            "approximations",
            "bounds",
            "style",
        ],
    ),
    ("compare", &["error_margin", "timeout", "connections", "figure", "markdown"]),
    ("serve recover", &["table-length", "spool-memory", "spool-disk", "spool-folder", "trace", "protocol"]),
    ("serve textsearch", &["data-types", "data-seed", "protocol", "answer", "idle", "answer-memory"]),
];

/// What to write for the value of an option whose own name does not say it, by the path of the command; without a path, in every command.
const VALUES: &[(&str, &str, &str)] = &[
    ("load", "arrivals", "LAW"),
    ("load", "trace", "FILE"),
    ("load", "trace-column", "COLUMN"),
    ("load", "trace-ties", "even|random"),
    ("load", "think-law", "LAW"),
    ("load", "session-law", "LAW"),
    ("load", "timing", "sleep|precise"),
    ("load", "generator-threads", "N|auto"),
    ("serve recover", "spool-folder", "DIR"),
    ("serve recover", "trace", "FILE"),
    ("serve reverse", "cache", "off|map|map+bloom"),
    ("serve reverse", "sharing", "ON|OFF"),
    ("serve reverse", "device", "auto|cpu|gpu"),
    ("serve textsearch", "layout", "flat|by-type|indexed"),
    ("serve textsearch", "match", "find|whole"),
    ("serve textsearch", "answer", "row|sentence"),
    ("serve textsearch", "protocol", "lines|utf"),
    ("serve hold", "service", "LAW"),
    ("serve hold", "busy", "ON|OFF"),
    ("serve hold", "sessions", "ON|OFF"),
    ("serve chat", "store", "URL"),
    ("serve chat", "keys", "DIR"),
    ("serve chat", "group-commit", "ON|OFF"),
    ("serve chat", "auth", "opaque|argon2id|scram"),
    ("serve chat", "limits", "ON|OFF"),
    ("", "cluster", "URL"),
    ("", "nats-creds", "FILE"),
    ("", "nats-ca", "FILE"),
    ("", "cluster-ledger", "FILE"),
    ("", "reuse", "keep|close"),
    ("", "expect-status", "STATUSES"),
    ("", "expect-text", "TEXT"),
    ("", "expect-sha256", "HEX"),
    ("", "http", "1|2|3"),
    ("", "secret", "NAME"),
];

/// Arranges the help of a command and of all below it.
pub(crate) fn arranged(command: Command) -> Command {
    below(command, "")
}

fn below(command: Command, path: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|one| one.get_name().to_owned()).collect();
    let inner = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path} {name}") };
    let command = names
        .iter()
        .fold(command, |command, name| command.mut_subcommand(name, |one| below(one, &inner(name))));
    with_examples(command.mut_args(|arg| argument(arg, path)), path)
}

/// Puts examples at the end of the long help: those of the table, and one that follows the sentence on the command.
fn with_examples(command: Command, path: &str) -> Command {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let (command, own) = match about.split_once(": kendall ") {
        Some((about, example)) => (command.about(about.to_owned()), Some(format!("kendall {example}"))),
        None => (command, None),
    };
    let examples: Vec<String> =
        own.into_iter().chain(examples::of(path).iter().map(|&example| example.to_owned())).collect();
    if examples.is_empty() || command.get_after_long_help().is_some() {
        return command;
    }
    command.after_long_help(format!("Examples:\n  {}", examples.join("\n  ")))
}

/// Whether a path of a table is that of a command, or of all.
fn holds(wanted: &str, path: &str) -> bool {
    wanted.is_empty() || wanted == path
}

fn argument(arg: Arg, path: &str) -> Arg {
    let id = arg.get_id().as_str().to_owned();
    let groups = GROUPS.iter().filter(|(of, _)| *of == path).flat_map(|(_, groups)| *groups);
    let heading = groups.into_iter().find(|(_, ids)| ids.contains(&id.as_str())).map(|(heading, _)| *heading);
    let value = VALUES.iter().find(|(of, name, _)| holds(of, path) && *name == id).map(|(.., value)| *value);
    let is_rare = RARE.iter().any(|(of, ids)| holds(of, path) && ids.contains(&id.as_str()));
    let help = arg.get_help().map(ToString::to_string).filter(|_| arg.get_long_help().is_none());
    let arg = heading.into_iter().fold(arg, Arg::help_heading);
    let arg = value.into_iter().fold(arg, Arg::value_name);
    let arg = if is_rare { arg.hide_short_help(true) } else { arg };
    match help.as_deref().map(|help| (brief(help), help)) {
        Some((Some(brief), help)) => arg.help(brief).long_help(help.to_owned()),
        _ => arg,
    }
}

/// The first sentence or main clause of a help text, with its default value; `None` where that is all of it.
fn brief(help: &str) -> Option<String> {
    let (text, default) = match help.rfind(" [default: ") {
        Some(at) if help.ends_with(']') => help.split_at(at),
        _ => (help, ""),
    };
    let ends = [text.find("; "), text.find(". ")];
    let end = ends.into_iter().flatten().min()?;
    Some(format!("{}{default}", &text[..end]))
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::Arguments;

    /// The most lines of a short help, for a screen of 100 columns.
    const LINES: usize = 60;

    /// Calls a function for each command that does something, with its path.
    fn each(command: &Command, path: &str, check: &mut impl FnMut(&str, &Command)) {
        for one in command.get_subcommands().filter(|one| one.get_name() != "help" && !one.is_hide_set()) {
            let path = format!("{path} {}", one.get_name()).trim().to_owned();
            if one.has_subcommands() { each(one, &path, check) } else { check(&path, one) }
        }
    }

    /// The words of an example, as a shell splits them.
    fn words(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let (mut word, mut quote) = (None::<String>, false);
        for letter in line.chars() {
            match letter {
                '\'' => {
                    quote = !quote;
                    word.get_or_insert_default();
                }
                ' ' if !quote => words.extend(word.take()),
                '|' | '<' | '>' | '#' if !quote => break,
                _ => word.get_or_insert_default().push(letter),
            }
        }
        words.extend(word);
        words
    }

    #[test]
    fn each_command_has_examples_that_it_understands() {
        let mut wrong = Vec::new();
        each(&arranged(Arguments::command()), "", &mut |path, command| {
            let help = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
            let key = |word: String| if word == "KEY" { "0".repeat(64) } else { word };
            let examples: Vec<Vec<String>> = help
                .lines()
                .map(|line| words(line.trim().trim_start_matches("sudo ")).into_iter().map(key).collect())
                .filter(|words: &Vec<String>| words.first().is_some_and(|first| first == "kendall"))
                .collect();
            if examples.is_empty() {
                wrong.push(format!("{path} has no example"));
            }
            let refused = examples.iter().filter_map(|words| Arguments::try_parse_from(words).err());
            wrong.extend(refused.map(|error| format!("{path}: {error}")));
        });
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn the_short_help_of_each_command_fits_in_a_screen() {
        let mut long = Vec::new();
        each(&arranged(Arguments::command()), "", &mut |path, command| {
            let lines = command.clone().render_help().to_string().lines().count();
            if lines > LINES {
                long.push(format!("{path}: {lines}"));
            }
        });
        assert!(long.is_empty(), "these have more than {LINES} lines: {long:?}");
    }

    #[test]
    fn tables_name_options_that_exist() {
        let command = arranged(Arguments::command());
        let mut seen: Vec<(String, String)> = Vec::new();
        each(&command, "", &mut |path, command| {
            let ids = command.get_arguments().map(|arg| arg.get_id().as_str().to_owned());
            seen.extend(ids.map(|id| (path.to_owned(), id)));
        });
        let groups = GROUPS.iter().flat_map(|(path, groups)| {
            groups.iter().flat_map(move |(_, ids)| ids.iter().map(move |id| (*path, *id)))
        });
        let rare = RARE.iter().flat_map(|(path, ids)| ids.iter().map(move |id| (*path, *id)));
        let values = VALUES.iter().map(|(path, id, _)| (*path, *id));
        let is_missing =
            |(path, id): &(&str, &str)| !seen.iter().any(|(of, name)| holds(path, of) && name == id);
        let missing: Vec<_> = groups.chain(rare).chain(values).filter(is_missing).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_first_clause_keeps_the_default() {
        assert_eq!(brief("Stop then; or later [default: 5]").as_deref(), Some("Stop then [default: 5]"));
        assert_eq!(brief("One. Two").as_deref(), Some("One"));
        assert_eq!(brief("Law of the gaps [default: a; b]"), None);
    }
}
