//! What holds of every start of kendall, however hostile its input.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use rustix::process::Signal;

use super::process::{FinishedProcess, Sink, Start};
use super::secrets::SECRET;
use super::world::{Entry, Snapshot, World, contains};

/// Traces of Rust's own formats of errors and values.
const DEBUG: &[&str] = &[
    "Err(",
    "Ok(",
    "Some(",
    "None)",
    "Os {",
    "Error {",
    "Custom {",
    "kind: ",
    "ParseIntError",
    "ParseFloatError",
    "Utf8Error",
    "RecvError",
    "::error::",
    ".rs:",
];

/// Judges how a start ended, whose world was as in `before`.
///
/// # Errors
/// Says what is wrong.
pub(super) fn judge(start: &Start<'_>, ended: &FinishedProcess, before: &Snapshot) -> Result<(), String> {
    let now = start.world.snapshot();
    let stderr = String::from_utf8_lossy(&ended.stderr);
    let wrong = |what: &str| {
        let said: String = stderr.chars().take(1500).collect();
        Err(format!("{what}; {:?}, standard error:\n{said}", ended.status))
    };
    if stderr.contains("panicked at")
        || stderr.contains("memory allocation of")
        || stderr.contains("overflowed its stack")
    {
        return wrong("it panics");
    }
    if let Some(signal) = ended.status.signal() {
        let is_ours = ended.interrupted > 0 && signal == Signal::INT.as_raw();
        // What it writes has no end because the arguments ask for that much.
        let is_long = signal == Signal::XFSZ.as_raw();
        if !is_ours && !is_long {
            return wrong("a signal ends it");
        }
    }
    if let Some(code @ (101 | 134 | 139)) = ended.status.code() {
        return wrong(&format!("exit status {code}"));
    }
    if [&ended.stdout, &ended.stderr].into_iter().any(|text| contains(text, SECRET.as_bytes())) {
        return wrong("it prints a secret");
    }
    if let Some(path) = start.world.holder_of(SECRET.as_bytes(), before, &now) {
        return wrong(&format!("{} has a secret", path.display()));
    }
    if let Some(path) = stray(start, ended, before, &now) {
        return wrong(&format!("it wrote {path}"));
    }
    for device in ["/dev/null", "/dev/zero", "/dev/full"] {
        if !fs::metadata(device).is_ok_and(|it| it.file_type().is_char_device()) {
            return wrong(&format!("it replaced {device}"));
        }
    }
    match ended.status.code() {
        // A load of which no request was answered prints its result, and needs no message.
        Some(1) if start.arguments[0] == "load" && !ended.stdout.is_empty() => Ok(()),
        Some(code @ (1 | 2)) => message(&stderr, code, start).or_else(|what| wrong(&what)),
        _ => Ok(()),
    }
}

/// One message, which names something of the command line.
fn message(stderr: &str, code: i32, start: &Start<'_>) -> Result<(), String> {
    let arguments = &start.arguments;
    let begins = |line: &&str| line.starts_with("kendall: ") || line.starts_with("error: ");
    let messages: Vec<&str> = stderr.lines().filter(begins).collect();
    // Without arguments that it needs, a command shows its help.
    let is_help = code == 2 && stderr.contains("\nUsage: ");
    // What runs at the ends of a link says itself what is wrong.
    let is_of_link = messages.len() == 2 && messages[1].contains("its output has the reason");
    // The shell that runs the user's line speaks for itself, and `kendall link run` passes its status on.
    let is_of_shell = arguments[0] == "link" && stderr.starts_with("/bin/sh: ");
    if messages.len() != 1 && !is_of_link && !(messages.is_empty() && (is_help || is_of_shell)) {
        return Err(format!("{} messages", messages.len()));
    }
    if messages.is_empty() {
        return Ok(());
    }
    // A name in it may have several lines.
    if stderr.trim().len() < 20 {
        return Err("the message says too little".into());
    }
    let text: String = arguments.iter().map(|argument| argument.to_string_lossy() + "\n").collect();
    if let Some(format) = DEBUG.iter().find(|format| stderr.contains(**format) && !text.contains(**format)) {
        return Err(format!("the message has {format:?}, which is no word for a user"));
    }
    // Where the state of the user is at fault, the message has the command that changes it. clap names one letter of "-1e308", and the
    // place of an argument whose text it must not print.
    let others = [
        "`kendall ",
        "unexpected argument",
        "invalid value '' for '<",
        "one or more arguments",
        "standard input",
    ];
    let is_other = others.iter().any(|other| stderr.contains(other)) || start.stdout != Sink::Kept;
    if arguments.len() > 1 && !is_other && !arguments.iter().skip(1).any(|argument| is_part(argument, stderr))
    {
        return Err("the message names nothing of the command line".into());
    }
    Ok(())
}

