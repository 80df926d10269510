//! Output of commands on the terminal: answers to standard output, notes to standard error; and the text that commands read
//! from files that the user named. Nothing that is written acts on the terminal, and a reader that has read enough is not an
//! error.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;

/// No table and no description is longer.
const MOST_BYTES: u64 = 64 << 20;

/// Writes text to standard output, in which nothing acts on the terminal: names and words may be from a file of another person.
///
/// # Errors
/// Fails where standard output cannot be written.
pub fn out(text: &str) -> anyhow::Result<()> {
    write(&inert(text))
}

/// A text with its control characters as escapes, all but the ends of lines and tabs.
fn inert(text: &str) -> Cow<'_, str> {
    let acts = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !text.contains(acts) {
        return text.into();
    }
    let escape =
        |letter: char| if acts(letter) { letter.escape_default().to_string() } else { letter.into() };
    text.chars().map(escape).collect()
}

/// Writes to standard output as it is. A reader that closed its end has read enough, which is not an error.
///
/// # Errors
/// Fails where standard output cannot be written.
pub fn write(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    let written =
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write the output");
    written.or_else(|error| if is_closed_pipe(&error) { Ok(()) } else { Err(error) })
}

/// Whether something could not be written because its reader has gone.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Writes a line to standard error, if it can be, in which nothing acts on the terminal.
pub fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", inert(line));
}

/// Prints a value as indented JSON.
///
/// # Errors
/// As [`out()`].
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    out(&(serde_json::to_string_pretty(value)? + "\n"))
}

/// An error and its causes, without the causes that the error's own words name.
pub fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if words.is_empty() {
            words = cause;
        } else if !words.contains(&cause) {
            words += &format!(": {cause}");
        }
    }
    words
}

/// Prints a value as JSON on its own line.
///
/// # Errors
/// As [`out()`].
pub fn json_line(value: &impl Serialize) -> anyhow::Result<()> {
    out(&(serde_json::to_string(value)? + "\n"))
}

/// The text of a file that the user named.
///
/// # Errors
/// Fails with the file's name where it cannot be read, is too long or is not text.
pub fn read(path: &Path) -> anyhow::Result<String> {
    kendall_files::read_text(path, MOST_BYTES).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_escaped() {
        assert_eq!(inert("a\u{1b}[2J\r\u{9b}\tb\n"), "a\\u{1b}[2J\\r\\u{9b}\tb\n");
        assert!(matches!(inert("é 🦀\n"), Cow::Borrowed(_)));
    }
}
