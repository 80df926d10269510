//! TCP within a tunnel between the two ends of the link: `kendall curve tunnel`, and WireGuard in user space.
//!
//! The far end creates the keys of both ends, in the shared folder. Both tunnels need a TUN device, so the capability CAP_NET_ADMIN
//! and `ip` of iproute2.

use std::env;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::peer::{run, start};
use super::roam::ip;

/// The name that kendall's server proves.
const NAME: &str = "transport.test";
const SERVER: &str = "server";
const CLIENT: &str = "client";
/// The MTU for WireGuard's IPv6 overhead (its paper, section 5.4): 80 bytes, below an Ethernet of 1,500.
const WIREGUARD_MTU: u16 = 1420;
const WIREGUARD_GO: &str = "wireguard-go";
/// The time for a tunnel's program to create its device.
const PATIENCE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(10);

/// A tunnel that carries TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tunnel {
    /// `kendall curve tunnel`: packets on a stream of CurveCP.
    Curve,
    /// WireGuard by `wireguard-go`: a packet in a datagram.
    WireGuard,
}

impl Tunnel {
    pub(crate) const ALL: [Self; 2] = [Self::Curve, Self::WireGuard];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Curve => "tunnel",
            Self::WireGuard => "wireguard",
        }
    }

    /// The network inside; the server has its first address.
    fn network(self) -> [u8; 3] {
        match self {
            Self::Curve => [10, 77, 0],
            Self::WireGuard => [10, 78, 0],
        }
    }

    fn inside(self, host: u8) -> Ipv4Addr {
        let [a, b, c] = self.network();
        Ipv4Addr::new(a, b, c, host)
    }

    /// The server's address inside.
    pub(crate) fn server(self) -> IpAddr {
        self.inside(1).into()
    }

    /// Sets the congestion control of TCP within it, once the device of this end exists. The link's own route does not apply to
    /// packets through the device.
    pub(crate) async fn use_congestion_control(self, name: &str) -> Result<(), String> {
        let network = format!("{}/24", self.inside(0));
        let until = Instant::now() + PATIENCE;
        let device = loop {
            // "7: wg42    inet 10.78.0.1/24 scope global wg42"
            let shown = ip(&format!("-oneline address show up to {network}"))?;
            if let Some(device) = shown.split_whitespace().nth(1) {
                break device.to_owned();
            }
            if Instant::now() > until {
                return Err(format!("the device of {} is not there", self.name()));
            }
            sleep(RETRY).await;
        };
        // Before the route that the address created, which has none.
        ip(&format!("route prepend {network} dev {device} congctl {name}")).map(drop)
    }

    /// Starts the server's end, which ends with its caller.
    pub(crate) async fn serve(self, at: SocketAddr, keys: &Path) -> Result<Child, String> {
        match self {
            Self::Curve => serve_curve(self, at, keys).await,
            Self::WireGuard => {
                make_wireguard_keys(keys).await?;
                publish(self, keys)?;
                start_wireguard(self, 1, keys, SERVER, &["listen-port", &at.port().to_string()]).await
            }
        }
    }

    /// Joins it from the client's end, once the server has created the keys.
    pub(crate) async fn join(self, to: SocketAddr, keys: &Path) -> Result<Child, String> {
        let until = Instant::now() + PATIENCE;
        while !keys.join(self.name()).exists() {
            if Instant::now() > until {
                return Err(format!("the server of {} has not made its keys", self.name()));
            }
            sleep(RETRY).await;
        }
        match self {
            Self::Curve => join_curve(to, keys),
            Self::WireGuard => start_wireguard(self, 2, keys, CLIENT, &["endpoint", &to.to_string()]).await,
        }
    }
}

/// Lets a tunnel's program remove its device and its control socket, and exit.
pub(crate) async fn leave(mut program: Child) {
    let process = program.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    if process.is_some_and(|process| kill_process(process, Signal::TERM).is_ok()) {
        // A program that does not exit in time is killed when it is dropped.
        let _ = timeout(PATIENCE, program.wait()).await;
    }
}

/// Marks the keys of a tunnel as complete.
fn publish(tunnel: Tunnel, keys: &Path) -> Result<(), String> {
    fs::write(keys.join(tunnel.name()), "").map_err(|error| cannot_write(keys, &error))
}

fn cannot_write(keys: &Path, error: &io::Error) -> String {
    format!("cannot write keys into {}: {error}", keys.display())
}

