//! `kendall link relay`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use kendall_archive::write_json;
use kendall_lab::{LISTENING, LinkRun, RelayRecord, stop_when_stdin_ends};
use kendall_link::LinkSettings;
use kendall_link::relay::{Relay, Relayed};
use kendall_linkmodel::Transport;

use super::settings::LinkOptions;
use crate::print;
use crate::record::new_folder;

#[derive(Args)]
pub(crate) struct RelayOptions {
    /// The address for clients; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", value_parser = address)]
    listen: SocketAddr,

    /// The server behind the link
    #[arg(long, value_name = "ADDR", value_parser = address)]
    to: SocketAddr,

    /// Relay datagrams instead of streams
    #[arg(long)]
    udp: bool,

    #[command(flatten)]
    link: LinkOptions,

    /// Seed of all random decisions; drawn at random if left out, and printed
    #[arg(long)]
    seed: Option<u64>,

    /// Record what the relay did in this new folder: link.json
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,

    /// Stop when standard input ends, so that the relay does not outlive its parent
    #[arg(long, hide = true)]
    until_stdin_ends: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|_| "write HOST:PORT, such as 127.0.0.1:8080")?;
    addresses.next().ok_or_else(|| "the host has no address".into())
}

pub(crate) fn relay(options: &RelayOptions) -> anyhow::Result<ExitCode> {
    let transport = if options.udp { Transport::UDP } else { Transport::TCP };
    if let Some(folder) = &options.record {
        new_folder(folder)?;
    }
    let LinkOptions { up, down } = options.link.clone();
    let asked = LinkSettings { up: vec![up], down: vec![down] };
    let seed = options.seed.unwrap_or_else(kendall_lab::drawn_seed);
    let relay = Relay::bind(transport, options.listen, options.to, &asked, seed)?;
    let stop = crate::interrupt::ctrl_c()?;
    if options.until_stdin_ends {
        stop_when_stdin_ends();
    }
    print::out(&format!("{LISTENING}{}\n", relay.address()))?;
    let relayed = relay.run(&stop)?;
    let link = format!("{} ({})", transport.relay(), transport.differs);
    if let Some(folder) = &options.record {
        let [up, down] = [&asked.up, &asked.down].map(|hops| hops[0].to_string());
        write_json(
            &folder.join("link.json"),
            &RelayRecord { link: &link, seed, up, down, relayed: &relayed },
        )?;
    }
    let did = LinkRun { link, seed, asked: (&asked).into(), measured: None, outcome: relayed.link };
    print::note(&kendall_lab::link_summary(&did));
    let Relayed { clients, turned_away, sent_again, .. } = relayed;
    let mut counts = vec![format!("{clients} client{}", if clients == 1 { "" } else { "s" })];
    let rare = [(turned_away, "turned away"), (sent_again, "pieces sent again")];
    counts.extend(rare.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    print::note(&format!("  {}", counts.join(", ")));
    Ok(ExitCode::SUCCESS)
}
