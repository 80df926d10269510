//! `kendall curve tunnel`: a virtual private network to a server.

use std::process::ExitCode;

use clap::Args;
use ipnet::IpNet;
use kendall_tunnel::{ClientSettings, connect};

use crate::host::ClientOptions;
use crate::run::{run, signalled};
use kendall_stdio::note;

/// Join the private network of a server: kendall curve tunnel office
#[derive(Args)]
#[command(
    long_about = "Join the private network of a server (kendall curve serve-tunnel).\n\n\
        A TUN device appears with the addresses that the server assigned to this client's key. It stays until Ctrl-C or SIGTERM; a \
        connection that is lost is opened again, and the addresses stay the same. However the program ends, the device, its addresses \
        and its routes vanish with it. It needs the right CAP_NET_ADMIN, which root has.",
    after_long_help = "Examples:\n  sudo kendall curve tunnel office\n  sudo kendall curve tunnel office --route 192.168.7.0/24\n  \
        sudo kendall curve tunnel office --route 0.0.0.0/1 --route 128.0.0.0/1   # all of IPv4\n\n\
        HOST is a table of the hosts file:\n  [office]\n  name = \"server.example\"\n  \
        key = \"64 hexadecimal digits, from kendall curve show\"\n  address = \"192.0.2.7:10000\""
)]
pub(crate) struct Tunnel {
    /// The server: a table of the hosts file, or the name given with --server
    host: String,

    /// Reach this network through the tunnel, too; may be repeated. The server has to forward it
    #[arg(long = "route", value_name = "NETWORK", value_parser = network)]
    routes: Vec<IpNet>,

    /// The name of the TUN device; %d becomes the first free number
    #[arg(long, value_name = "NAME", default_value = "kendall%d")]
    device: String,

    #[command(flatten)]
    client: ClientOptions,
}

pub(crate) fn tunnel(options: Tunnel) -> anyhow::Result<ExitCode> {
    let (host, keys) = options.client.resolve(&options.host)?;
    let settings = ClientSettings {
        host,
        keys,
        device: options.device,
        routes: options.routes,
        timeout: options.client.timeout,
    };
    run(async {
        let mut code = Ok(ExitCode::SUCCESS);
        connect(settings, |line| note(&format!("kendall: {line}")), async { code = signalled().await })
            .await?;
        code
    })
}

/// A network in CIDR notation; an address alone is a network of one.
fn network(text: &str) -> Result<IpNet, String> {
    let address = || text.parse::<std::net::IpAddr>().map(IpNet::from).ok();
    let network = text.parse().ok().or_else(address).map(|network: IpNet| network.trunc());
    network.ok_or_else(|| "write a network, such as 192.168.7.0/24 or fd77::/64".to_owned())
}