/// This program, for a subcommand of CurveCP.
fn curve(subcommand: &str) -> Result<Command, String> {
    let program = env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    let mut command = Command::new(program);
    command.args(["curve", subcommand]);
    Ok(command)
}

async fn serve_curve(tunnel: Tunnel, at: SocketAddr, keys: &Path) -> Result<Child, String> {
    let mut public = Vec::new();
    for end in [SERVER, CLIENT] {
        let printed = run(curve("keygen")?.arg(keys.join(format!("curve-{end}"))), "kendall").await?;
        public.push(String::from_utf8_lossy(&printed).trim().to_owned());
    }
    let authorized = keys.join("curve-authorized");
    let written = fs::write(&authorized, format!("{} client\n", public[1]))
        .and_then(|()| fs::write(keys.join("curve-server-key"), &public[0]));
    written.map_err(|error| cannot_write(keys, &error))?;
    publish(tunnel, keys)?;
    let mut command = curve("serve-tunnel")?;
    command.arg(NAME).arg(keys.join("curve-server")).arg(at.to_string());
    command.arg("--authorized-keys").arg(authorized);
    command.args(["--pool", &format!("{}/24", tunnel.inside(0))]);
    start(&mut command, "kendall")
}

fn join_curve(to: SocketAddr, keys: &Path) -> Result<Child, String> {
    let key = fs::read_to_string(keys.join("curve-server-key"));
    let key = key.map_err(|error| format!("cannot read the key of the tunnel's server: {error}"))?;
    let mut command = curve("tunnel")?;
    command.args([NAME, "--server", NAME, &key, &to.to_string()]);
    start(command.arg("--key-directory").arg(keys.join("curve-client")), "kendall")
}

/// Private and public keys of both ends.
async fn make_wireguard_keys(keys: &Path) -> Result<(), String> {
    for end in [SERVER, CLIENT] {
        let private = run(Command::new("wg").arg("genkey"), "wireguard-tools").await?;
        let path = keys.join(format!("wireguard-{end}"));
        fs::write(&path, private).map_err(|error| cannot_write(keys, &error))?;
        let file = fs::File::open(&path).map_err(|error| cannot_write(keys, &error))?;
        let public = Command::new("wg").arg("pubkey").stdin(file).output().await;
        let public = public.map_err(|error| format!("cannot run wg: {error}; install wireguard-tools"))?;
        fs::write(path.with_extension("pub"), public.stdout).map_err(|error| cannot_write(keys, &error))?;
    }
    Ok(())
}

/// One end: its device with address `host`, and the other end as its only peer.
async fn start_wireguard(
    tunnel: Tunnel,
    host: u8,
    keys: &Path,
    end: &str,
    more: &[&str],
) -> Result<Child, String> {
    // The control socket is in a folder that all namespaces share, so the name includes this process.
    let device = format!("wg{}", process::id());
    let mut command = Command::new(WIREGUARD_GO);
    let child = start(command.args(["-f", &device]), "wireguard-go")?;
    let (other, other_host) = if end == SERVER { (CLIENT, 2) } else { (SERVER, 1) };
    let public = fs::read_to_string(keys.join(format!("wireguard-{other}.pub")));
    let public = public.map_err(|error| format!("cannot read the key of WireGuard's other end: {error}"))?;
    let allowed = format!("{}/32", tunnel.inside(other_host));
    await_control(&device).await?;
    let mut set = Command::new("wg");
    set.args(["set", &device, "private-key"]).arg(keys.join(format!("wireguard-{end}")));
    // Settings of the device come before the peer, settings of the peer after it.
    let (of_device, of_peer) = if end == SERVER { (more, &[][..]) } else { (&[][..], more) };
    set.args(of_device).args(["peer", public.trim(), "allowed-ips", &allowed]).args(of_peer);
    run(&mut set, "wireguard-tools").await?;
    ip(&format!("address add {}/24 dev {device}", tunnel.inside(host)))?;
    ip(&format!("link set {device} mtu {WIREGUARD_MTU} up"))?;
    Ok(child)
}

/// Waits until `wireguard-go` takes commands. Asked earlier, `wg` can find its socket bound but not yet listening, and removes it as
/// one that an earlier program left; the device could then never be set up.
async fn await_control(device: &str) -> Result<(), String> {
    let socket = format!("/var/run/wireguard/{device}.sock");
    let until = Instant::now() + PATIENCE;
    while let Err(error) = UnixStream::connect(&socket).await {
        if Instant::now() > until {
            return Err(format!("wireguard-go takes no commands at {socket}: {error}"));
        }
        sleep(RETRY).await;
    }
    Ok(())
}
