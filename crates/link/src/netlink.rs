//! Requests to the kernel about devices, addresses, neighbours and routes (rtnetlink(7)) and about the hardware features of a
//! device (ethtool-netlink). They replace the `ip` and `ethtool` programs, and a failure is an error number instead of a text. A
//! message is built as bytes; only [`Netlink::ask`] calls the kernel.

use std::ffi::c_int;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, sendto, socket,
};

/// A device's address on an Ethernet.
pub(crate) type Mac = [u8; 6];

/// `VETH_INFO_PEER` of `linux/veth.h`: the other end of a pair.
const VETH_INFO_PEER: u16 = 1;
/// `RTAX_CC_ALGO` of `linux/rtnetlink.h`: the congestion control of connections that use a route.
const RTAX_CC_ALGO: u16 = 16;
/// Numbers of `linux/ethtool_netlink.h`.
mod ethtool {
    pub(super) const FEATURES_SET: u8 = 12;
    pub(super) const VERSION: u8 = 1;
    pub(super) const FEATURES_HEADER: u16 = 1;
    pub(super) const FEATURES_WANTED: u16 = 3;
    pub(super) const HEADER_DEV_INDEX: u16 = 1;
    pub(super) const BITSET_BITS: u16 = 3;
    pub(super) const BITSET_BITS_BIT: u16 = 1;
    pub(super) const BITSET_BIT_NAME: u16 = 2;
}

/// A message to the kernel: a header, a fixed part, attributes.
struct Message(Vec<u8>);

impl Message {
    fn new(kind: u16, flags: c_int, fixed: &[u8]) -> Self {
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | flags) as u16;
        let mut bytes = vec![0; 16];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend(fixed);
        Self(bytes)
    }

    /// Adds an attribute, padded to four bytes.
    fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(value.len() + 4).expect("attributes are short");
        self.0.extend(length.to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    fn text(self, kind: u16, text: &str) -> Self {
        self.attribute(kind, &[text.as_bytes(), &[0]].concat())
    }

    /// Adds an attribute that is made of attributes, after a fixed part.
    fn nested(mut self, kind: u16, fixed: &[u8], fill: impl FnOnce(Self) -> Self) -> Self {
        let at = self.0.len();
        self.0.extend([0; 4]);
        self.0.extend(fixed);
        let mut filled = fill(self);
        let length = u16::try_from(filled.0.len() - at).expect("attributes are short");
        filled.0[at..at + 2].copy_from_slice(&length.to_ne_bytes());
        filled.0[at + 2..at + 4].copy_from_slice(&(kind | libc::NLA_F_NESTED as u16).to_ne_bytes());
        filled
    }

    fn finish(mut self, sequence: u32) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("messages are short");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0[8..12].copy_from_slice(&sequence.to_ne_bytes());
        self.0
    }
}

/// `struct ifinfomsg`: the index of a device, and flags to set.
fn device(index: u32, flags: u32) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[4..8].copy_from_slice(&index.to_ne_bytes());
    bytes[8..12].copy_from_slice(&flags.to_ne_bytes());
    // The mask of the flags to change.
    bytes[12..16].copy_from_slice(&flags.to_ne_bytes());
    bytes
}

/// One end of a pair of devices.
pub(crate) struct End<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: Mac,
}

/// A socket to the kernel for the network namespace in which it was opened.
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

