//! `kendall curve serve-tunnel`: a virtual private network for `kendall curve tunnel`.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use ipnet::{Ipv4Net, Ipv6Net};
use kendall_curve::KeyDirectory;
use kendall_remote::AuthorizedKeys;
use kendall_tunnel::{MTUS, Pool, ServerSettings, serve};

use crate::host::ServerOptions;
use crate::run::{run, signalled};
use kendall_stdio::note;

/// Serve a private network for `kendall curve tunnel` to clients whose keys a file lists
#[derive(Args)]
#[command(
    long_about = "Serve a private network for `kendall curve tunnel` to clients whose public keys a file lists.\n\n\
        The server has the first address of each network of the pool, on a TUN device; each key gets the next free one, and keeps it \
        over restarts. A packet whose source is not the client's own address is dropped. Clients reach this machine, each other with \
        --client-to-client, and further networks where this machine forwards packets (sysctl net.ipv4.ip_forward). It needs the right \
        CAP_NET_ADMIN, which root has.",
    after_long_help = "The file of authorised keys has a line for each client: its public key (kendall curve show), a space, and a \
        name for the log. It is read again when it changes.\n\n\
        Example:\n  sudo kendall curve serve-tunnel server.example serverkey 192.0.2.7:10000 --authorized-keys authorized_keys \
        --pool 10.77.0.0/24 --pool6 fd77:1:2::/64"
)]
pub(crate) struct ServeTunnel {
    #[command(flatten)]
    server: ServerOptions,

    /// The IPv4 network of the tunnel
    #[arg(long, value_name = "NETWORK", default_value = "10.77.0.0/24")]
    pool: Ipv4Net,

    /// The IPv6 network of the tunnel [default: no IPv6]
    #[arg(long, value_name = "NETWORK")]
    pool6: Option<Ipv6Net>,

    /// The file of the addresses that clients have [default: tunnel-addresses in the directory of the server's key]
    #[arg(long, value_name = "FILE")]
    addresses: Option<PathBuf>,

    /// The MTU of the tunnel in bytes; packets of any size fit the connection
    #[arg(long, value_name = "BYTES", default_value_t = 1500, value_parser = clap::value_parser!(u16).range(i64::from(*MTUS.start())..=i64::from(*MTUS.end())))]
    mtu: u16,

    /// The name of the TUN device; %d becomes the first free number
    #[arg(long, value_name = "NAME", default_value = "kendall%d")]
    device: String,

    /// The most clients at once; further ones are rejected, as is the fifth of one key
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..))]
    max_clients: u16,

    /// Let clients reach each other
    #[arg(long)]
    client_to_client: bool,
}

pub(crate) fn serve_tunnel(options: ServeTunnel) -> anyhow::Result<ExitCode> {
    let addresses =
        options.addresses.unwrap_or_else(|| options.server.key_directory.join("tunnel-addresses"));
    let authorized = Arc::new(AuthorizedKeys::open(&options.server.authorized_keys)?);
    let (name, count) = (options.server.name.clone(), authorized.count());
    let settings = ServerSettings {
        name: options.server.name,
        keys: KeyDirectory::open(&options.server.key_directory)?,
        listen: options.server.listen,
        authorized,
        pool: Pool::new(options.pool, options.pool6)?,
        addresses,
        device: options.device,
        mtu: options.mtu,
        most: options.max_clients.into(),
        client_to_client: options.client_to_client,
    };
    run(async {
        let mut code = Ok(ExitCode::SUCCESS);
        let bound = |address, device: &str| {
            note(&format!("kendall: {name} listens on {address}, and {device} leads to {count} clients"));
        };
        serve(settings, bound, async { code = signalled().await }).await?;
        code
    })
}
