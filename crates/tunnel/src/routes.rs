//! Routes of this machine, by `ip` (iproute2). All that are made here lead through a TUN device and vanish with it, however the program
//! ends.

use std::io::Write;
use std::net::IpAddr;
use std::process::{Command, Output, Stdio};

use ipnet::IpNet;

use crate::addresses::Assigned;
use crate::error::TunnelError;

/// Networks that a server may assign without being named by the user: those which no host of the Internet has.
const ASSIGNABLE: [&str; 14] = [
    // Private networks (RFC 1918, RFC 4193), shared address space (RFC 6598), link-local addresses (RFC 3927, RFC 4291).
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "fc00::/7",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "fe80::/10",
    // Documentation (RFC 5737, RFC 3849, RFC 9637) and benchmarks (RFC 2544, RFC 5180).
    "192.0.2.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "2001:db8::/32",
    "3fff::/20",
    "198.18.0.0/15",
    "2001:2::/48",
];

/// Fails where the networks that a server assigned would take traffic into the tunnel that the user has not sent there: that to
/// the server itself, or that to hosts of the Internet.
pub(crate) fn check_assigned(
    assigned: Assigned,
    server: Option<IpAddr>,
    routes: &[IpNet],
) -> Result<(), TunnelError> {
    for network in assigned.networks() {
        if let Some(server) = server.filter(|server| network.contains(server)) {
            return Err(TunnelError::ServerInside { network: network.to_string(), server });
        }
        let is_within = |other: IpNet| other.contains(&network);
        let assignable = ASSIGNABLE.iter().map(|range| range.parse().expect("each range is a network"));
        if !routes.iter().copied().chain(assignable).any(is_within) {
            return Err(TunnelError::NotPrivate { network: network.to_string() });
        }
    }
    Ok(())
}

