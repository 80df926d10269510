//! The bytes of a packet: its flow, its congestion mark, and the two changes that a link makes to it. Pure functions on untrusted
//! bytes, so no length is trusted.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{Ipv4Addr, SocketAddrV4};

use kendall_linkmodel::Ecn;

/// The size of an Ethernet header.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// The largest IP packet on a link, as on Ethernet.
pub const MTU_BYTES: usize = 1500;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// One packet, with the header of its link layer if it has one.
#[derive(Clone)]
pub(crate) struct Frame {
    bytes: Box<[u8; ETHERNET_BYTES + MTU_BYTES]>,
    length: usize,
    /// The offset of the IP packet.
    ip_at: usize,
}

impl Frame {
    /// An empty frame, whose IP packet will begin after this many bytes.
    pub(crate) fn empty(ip_at: usize) -> Self {
        Self { bytes: Box::new([0; ETHERNET_BYTES + MTU_BYTES]), length: 0, ip_at }
    }

    /// The buffer for an incoming packet.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes[..]
    }

    /// Sets the length of the packet in the buffer.
    pub(crate) fn filled(&mut self, length: usize) {
        self.length = length.min(self.bytes.len());
    }

    /// The whole frame.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// The frame's size on an Ethernet, whatever it crosses here: the header counts, as on a real link.
    pub(crate) fn link_bytes(&self) -> u32 {
        (self.length + ETHERNET_BYTES).saturating_sub(self.ip_at) as u32
    }

    fn ip(&self) -> &[u8] {
        self.bytes[..self.length].get(self.ip_at..).unwrap_or_default()
    }

    /// The IPv4 packet, if there is one.
    fn ipv4(&self) -> Option<&[u8]> {
        Some(self.ip()).filter(|ip| ip.len() >= 20 && ip[0] >> 4 == 4)
    }

    /// The frame's flow.
    pub(crate) fn flow(&self) -> Flow {
        let Some(ip) = self.ipv4() else { return Flow::Other };
        let protocol = ip[9];
        // Later fragments carry no ports, so no fragment is assigned any.
        let whole = u16::from_be_bytes([ip[6], ip[7]]) & 0x3fff == 0;
        let ports = match protocol {
            TCP | UDP if whole => ip.get(usize::from(ip[0] & 15) * 4..).and_then(<[u8]>::first_chunk::<4>),
            _ => None,
        };
        let [a, b, c, d] = *ports.unwrap_or(&[0; 4]);
        let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
        Flow::Ip {
            protocol,
            from: SocketAddrV4::new(address(12), u16::from_be_bytes([a, b])),
            to: SocketAddrV4::new(address(16), u16::from_be_bytes([c, d])),
        }
    }

    /// The congestion bits of its header.
    pub(crate) fn ecn(&self) -> Ecn {
        match self.ipv4().map_or(0, |ip| ip[1] & 3) {
            0 => Ecn::NotCapable,
            3 => Ecn::Marked,
            _ => Ecn::Capable,
        }
    }

    /// Sets the mark for congestion experienced (RFC 3168, section 5), and updates the header's checksum (RFC 1624, equation 3).
    pub(crate) fn mark(&mut self) {
        if self.ipv4().is_none() {
            return;
        }
        let ip = &mut self.bytes[self.ip_at..];
        let word = |ip: &[u8], at: usize| u16::from_be_bytes([ip[at], ip[at + 1]]);
        let before = word(ip, 0);
        ip[1] |= 3;
        let sum = u32::from(!word(ip, 10)) + u32::from(!before) + u32::from(word(ip, 0));
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = (folded & 0xffff) + (folded >> 16);
        ip[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    }

    /// Damages one bit of the IP packet. Checksums stay unchanged, so that the receiver can detect it.
    pub(crate) fn flip(&mut self, bit: u64) {
        let bits = self.ip().len() as u64 * 8;
        if let Some(bit) = bit.checked_rem(bits) {
            self.bytes[self.ip_at + (bit / 8) as usize] ^= 1 << (bit % 8);
        }
    }
}

