//! The subcommands of `kendall chat` for a command line and for scripts, and what every client of the chat needs.
//!
//! A profile is a folder with the user's name, the server, the user's key and the keys of peers. Each command logs in, does one
//! thing and ends; `send`, `receive` and `talk` hold conversations with peers meanwhile.

mod account;
mod conversation;
mod failure;
mod files;
mod interrupt;
mod known;
mod output;
mod password;
mod profile;
mod receive;
mod send;
mod session;
mod setup;
mod talk;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use kendall_stats::quantity::time_s;
use kendall_talk::PeerTransport;

use crate::account::{Delete, Login, Passwd, Peers, Register, Who};
use crate::interrupt::{Interrupts, interrupted};
use crate::receive::Receive;
use crate::send::Send;
use crate::talk::Talk;

pub use crate::conversation::{new_talk, now_ms, part, path_name};
pub use crate::failure::{Failure, exit_code, worded};
pub use crate::files::replace;
pub use crate::known::{Acquaintance, KnownPeers, safety_number};
pub use crate::output::{json, line, note, shown, size};
pub use crate::profile::{Account, Profile};
pub use crate::session::{FAREWELL, STAY_ALIVE, User, connect, local};
pub use crate::setup::set_up;

/// The user that runs a subcommand.
#[derive(Args)]
pub struct UserOptions {
    /// The profile, one for each user of the chat on this machine
    #[arg(long, value_name = "NAME", default_value = "default", global = true)]
    profile: String,

    /// Read the password from the first line of this file [default: ask at the terminal]
    #[arg(long, value_name = "FILE", global = true)]
    password_file: Option<std::path::PathBuf>,

    /// Transport of the talks that you start: curvecp or quic. The peer follows
    #[arg(long, value_name = "TRANSPORT", default_value_t, global = true)]
    peer_transport: PeerTransport,
}

impl UserOptions {
    /// The user.
    ///
    /// # Errors
    /// Fails where the profile's name is not a plain word, and where its folder cannot be known.
    pub fn user(self) -> anyhow::Result<User> {
        let Self { profile, password_file, peer_transport: transport } = self;
        Ok(User { profile: Profile::named(&profile)?, password_file, transport })
    }
}

/// The subcommands for scripts.
#[derive(Subcommand)]
#[expect(
    missing_docs,
    reason = "a documentation comment here would replace the help, which is in the subcommand's own file"
)]
#[expect(private_interfaces, reason = "no other crate has to do with a subcommand's options")]
pub enum Command {
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
/// Returns errors for the user.
pub fn run(user: &User, command: Command) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(async {
        match command {
            Command::Register(options) => interruptible(account::register(user, options)).await,
            Command::Login(options) => interruptible(account::login(user, options)).await,
            Command::Who(options) => interruptible(account::who(user, options)).await,
            Command::Send(options) => interruptible(send::send(user, options)).await,
            Command::Receive(options) => receive::receive(user, options).await,
            Command::Talk(options) => interruptible(talk::talk(user, options)).await,
            Command::Peers(options) => account::peers(user, options).map(|()| ExitCode::SUCCESS),
            Command::Passwd(_) => interruptible(account::passwd(user)).await,
            Command::Delete(_) => interruptible(account::delete(user)).await,
        }
    });
    // A read of standard input cannot be cancelled.
    runtime.shutdown_background();
    done.or_else(exit_code)
}

/// Does the work of a command that a signal may end anywhere; its exit status.
async fn interruptible(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    let done = Interrupts::default().during(work).await?;
    Ok(done.map_or_else(interrupted, |()| ExitCode::SUCCESS))
}

/// A time that is greater than 0.
fn duration(text: &str) -> anyhow::Result<Duration> {
    let time = time_s(text).and_then(|time_s| Duration::try_from_secs_f64(time_s).ok());
    anyhow::Context::context(time.filter(|time| !time.is_zero()), "write a time, such as 10s or 500ms")
}