/// Sends networks through a device, but for the address of the server: packets to it keep their route outside the tunnel.
pub(crate) fn add(networks: &[IpNet], server: Option<IpAddr>, device: &str) -> Result<(), TunnelError> {
    let mut lines = String::new();
    for network in networks {
        for part in parts(*network, server)? {
            lines += &format!("route replace {part} dev {device}\n");
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    // One process for all: a network without an address in it is up to 128 networks.
    run(&["-batch", "-"], &lines).map(drop)
}

/// What has to go through the tunnel, so that a network does but for the server. It replaces no route of this machine.
fn parts(network: IpNet, server: Option<IpAddr>) -> Result<Vec<IpNet>, TunnelError> {
    let own = destinations("root", network)?;
    let parts = match server.filter(|server| network.contains(server)) {
        Some(server) if !has_longer(network, server)? => without(network, server),
        // The longer prefix counts: the server stays outside the tunnel, and the halves of a network go before the network.
        _ if own.contains(&network) => halves(network).collect(),
        _ => vec![network],
    };
    Ok(parts.into_iter().filter(|part| !own.contains(part)).collect())
}

/// Whether a route of this machine to an address has a longer prefix than a network.
fn has_longer(network: IpNet, address: IpAddr) -> Result<bool, TunnelError> {
    let ways = destinations("match", IpNet::from(address))?;
    Ok(ways.iter().any(|way| way.prefix_len() > network.prefix_len()))
}

/// The destinations of this machine's routes which contain a network ("match") or are in it ("root").
fn destinations(selector: &str, network: IpNet) -> Result<Vec<IpNet>, TunnelError> {
    let read = |word: &str| match word {
        "default" => IpNet::new(network.addr(), 0).ok().map(|all| all.trunc()),
        _ => word.parse().ok().or_else(|| word.parse::<IpAddr>().ok().map(IpNet::from)),
    };
    let routes = ip(&["route", "show", "to", selector, &network.to_string()])?;
    // A route may have its type before its destination.
    Ok(routes.lines().filter_map(|line| line.split_whitespace().find_map(read)).collect())
}

/// A network without one address in it: the other half of the network, of the half that has the address, and so on.
fn without(network: IpNet, address: IpAddr) -> Vec<IpNet> {
    let (mut parts, mut rest) = (Vec::new(), network);
    while let Some(half) = halves(rest).find(|half| half.contains(&address)) {
        parts.extend(halves(rest).filter(|other| *other != half));
        rest = half;
    }
    parts
}

/// The halves of a network; an address has none.
fn halves(network: IpNet) -> impl Iterator<Item = IpNet> {
    network.subnets(network.prefix_len() + 1).into_iter().flatten()
}

/// Fails where a route of this machine, the default ones aside, covers or is part of a network.
pub(crate) fn check_free(network: &IpNet) -> Result<(), TunnelError> {
    let network_text = network.trunc().to_string();
    for selector in ["match", "root"] {
        let routes = ip(&["route", "show", "to", selector, &network_text])?;
        if let Some(route) =
            routes.lines().find(|line| !line.trim().is_empty() && !line.starts_with("default"))
        {
            return Err(TunnelError::Overlap { network: network_text, route: route.trim().to_owned() });
        }
    }
    Ok(())
}

/// Runs `ip`, and gives what it printed.
fn ip(words: &[&str]) -> Result<String, TunnelError> {
    run(words, "")
}

/// Runs `ip` with an input.
fn run(words: &[&str], input: &str) -> Result<String, TunnelError> {
    // Where an address does not say it, `ip` lists IPv4.
    let is_v6 = words.iter().any(|word| word.contains(':'));
    let mut command = Command::new("ip");
    command.args(is_v6.then_some("-6")).args(words);
    let failed = |reason: String| TunnelError::Route { command: format!("ip {}", words.join(" ")), reason };
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = piped.spawn().and_then(|mut child| {
        // One that ends early says why in its output.
        let _ = child.stdin.take().expect("it is piped").write_all(input.as_bytes());
        child.wait_with_output()
    });
    let Output { status, stdout, stderr } =
        output.map_err(|error| failed(format!("{error}; is iproute2 installed?")))?;
    if !status.success() {
        return Err(failed(String::from_utf8_lossy(&stderr).trim().to_owned()));
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::prelude::*;

    use super::*;

    fn rest(network: &str, address: &str) -> Vec<String> {
        let parts = without(network.parse().unwrap(), address.parse().unwrap());
        parts.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_network_without_an_address_is_its_other_halves() {
        assert_eq!(rest("192.0.2.0/29", "192.0.2.1"), ["192.0.2.4/30", "192.0.2.2/31", "192.0.2.0/32"]);
        assert_eq!(rest("192.0.2.1/32", "192.0.2.1"), [""; 0]);
        assert_eq!(rest("::/0", "2001:db8::1").len(), 128);
    }

    #[test]
    fn a_server_assigns_no_network_of_the_internet_and_none_with_itself_in_it() {
        let assigned = |v4: &str, v6: &str| Assigned {
            v4: v4.parse().unwrap(),
            server_v4: Ipv4Addr::LOCALHOST,
            v6: v6.parse().ok(),
            server_v6: None,
        };
        let server = "203.0.113.7".parse().ok();
        let check = |v4, v6, routes: &[&str]| {
            let routes: Vec<IpNet> = routes.iter().map(|route| route.parse().unwrap()).collect();
            check_assigned(assigned(v4, v6), server, &routes).map_err(|error| error.to_string())
        };
        for v4 in ["10.77.0.2/24", "172.31.255.9/20", "100.127.0.2/16", "169.254.8.2/24", "198.51.100.2/24"] {
            assert_eq!(check(v4, "fd77::2/64", &[]), Ok(()), "{v4}");
        }
        for v4 in ["8.8.8.8/32", "1.2.3.4/1", "172.0.0.2/8", "192.168.0.1/15", "127.0.0.2/8"] {
            assert!(check(v4, "", &[]).unwrap_err().contains("--route"), "{v4}");
        }
        for v6 in ["2600::2/64", "fc00::1/6", "2001:db8::1/31"] {
            assert!(check("10.77.0.2/24", v6, &[]).unwrap_err().contains("--route"), "{v6}");
        }
        assert_eq!(check("8.8.8.8/24", "2600::2/64", &["8.8.0.0/16", "2600::/64"]), Ok(()));
        assert!(check("8.8.8.8/24", "", &["8.8.8.0/25"]).is_err(), "the route is smaller");
        assert!(check("0.0.0.0/0", "", &["0.0.0.0/0"]).is_err(), "the server is in it");
        let error = check("203.0.113.9/24", "", &["203.0.113.0/24"]).unwrap_err();
        assert!(error.contains("203.0.113.0/24 has the server's own address 203.0.113.7"), "{error}");
    }

    proptest! {
        #[test]
        fn parts_have_every_other_address_of_the_network_once(
            bits in any::<[u128; 3]>(), length in 0..=128_u8, is_v4 in any::<bool>()
        ) {
            let address = |bits: u128| match is_v4 {
                true => IpAddr::from(Ipv4Addr::from_bits(bits as u32)),
                false => Ipv6Addr::from_bits(bits).into(),
            };
            let most = if is_v4 { 32 } else { 128 };
            let network = IpNet::new(address(bits[0]), length.min(most)).unwrap().trunc();
            // Addresses in the network: its own front, and drawn bits behind it.
            let inside = |bits: u128| match (network.network(), network.hostmask()) {
                (IpAddr::V4(front), IpAddr::V4(mask)) => {
                    IpAddr::from(Ipv4Addr::from_bits(front.to_bits() | mask.to_bits() & bits as u32))
                }
                (IpAddr::V6(front), IpAddr::V6(mask)) => {
                    Ipv6Addr::from_bits(front.to_bits() | mask.to_bits() & bits).into()
                }
                _ => unreachable!("both are of one family"),
            };
            let (server, other) = (inside(bits[1]), inside(bits[2]));
            let parts = without(network, server);
            let holding = |address| parts.iter().filter(|part| part.contains(&address)).count();
            prop_assert_eq!(holding(server), 0);
            prop_assert_eq!(holding(other), usize::from(other != server));
        }
    }
}
