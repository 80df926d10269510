//! `kendall serve`: a subcommand for each row of the table of systems.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};
use kendall_system::{Serving, Settings, System};

use crate::options::{loopback, options, settings};
use crate::systems::SYSTEMS;

// The options of every server. A doc comment here would become the first line of each server's help.
#[derive(Args)]
struct Common {
    /// Listen on this address; port 0 takes a free one [default: 127.0.0.1 and the system's own port]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    listen: Option<SocketAddr>,

    /// Serve GET /metrics in Prometheus' text format on this address
    #[arg(long, value_name = "ADDR", value_parser = address)]
    metrics: Option<SocketAddr>,

    /// Write the server's timestamps of each request to this file, and its counters, if any, to FILE.counts
    #[arg(long, value_name = "FILE")]
    stamps: Option<PathBuf>,

    /// Stop when standard input ends, so that the server does not outlive its parent
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|_| "write HOST:PORT, such as 127.0.0.1:5003")?;
    addresses.next().ok_or_else(|| "the host has no address".into())
}

/// A system and how it is to be served.
pub(crate) struct Served {
    system: &'static System,
    settings: Settings,
    common: Common,
}

impl Subcommand for Served {
    fn augment_subcommands(command: Command) -> Command {
        let subcommand = |system: &'static System| {
            let own = Command::new(system.name).about(format!("Serve {}: {}", system.name, system.about));
            Common::augment_args(own.args(options(system.server)))
        };
        command.subcommands(SYSTEMS.iter().map(subcommand)).subcommand_required(true)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        SYSTEMS.iter().any(|system| system.name == name)
    }
}

impl FromArgMatches for Served {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (name, own) =
            matches.subcommand().ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))?;
        let system = SYSTEMS.iter().find(|system| system.name == name).expect("clap knows only these");
        Ok(Self { system, settings: settings(system.server, own), common: Common::from_arg_matches(own)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

pub(crate) fn serve(served: Served) -> anyhow::Result<ExitCode> {
    let Served { system, settings, common } = served;
    if common.until_stdin_ends {
        kendall_lab::stop_when_stdin_ends();
    }
    let serving = Serving {
        listen: common.listen.unwrap_or_else(|| loopback(system.default_port)),
        metrics: common.metrics,
        stamps: common.stamps,
        for_trial: common.until_stdin_ends,
        ready,
    };
    (system.serve)(&settings, serving).map_err(anyhow::Error::msg)?;
    Ok(ExitCode::SUCCESS)
}

/// Says where the server listens; the laboratory waits for this line.
fn ready(address: SocketAddr) {
    let mut out = io::stdout().lock();
    // A closed standard output needs no report.
    let _ = writeln!(out, "{}{address}", kendall_lab::LISTENING).and_then(|()| out.flush());
}
