//! `kendall link`: programs over an emulated link.

mod relay;
mod settings;

use std::process::ExitCode;

use clap::Subcommand;

#[derive(Subcommand)]
pub(crate) enum Link {
    /// Relay TCP or UDP through an emulated link, where no namespaces can be made:
    /// kendall link relay --listen 127.0.0.1:8080 --to 127.0.0.1:80 --delay 20ms --rate 10mbit
    Relay(relay::Options),
}

pub(crate) fn link(link: &Link) -> anyhow::Result<ExitCode> {
    match link {
        Link::Relay(options) => relay::relay(options),
    }
}
