//! The client's address changes while flows run, as when a laptop goes from one network to another.
//!
//! Both ends are namespaces that exist for this run only; `ip` of iproute2 changes the one and prepares the other.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// The device of a link's end, and the address that the client moves to.
const DEVICE: &str = "eth0";
const NEW: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
/// The network of the link.
const NETWORK: &str = "10.0.0.0/24";

/// Runs `ip` and gives what it prints.
pub(super) fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("cannot run ip: {error}; install iproute2"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("ip {arguments} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// At the server's end: lets packets find the client at its new address, too, as nothing on a link asks for addresses.
pub(crate) fn expect(client: IpAddr) -> Result<(), String> {
    let known = ip(&format!("neigh show {client} dev {DEVICE}"))?;
    let mut words = known.split_whitespace().skip_while(|word| *word != "lladdr");
    match words.nth(1) {
        Some(mac) => ip(&format!("neigh replace {NEW} lladdr {mac} dev {DEVICE} nud permanent")).map(drop),
        // A TUN device has no such addresses.
        None => Ok(()),
    }
}

/// At the client's end: the old address goes, the new one comes.
pub(crate) fn change(client: IpAddr) -> Result<(), String> {
    // The new one first: with its last address, a device loses all that it knows of its neighbours.
    ip(&format!("addr add {NEW}/32 dev {DEVICE}"))?;
    ip(&format!("addr del {client}/24 dev {DEVICE}"))?;
    ip(&format!("route replace {NETWORK} dev {DEVICE} src {NEW}")).map(drop)
}