/// Whether a message names an argument, or the option, the file or the parameter in it.
fn is_part(argument: &OsStr, message: &str) -> bool {
    let text = argument.to_string_lossy();
    let said = plain(message);
    let ends = |letter: char| letter.is_control() || "=?&/:".contains(letter);
    let mut parts = text.split(ends).map(|part| part.trim_start_matches('-'));
    let is_said = |part: &str| {
        let plain: String = plain(part).chars().take(20).collect();
        !part.is_empty() && (message.contains(part) || !plain.is_empty() && said.contains(&plain))
    };
    let value = text.split_once('=').map_or(&*text, |(_, value)| value);
    !value.is_empty() && message.contains(value) || parts.any(is_said)
}

/// Letters, digits and marks that no message escapes or wraps.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| letter.is_alphanumeric() || "/.:-_<>".contains(*letter)).collect()
}

/// What was written, changed or left where no argument leads.
fn stray(start: &Start<'_>, ended: &FinishedProcess, before: &Snapshot, now: &Snapshot) -> Option<String> {
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    let changed = now.iter().filter(|(path, entry)| before.get(*path) != Some(*entry)).map(|(path, _)| path);
    let is_partial =
        |name: &str| ended.status.signal().is_some() && name.starts_with('.') && name.ends_with(".tmp");
    let in_order = ended.status.code().is_some() && ended.interrupted < 2;
    let mut strays = gone.chain(changed).filter(|path| {
        let mut parts = path.components().map(|part| part.as_os_str().to_string_lossy());
        let (top, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
        match &*top {
            // Accounts, keys, states: folders of kendall's own.
            "home" => !is_of_kendall(path) && now.get(*path) != Some(&Entry::Folder),
            // A program that is ended by force leaves its temporary files, those of what it writes beside that.
            "here" => !name.is_empty() && !is_named(&name, &start.arguments) && !is_partial(&name),
            "tmp" => in_order && path.components().count() > 1,
            _ => true,
        }
    });
    strays.next().map(|path| path.display().to_string())
}

fn is_of_kendall(path: &Path) -> bool {
    path.components().any(|part| part.as_os_str() == "kendall")
}

/// Whether an argument names an entry of the folder, or one whose name begins so, such as FILE.counts.
fn is_named(entry: &str, arguments: &[OsString]) -> bool {
    let texts = arguments.iter().map(|argument| argument.to_string_lossy());
    texts.into_iter().any(|text| {
        let last = text.rsplit(['/', '=', ':']).next().unwrap_or_default();
        text.contains(entry)
            || (last.len() > 1 && entry.starts_with(last))
            || (entry == "nowhere" && text.contains("dangling"))
            || (entry == "notes" && text.contains("link"))
            || (entry == "results" && text == "run")
            || (entry == "export" && text == ".")
    })
}

/// Whether text that came from a file or a peer acts on the terminal.
pub(super) fn acts_on_terminal(ended: &FinishedProcess) -> bool {
    let is_control = |byte: &u8| *byte < 0x20 && !b"\n\t".contains(byte);
    [&ended.stdout, &ended.stderr].into_iter().any(|text| text.iter().any(is_control))
}

/// Runs a start and judges it.
pub(super) fn run(start: &Start<'_>) -> Result<FinishedProcess, String> {
    let before = start.world.snapshot();
    let shown = shown(&start.arguments);
    let located = |why| format!("kendall {shown}\n  in {}: {why}", start.world.here().display());
    let ended = start.run().map_err(located)?;
    judge(start, &ended, &before).map_err(located)?;
    Ok(ended)
}

fn shown(arguments: &[OsString]) -> String {
    let quoted = arguments.iter().map(|argument| {
        let text = argument.to_string_lossy();
        let short: String = text.chars().take(120).collect();
        if short.len() < text.len() {
            format!("{short:?}… of {} bytes", text.len())
        } else {
            format!("{short:?}")
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// A world is used where a case needs nothing else of it.
pub(super) fn try_in(
    world: &World,
    arguments: Vec<OsString>,
    goes_on: bool,
) -> Result<FinishedProcess, String> {
    let stdout = Sink::Kept;
    run(&Start { world, arguments, stdin: Vec::new(), stdout, goes_on })
}
