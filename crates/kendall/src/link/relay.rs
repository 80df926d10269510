//! `kendall link relay`.

use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;

use super::settings::LinkOptions;

#[derive(Args)]
pub(crate) struct Options {
    /// Where clients connect; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// The server behind the link
    #[arg(long, value_name = "ADDR")]
    to: SocketAddr,

    /// Relay datagrams instead of TCP
    #[arg(long)]
    udp: bool,

    /// Seed of all that chance decides; drawn by chance if left out, and printed
    #[arg(long)]
    seed: Option<u64>,

    #[command(flatten)]
    link: LinkOptions,
}

pub(crate) fn relay(options: &Options) -> anyhow::Result<ExitCode> {
    let _ = options;
    anyhow::bail!("relay is being built")
}