impl Netlink {
    /// For devices, addresses, neighbours and routes of the calling thread's namespace.
    pub(crate) fn route() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkRoute)
    }

    /// For hardware features of devices.
    pub(crate) fn generic() -> io::Result<Self> {
        Self::open(SockProtocol::NetlinkGeneric)
    }

    fn open(protocol: SockProtocol) -> io::Result<Self> {
        let socket = socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Makes a pair of devices: one here, the other in another namespace.
    pub(crate) fn add_pair(&mut self, here: &End<'_>, there: &End<'_>, namespace: RawFd) -> io::Result<()> {
        let message = Message::new(libc::RTM_NEWLINK, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &device(0, 0))
            .text(libc::IFLA_IFNAME, here.name)
            .attribute(libc::IFLA_ADDRESS, &here.mac)
            .nested(libc::IFLA_LINKINFO, &[], |info| {
                info.text(libc::IFLA_INFO_KIND, "veth").nested(libc::IFLA_INFO_DATA, &[], |data| {
                    data.nested(VETH_INFO_PEER, &device(0, 0), |peer| {
                        peer.text(libc::IFLA_IFNAME, there.name)
                            .attribute(libc::IFLA_ADDRESS, &there.mac)
                            .attribute(libc::IFLA_NET_NS_FD, &namespace.to_ne_bytes())
                    })
                })
            });
        self.ask(message).map(drop)
    }

    /// Brings a device up.
    pub(crate) fn up(&mut self, index: u32) -> io::Result<()> {
        self.ask(Message::new(libc::RTM_NEWLINK, 0, &device(index, libc::IFF_UP as u32))).map(drop)
    }

    /// Gives a device an address within a network of 2^(32 − `prefix`) addresses.
    pub(crate) fn add_address(&mut self, index: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
        // struct ifaddrmsg
        let mut fixed = vec![libc::AF_INET as u8, prefix, 0, 0];
        fixed.extend(index.to_ne_bytes());
        let message = Message::new(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &fixed)
            .attribute(libc::IFA_LOCAL, &address.octets())
            .attribute(libc::IFA_ADDRESS, &address.octets());
        self.ask(message).map(drop)
    }

    /// Adds a permanent entry for an address of a device's network, so that no ARP request crosses the link.
    pub(crate) fn add_neighbour(&mut self, index: u32, address: Ipv4Addr, mac: Mac) -> io::Result<()> {
        // struct ndmsg
        let mut fixed = vec![libc::AF_INET as u8, 0, 0, 0];
        fixed.extend(index.to_ne_bytes());
        fixed.extend(libc::NUD_PERMANENT.to_ne_bytes());
        fixed.extend([0, 0]);
        let message = Message::new(libc::RTM_NEWNEIGH, libc::NLM_F_CREATE | libc::NLM_F_REPLACE, &fixed)
            .attribute(libc::NDA_DST, &address.octets())
            .attribute(libc::NDA_LLADDR, &mac);
        self.ask(message).map(drop)
    }

    /// Sets the congestion control of connections into a device's own network. A namespace may choose only among those that the
    /// machine allows to all users; a route may have any that the kernel has.
    pub(crate) fn use_congestion_control(
        &mut self,
        index: u32,
        (to, prefix): (Ipv4Addr, u8),
        name: &str,
    ) -> io::Result<()> {
        // struct rtmsg
        let mut fixed = vec![libc::AF_INET as u8, prefix, 0, 0];
        fixed.extend([libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RT_SCOPE_LINK, libc::RTN_UNICAST]);
        fixed.extend([0; 4]);
        // Before the route that came with the address, which has no congestion control.
        let message = Message::new(libc::RTM_NEWROUTE, libc::NLM_F_CREATE, &fixed)
            .attribute(libc::RTA_DST, &to.octets())
            .attribute(libc::RTA_OIF, &index.to_ne_bytes())
            .nested(libc::RTA_METRICS, &[], |metrics| metrics.text(RTAX_CC_ALGO, name));
        self.ask(message).map(drop)
    }

    /// Turns off a feature of a device, by the name that `ethtool -k` lists.
    pub(crate) fn turn_off(&mut self, index: u32, feature: &str) -> io::Result<()> {
        let family = self.ethtool_family()?;
        let generic = [ethtool::FEATURES_SET, ethtool::VERSION, 0, 0];
        let message = Message::new(family, 0, &generic)
            .nested(ethtool::FEATURES_HEADER, &[], |header| {
                header.attribute(ethtool::HEADER_DEV_INDEX, &index.to_ne_bytes())
            })
            .nested(ethtool::FEATURES_WANTED, &[], |wanted| {
                wanted.nested(ethtool::BITSET_BITS, &[], |bits| {
                    // A bit without a value is one to clear.
                    bits.nested(ethtool::BITSET_BITS_BIT, &[], |bit| {
                        bit.text(ethtool::BITSET_BIT_NAME, feature)
                    })
                })
            });
        self.ask(message).map(drop)
    }

    /// The kernel's number for messages about hardware (genetlink).
    fn ethtool_family(&mut self) -> io::Result<u16> {
        let fixed = [libc::CTRL_CMD_GETFAMILY as u8, 1, 0, 0];
        let message = Message::new(libc::GENL_ID_CTRL as u16, 0, &fixed)
            .text(libc::CTRL_ATTR_FAMILY_NAME as u16, "ethtool");
        let answer = self.ask(message)?;
        let id = attribute(answer.get(4..).unwrap_or_default(), libc::CTRL_ATTR_FAMILY_ID as u16);
        let id = id.and_then(|value| value.try_into().ok()).map(u16::from_ne_bytes);
        id.ok_or_else(|| io::Error::from(Errno::EOPNOTSUPP))
    }

    /// Sends a message, and returns the replies before the acknowledgement, without headers.
    fn ask(&mut self, message: Message) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        let bytes = message.finish(self.sequence);
        sendto(self.socket.as_raw_fd(), &bytes, &NetlinkAddr::new(0, 0), MsgFlags::empty())?;
        let mut answer = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        loop {
            let length = recv(self.socket.as_raw_fd(), &mut buffer, MsgFlags::empty())?;
            let mut left = &buffer[..length];
            while let Some((kind, body, rest)) = next_message(left) {
                if kind != libc::NLMSG_ERROR as u16 {
                    answer.extend(body);
                } else {
                    let code = body.first_chunk().map_or(-libc::EBADMSG, |code| i32::from_ne_bytes(*code));
                    return if code == 0 { Ok(answer) } else { Err(io::Error::from_raw_os_error(-code)) };
                }
                left = rest;
            }
        }
    }
}

