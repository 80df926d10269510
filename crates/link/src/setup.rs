//! Sets up the link: two namespaces, a device in each, and the two ports between which packets are forwarded. All of it belongs
//! to this process and vanishes with it.

use std::fs::{self, File};
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use nix::net::if_::if_nametoindex;
use nix::unistd::getegid;

use crate::back_end::BackEnd;
use crate::emulated::{CLIENT, SERVER};
use crate::error::LinkError;
use crate::namespace::{Privilege, current, leave, leave_again, within};
use crate::netem;
use crate::netlink::{End, Mac, Netlink};
use crate::port::{PacketSocket, Port};
use crate::tun::TunDevice;

/// The name of the link's device, at both ends.
const DEVICE: &str = "eth0";
/// The network at both ends: client and server reach each other without a router between.
const NETWORK: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 0, 0), 24);
/// Locally administered addresses (the second bit of the first byte).
const CLIENT_MAC: Mac = [2, 0, 0, 0, 0, 1];
const SERVER_MAC: Mac = [2, 0, 0, 0, 0, 2];

/// A link that is set up.
pub(crate) struct LinkSetup {
    pub(crate) privilege: Privilege,
    pub(crate) client: File,
    pub(crate) server: File,
    pub(crate) between: Between,
    /// The settings that could not be applied.
    pub(crate) notes: Vec<String>,
}

/// The component that forwards packets from one end to the other.
pub(crate) enum Between {
    /// This process forwards, from the client's port to the server's and back.
    Ports(Arc<dyn Port>, Arc<dyn Port>),
    /// The kernel forwards, by netem on the device towards each side.
    Netem,
}

/// The devices towards client and server.
pub(crate) const TOWARDS: [&str; 2] = ["client", "server"];

/// One end of the link: its own side and the other side.
struct Side {
    name: &'static str,
    address: Ipv4Addr,
    mac: Mac,
    other: (Ipv4Addr, Mac),
}

/// Sets up a link. This process must have a single thread, and is in a new namespace afterwards.
pub(crate) fn set_up(back_end: BackEnd, congestion: Option<&str>) -> Result<LinkSetup, LinkError> {
    let own = || current().map_err(LinkError::step("find the namespace that was just made"));
    let privilege = leave().map_err(LinkError::step("make a network namespace"))?;
    let client = own()?;
    let again = || leave_again().map_err(LinkError::step("make a second network namespace"));
    again()?;
    let server = own()?;
    again()?;
    let sides = [
        Side { name: TOWARDS[0], address: CLIENT, mac: CLIENT_MAC, other: (SERVER, SERVER_MAC) },
        Side { name: TOWARDS[1], address: SERVER, mac: SERVER_MAC, other: (CLIENT, CLIENT_MAC) },
    ];
    let mut notes = Vec::new();
    let mut ports: Vec<Arc<dyn Port>> = Vec::new();
    for (side, namespace) in sides.iter().zip([&client, &server]) {
        match back_end {
            BackEnd::Veth => {
                pair(side, namespace)?;
                let port = PacketSocket::on(side.name)
                    .map_err(LinkError::step("open a packet socket on a device (AF_PACKET)"))?;
                ports.push(Arc::new(port));
            }
            BackEnd::Netem => pair(side, namespace)?,
            BackEnd::Tun => {
                let device = inside(namespace, || TunDevice::new(DEVICE))?
                    .map_err(LinkError::step("make a TUN device (/dev/net/tun)"))?;
                ports.push(Arc::new(device));
            }
        }
        let medium = if back_end == BackEnd::Tun { Medium::Tun } else { Medium::Ethernet };
        inside(namespace, || configure(side, medium, congestion, &mut notes))??;
    }
    let between = match <[_; 2]>::try_from(ports) {
        Ok([client, server]) => Between::Ports(client, server),
        Err(_) => {
            netem::connect(TOWARDS[0], TOWARDS[1])?;
            Between::Netem
        }
    };
    Ok(LinkSetup { privilege, client, server, between, notes })
}

/// Makes a side's device and the opposite one, and brings the latter up: a packet socket on a device that is down reports an
/// error.
fn pair(side: &Side, namespace: &File) -> Result<(), LinkError> {
    let here = End { name: side.name, mac: [2, 0, 0, 0, 1, side.mac[5]] };
    let there = End { name: DEVICE, mac: side.mac };
    Netlink::route()
        .and_then(|mut kernel| kernel.add_pair(&here, &there, namespace.as_raw_fd()))
        .map_err(LinkError::step("make a pair of devices (veth)"))?;
    quiet(side.name);
    up(side.name)
}

fn inside<T>(namespace: &File, what: impl FnOnce() -> T) -> Result<T, LinkError> {
    within(namespace, what).map_err(LinkError::step("enter a network namespace"))
}

/// The kind of a device.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Medium {
    Ethernet,
    Tun,
}

/// Configures the calling thread's namespace for one side: its address, its route to the other side, and its loopback.
fn configure(
    side: &Side,
    medium: Medium,
    congestion: Option<&str>,
    notes: &mut Vec<String>,
) -> Result<(), LinkError> {
    // Lets every user here run `ping` and servers on ports below 1024, as on a separate machine.
    let group = getegid();
    for (name, value) in [
        ("net/ipv4/ping_group_range", format!("{group} {group}")),
        ("net/ipv4/ip_unprivileged_port_start", "0".to_owned()),
    ] {
        if let Err(error) = fs::write(format!("/proc/sys/{name}"), value) {
            notes.push(format!("{} cannot be set at the {}: {error}", name.replace('/', "."), side.name));
        }
    }
    quiet(DEVICE);
    let step = |what: &str| LinkError::step(format!("{what} at the {}", side.name));
    let index = if_nametoindex(DEVICE).map_err(|errno| step("find the device")(errno.into()))?;
    let mut kernel = Netlink::route().map_err(step("talk to the kernel about devices"))?;
    kernel.add_address(index, side.address, NETWORK.1).map_err(step("give the device its address"))?;
    if medium == Medium::Ethernet {
        // Makes packets as on a wire: none longer than the MTU, each with its checksum. Without the second setting the kernel
        // does not apply the first.
        Netlink::generic()
            .and_then(|mut kernel| kernel.turn_off(index, "tx-checksum-ip-generic"))
            .map_err(step("turn off that the device is left to compute checksums (ethtool)"))?;
        let (other, mac) = side.other;
        kernel.add_neighbour(index, other, mac).map_err(step("say who is at the other end"))?;
    }
    kernel.up(index).map_err(step("let the device pass packets"))?;
    if let Some(name) = congestion {
        kernel.use_congestion_control(index, NETWORK, name).map_err(step(&format!(
            "use the congestion control {name:?} (this kernel has {})",
            fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
                .unwrap_or_default()
                .trim()
        )))?;
    }
    up("lo")
}

/// Stops the kernel from sending packets that no program asked for: without IPv6 it sends none.
fn quiet(device: &str) {
    // Where there is no IPv6, there is nothing to turn off.
    let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
}

fn up(device: &str) -> Result<(), LinkError> {
    if_nametoindex(device)
        .map_err(Into::into)
        .and_then(|index| Netlink::route()?.up(index))
        .map_err(LinkError::step(format!("let the device {device} pass packets")))
}
