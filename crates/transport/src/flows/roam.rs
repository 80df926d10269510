//! A change of the client's address while flows run, as when a laptop moves from one network to another.
//!
//! Both ends are namespaces of this run only; `ip` of iproute2 changes one and prepares the other.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;

/// The device of a link's end, and the address that the client moves to.
const DEVICE: &str = "eth0";
const NEW: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
/// The network of the link.
const NETWORK: &str = "10.0.0.0/24";

/// Runs `ip` and returns its output.
pub(super) fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.map_err(|error| format!("cannot run ip: {error}; install iproute2"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("ip {arguments} failed: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

/// At the server's end: lets packets find the client at its new address, too, because a link has no address
/// resolution.
pub(crate) fn expect(client: IpAddr) -> Result<(), String> {
    let known = ip(&format!("neigh show {client} dev {DEVICE}"))?;
    let mut words = known.split_whitespace().skip_while(|word| *word != "lladdr");
    match words.nth(1) {
        Some(mac) => ip(&format!("neigh replace {NEW} lladdr {mac} dev {DEVICE} nud permanent")).map(drop),
        // A TUN device has no such addresses.
        None => Ok(()),
    }
}

/// At the client's end: replaces the old address by the new one.
pub(crate) fn change(client: IpAddr) -> Result<(), String> {
    // The new one first: without an address, a device loses its neighbour table.
    ip(&format!("addr add {NEW}/32 dev {DEVICE}"))?;
    ip(&format!("addr del {client}/24 dev {DEVICE}"))?;
    ip(&format!("route replace {NETWORK} dev {DEVICE} src {NEW}")).map(drop)
}