/// The kind and body of the first of the kernel's messages in a buffer, and the rest.
fn next_message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    let body = bytes.get(16..length)?;
    Some((kind, body, bytes.get(length.next_multiple_of(4)..).unwrap_or_default()))
}

/// The value of the first attribute of a kind.
fn attribute(mut bytes: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        let value = bytes.get(4..length)?;
        if kind == wanted {
            return Some(value);
        }
        bytes = bytes.get(length.next_multiple_of(4)..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_lengths_count_what_is_within() {
        let message = Message::new(7, 0, &[1, 2, 3, 4])
            .text(3, "lo")
            .nested(18, &[], |inner| inner.attribute(1, &[9; 5]).attribute(2, &[8]));
        let bytes = message.finish(5);
        assert_eq!(bytes.len() % 4, 0);
        let (kind, body, rest) = next_message(&bytes).unwrap();
        assert_eq!((kind, rest), (7, &[][..]));
        assert_eq!(attribute(&body[4..], 3), Some(&b"lo\0"[..]));
        let nested = attribute(&body[4..], 18 | libc::NLA_F_NESTED as u16).unwrap();
        assert_eq!(attribute(nested, 1), Some(&[9; 5][..]));
        assert_eq!(attribute(nested, 2), Some(&[8][..]));
        assert_eq!(attribute(nested, 3), None);
    }

    #[test]
    fn damaged_answers_end_the_reading() {
        for bytes in [&[][..], &[1], &[255; 3], &[200, 0, 0, 0, 1, 0], &[0; 16]] {
            assert!(next_message(bytes).is_none(), "{bytes:?}");
            assert!(attribute(bytes, 9).is_none(), "{bytes:?}");
        }
    }

    #[test]
    fn the_kernel_names_its_refusal() {
        let error = Netlink::route().unwrap().up(u32::MAX >> 1).unwrap_err();
        assert!(matches!(error.raw_os_error(), Some(libc::ENODEV | libc::EPERM)), "{error}");
    }
}