/// The flow of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Flow {
    Ip { protocol: u8, from: SocketAddrV4, to: SocketAddrV4 },
    Other,
}

impl Flow {
    /// A number for the flow; 0 for all flows beyond those with a number.
    pub(crate) fn number(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish().max(1)
    }
}

/// For example "tcp 10.0.0.1:40000 > 10.0.0.2:80".
impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip { protocol: TCP, from, to } => write!(f, "tcp {from} > {to}"),
            Self::Ip { protocol: UDP, from, to } => write!(f, "udp {from} > {to}"),
            Self::Ip { protocol: 1, from, to } => write!(f, "icmp {} > {}", from.ip(), to.ip()),
            Self::Ip { protocol, from, to } => {
                write!(f, "ip protocol {protocol} {} > {}", from.ip(), to.ip())
            }
            Self::Other => f.write_str("not ip"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The Internet checksum (RFC 1071) of a header; 0 for an intact one.
    fn checksum(header: &[u8]) -> u16 {
        let sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        let folded = (sum & 0xffff) + (sum >> 16);
        !((folded & 0xffff) + (folded >> 16)) as u16
    }

    fn frame(ip_at: usize, tos: u8, seed: u16) -> Frame {
        let mut ip = vec![0x45, tos, 0, 48];
        ip.extend(seed.to_be_bytes());
        ip.extend([0x40, 0, 64, TCP, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum.to_be_bytes());
        ip.extend([0x9c, 0x40, 0, 80]);
        ip.extend([0; 24]);
        let mut frame = Frame::empty(ip_at);
        frame.room()[ip_at..ip_at + ip.len()].copy_from_slice(&ip);
        frame.filled(ip_at + ip.len());
        frame
    }

    #[test]
    fn a_marked_packet_still_has_a_right_checksum() {
        for ip_at in [0, ETHERNET_BYTES] {
            for seed in 0..=u16::MAX {
                let mut frame = frame(ip_at, 2, seed);
                assert_eq!(frame.ecn(), Ecn::Capable);
                frame.mark();
                assert_eq!(frame.ecn(), Ecn::Marked);
                assert_eq!(checksum(&frame.ip()[..20]), 0, "identification {seed}");
            }
        }
    }

    #[test]
    fn damage_is_one_bit_of_the_ip_packet_wherever_it_is_asked_for() {
        for bit in (0..2000).chain([u64::MAX]) {
            let (whole, mut damaged) = (frame(ETHERNET_BYTES, 0, 7), frame(ETHERNET_BYTES, 0, 7));
            damaged.flip(bit);
            let differ = whole.bytes().iter().zip(damaged.bytes()).map(|(a, b)| (a ^ b).count_ones());
            assert_eq!(differ.sum::<u32>(), 1);
            assert_eq!(whole.bytes()[..ETHERNET_BYTES], damaged.bytes()[..ETHERNET_BYTES]);
        }
    }

    #[test]
    fn flows_are_told_apart_by_addresses_and_ports() {
        let there = frame(0, 0, 1).flow();
        assert_eq!(there.to_string(), "tcp 10.0.0.1:40000 > 10.0.0.2:80");
        assert_eq!(there.number(), frame(ETHERNET_BYTES, 2, 9).flow().number());
        let mut other = frame(0, 0, 1);
        other.room()[20] ^= 1;
        assert_ne!(other.flow().number(), there.number());
    }

    #[test]
    fn every_beginning_of_a_packet_is_read_without_a_fault() {
        for length in 0..=68 {
            let mut cut = frame(ETHERNET_BYTES, 1, 3);
            cut.filled(length);
            let _ = (cut.flow(), cut.ecn(), cut.link_bytes());
            cut.mark();
            cut.flip(77);
        }
    }
}
