//! What a system offers at the terminal besides its server: `kendall NAME SUBCOMMAND`.

use std::io::{self, BufRead, Write};

use crate::parameter::Parameter;
use crate::settings::Settings;

/// The subcommands of a system.
#[derive(Clone, Copy, Debug)]
pub struct Subcommands {
    /// What they do, all together, for the list of commands.
    pub about: &'static str,
    /// Each of them; empty if there are none.
    pub all: &'static [Subcommand],
}

impl Subcommands {
    /// A system that has none.
    pub const NONE: Self = Self { about: "", all: &[] };
}

/// One subcommand.
#[derive(Debug)]
pub struct Subcommand {
    /// Its name.
    pub name: &'static str,
    /// What it does, in one sentence without a period, with an example.
    pub about: &'static str,
    /// What it takes by position. Each must be given.
    pub arguments: &'static [Parameter],
    /// What it takes as `--name value`.
    pub options: &'static [Parameter],
    /// Who calls it.
    pub caller: Caller,
    /// Does it. An error is a sentence for the user, without a period.
    pub run: fn(&Settings, &mut dyn Console) -> Result<Ended, String>,
}

/// Who calls a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// A user; `--help` lists it.
    User,
    /// The system's own server, which starts processes of this program; `--help` does not list it.
    Server,
}

/// How a subcommand ended that did not fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As the user wanted.
    Done,
    /// It ran, and the result is not the wanted one, which this sentence says.
    NotAsExpected(String),
}

/// The terminal, or the pipes, between a subcommand and its caller.
pub trait Console {
    /// Standard input.
    fn input(&mut self) -> &mut dyn BufRead;

    /// Standard output.
    fn output(&mut self) -> &mut dyn Write;

    /// Whether the user wants colours in the output, as far as the terminal and the environment say.
    fn takes_colours(&self) -> bool;

    /// Writes a line to standard error, if that is possible.
    fn note(&mut self, line: &str);

    /// Reads a line from standard input, without its end; a user at a terminal sees the prompt.
    ///
    /// # Errors
    /// Fails where standard input cannot be read.
    fn ask(&mut self, prompt: &str) -> io::Result<String>;

    /// Shows how far a transfer is.
    fn progress(&mut self, progress: Transfer);

    /// Removes what [`progress`](Self::progress) shows.
    fn progress_ended(&mut self);

    /// Writes a text to standard output. A reader that has closed it is no error.
    ///
    /// # Errors
    /// Says why the text cannot be written.
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

/// How far a transfer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes that are done.
    pub bytes: u64,
    /// All bytes.
    pub of_bytes: u64,
    /// What goes on.
    pub what: &'static str,
}
