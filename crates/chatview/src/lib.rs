//! `kendall chat`, whose `open` is a full-screen terminal program, in strictly separated parts: [`model`] knows and decides, without terminal,
//! network, clock and file; [`draw`] draws it onto cells; the driver joins both with the terminal, the network and the history.

mod action;
mod contacts;
pub mod draw;
mod driver;
mod editor;
mod export;
pub mod history;
pub mod model;
mod open;
mod text;

use std::process::ExitCode;

use clap::{Args, Subcommand};
use kendall_chatcli::{UserOptions, exit_code};

pub use action::{Action, Edit};

/// The subcommands of `kendall chat`.
#[derive(Args)]
#[command(
    after_long_help = "Exit status: 0 done; 1 failed; 2 wrong command line; 3 the user cannot be reached or does not answer; 4 the \
    call or a file was refused; 5 a peer has another key than before, or another user answers; 6 the name or the password is wrong; 130 interrupted.\n\n\
    Example:\n  kendall chat register ann --server 127.0.0.1:5011\n  kendall chat open\n  kendall chat send bob 'lunch?'\n  \
    kendall chat recv --count 1"
)]
pub struct Chat {
    #[command(flatten)]
    user: UserOptions,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // Help is in the subcommand's own file: a documentation comment here would replace the long one.
    Open(open::Open),
    History(export::Export),
    #[command(flatten)]
    Other(kendall_chatcli::Command),
}

/// Runs a subcommand; its exit status.
///
/// # Errors
/// Returns errors for the user.
pub fn chat(Chat { user, command }: Chat) -> anyhow::Result<ExitCode> {
    let user = user.user()?;
    let done = match command {
        Command::Open(options) => open::open(user, options),
        Command::History(options) => export::export(&user, &options),
        Command::Other(command) => return kendall_chatcli::run(&user, command),
    };
    done.map(|()| ExitCode::SUCCESS).or_else(exit_code)
}
