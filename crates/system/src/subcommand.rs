//! The further commands of a system at the terminal: `kendall NAME SUBCOMMAND`.

use std::io::{self, BufRead, Write};

use crate::parameter::Parameter;
use crate::settings::Settings;

/// The subcommands of a system.
#[derive(Clone, Copy, Debug)]
pub struct Subcommands {
    /// A description of all subcommands, for the list of commands.
    pub about: &'static str,
    /// The subcommands; empty for a system without any.
    pub all: &'static [Subcommand],
}

impl Subcommands {
    /// No subcommands.
    pub const NONE: Self = Self { about: "", all: &[] };
}

/// A subcommand of a system.
#[derive(Debug)]
pub struct Subcommand {
    /// The subcommand's name.
    pub name: &'static str,
    /// A description, in one sentence without a period, with an example.
    pub about: &'static str,
    /// The subcommand's positional arguments, all required.
    pub arguments: &'static [Parameter],
    /// The subcommand's options, as `--name value`.
    pub options: &'static [Parameter],
    /// The caller of the subcommand.
    pub caller: Caller,
    /// Runs it. An error is a sentence for the user, without a period.
    pub run: fn(&Settings, &mut dyn Console) -> Result<SubcommandEnd, String>,
}

/// The caller of a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user; `--help` lists it.
    User,
    /// The system's own server, which starts processes of this program; `--help` does not list it.
    Server,
}

/// The outcome of a subcommand that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubcommandEnd {
    /// The subcommand ended as expected.
    Done,
    /// The subcommand ran, but not with the expected result, for the given reason.
    NotAsExpected(String),
}

/// The terminal, or the pipes, between a subcommand and its caller.
pub trait Console {
    /// Standard input.
    fn input(&mut self) -> &mut dyn BufRead;

    /// Standard output.
    fn output(&mut self) -> &mut dyn Write;

    /// Whether the output should have colours, according to the terminal and the environment.
    fn takes_colours(&self) -> bool;

    /// Writes a line to standard error, if that is possible.
    fn note(&mut self, line: &str);

    /// Reads a line from standard input, without its end; a user at a terminal sees the prompt.
    ///
    /// # Errors
    /// Fails if standard input cannot be read.
    fn ask(&mut self, prompt: &str) -> io::Result<String>;

    /// Shows the progress of a transfer.
    fn progress(&mut self, progress: Transfer);

    /// Removes the progress that [`progress`](Self::progress) shows.
    fn progress_ended(&mut self);

    /// Writes a text to standard output. A reader that has closed it is not an error.
    ///
    /// # Errors
    /// Fails if the text cannot be written.
    fn print(&mut self, text: &str) -> Result<(), String> {
        let out = self.output();
        match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(format!("cannot write the output: {error}"))
            }
            _ => Ok(()),
        }
    }
}

/// The progress of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes that are done.
    pub bytes: u64,
    /// The total number of bytes.
    pub of_bytes: u64,
    /// The current activity.
    pub what: &'static str,
}
