//! The terminal, or the pipes, as a subcommand of a system sees them.

use std::env;
use std::io::{self, BufRead, IsTerminal, StdinLock, StdoutLock, Write};

use indicatif::{ProgressBar, ProgressStyle};
use kendall_system::{Console, Transfer};

use crate::print::note;

/// Standard input, output and error of this process.
pub(crate) struct Terminal {
    input: StdinLock<'static>,
    output: StdoutLock<'static>,
    bar: Option<ProgressBar>,
}

impl Terminal {
    pub(crate) fn new() -> Self {
        Self { input: io::stdin().lock(), output: io::stdout().lock(), bar: None }
    }
}

impl Console for Terminal {
    fn input(&mut self) -> &mut dyn BufRead {
        &mut self.input
    }

    fn output(&mut self) -> &mut dyn Write {
        &mut self.output
    }

    fn takes_colours(&self) -> bool {
        self.output.is_terminal() && env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
    }

    fn note(&mut self, line: &str) {
        note(line);
    }

    fn ask(&mut self, prompt: &str) -> io::Result<String> {
        if self.input.is_terminal() {
            note(prompt);
        }
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        Ok(line.trim_end_matches(['\r', '\n']).to_owned())
    }

    fn progress(&mut self, Transfer { bytes, of_bytes, what }: Transfer) {
        let style = "{bytes:>12} of {total_bytes} [{wide_bar}] {elapsed} {msg}";
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(style).expect("the template is valid");
            ProgressBar::new(of_bytes).with_style(style)
        });
        bar.set_length(of_bytes);
        bar.set_position(bytes);
        bar.set_message(what);
    }

    fn progress_ended(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}
