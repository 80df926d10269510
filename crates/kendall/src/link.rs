//! `kendall link`: programs over an emulated link.

mod relay;
mod run;
mod settings;

use std::io::{stdin, stdout};
use std::process::ExitCode;

use anyhow::Context;
use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Link {
    /// Run a command at one end of an emulated link, and a server at the other:
    /// kendall link run --delay 20ms --rate 10mbit --server 'iperf3 -s -1' -- iperf3 -c 10.0.0.2
    Run(Box<run::LinkRunOptions>),
    /// Relay TCP or UDP through an emulated link, where no namespaces can be made:
    /// kendall link relay --listen 127.0.0.1:8080 --to 127.0.0.1:80 --delay 20ms --rate 10mbit
    Relay(Box<relay::RelayOptions>),
    /// Emulate the link described on standard input (`link run` and `run` start this)
    #[command(hide = true)]
    Emulate,
}

pub(crate) fn link(link: &Link) -> anyhow::Result<ExitCode> {
    match link {
        Link::Run(options) => run::run(options),
        Link::Relay(options) => relay::relay(options),
        Link::Emulate => {
            kendall_link::emulate(stdin().lock(), stdout().lock())
                .context("cannot go on emulating a link")?;
            Ok(ExitCode::SUCCESS)
        }
    }
}
