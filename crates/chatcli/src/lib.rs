//! `kendall chat`: a client of the chat for a command line and for scripts.
//!
//! A profile is a folder with the user's name, the server, the user's key and the keys of peers. Each command logs in, does one
//! thing and ends; `send`, `receive` and `talk` hold conversations with peers meanwhile.

mod account;
mod conversation;
mod failure;
mod files;
mod known;
mod output;
mod password;
mod profile;
mod receive;
mod send;
mod session;
mod talk;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use kendall_linkmodel::duration_ns;

use crate::account::{Delete, Login, Passwd, Peers, Register, Who};
use crate::failure::exit_code;
use crate::receive::Receive;
use crate::send::Send;
use crate::talk::Talk;

/// The subcommands of `kendall chat`.
#[derive(Args)]
#[command(
    after_long_help = "Exit status: 0 done; 1 failed; 2 wrong command line; 3 the user cannot be reached or does not answer; 4 the \
    call was refused; 5 a peer has another key than before; 6 the name or the password is wrong; 130 interrupted.\n\n\
    Example:\n  kendall chat register ann --server 127.0.0.1:5011\n  kendall chat send bob 'lunch?'\n  kendall chat recv --count 1"
)]
pub struct Chat {
    /// The profile: which user of this machine's users of the chat
    #[arg(long, value_name = "NAME", default_value = "default", global = true)]
    profile: String,

    /// Read the password from the first line of this file [default: ask at the terminal]
    #[arg(long, value_name = "FILE", global = true)]
    password_file: Option<std::path::PathBuf>,

    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    // Here and below, help is in the subcommand's own file: a documentation comment here would replace the long one.
    Register(Register),
    Login(Login),
    Who(Who),
    Send(Send),
    #[command(name = "recv")]
    Receive(Receive),
    Talk(Talk),
    Peers(Peers),
    Passwd(Passwd),
    Delete(Delete),
}

/// Runs a subcommand; its exit status.
///
/// # Errors
/// What a user has to read.
pub fn chat(chat: Chat) -> anyhow::Result<ExitCode> {
    let Chat { profile, password_file, command } = chat;
    let user = session::User { profile: profile::Profile::named(&profile)?, password_file };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let work = async {
        match command {
            Command::Register(options) => account::register(&user, options).await,
            Command::Login(options) => account::login(&user, options).await,
            Command::Who(options) => account::who(&user, options).await,
            Command::Send(options) => send::send(&user, options).await,
            Command::Receive(options) => receive::receive(&user, options).await,
            Command::Talk(options) => talk::talk(&user, options).await,
            Command::Peers(options) => account::peers(&user, options),
            Command::Passwd(_) => account::passwd(&user).await,
            Command::Delete(_) => account::delete(&user).await,
        }
    };
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => done.map(|()| ExitCode::SUCCESS),
            code = interrupted() => code,
        }
    });
    // A read of standard input cannot be cancelled.
    runtime.shutdown_background();
    done.or_else(exit_code)
}

/// Waits for Ctrl-C or SIGTERM; the exit code for it.
async fn interrupted() -> anyhow::Result<ExitCode> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => Ok(ExitCode::from(130)),
        _ = terminate.recv() => Ok(ExitCode::SUCCESS),
    }
}

/// A time that is greater than 0.
fn duration(text: &str) -> anyhow::Result<Duration> {
    let ns = duration_ns(text)?;
    anyhow::ensure!(ns > 0, "write a time, such as 10s");
    Ok(Duration::from_nanos(ns.unsigned_abs()))
}
