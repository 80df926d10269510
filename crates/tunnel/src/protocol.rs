//! The messages of a tunnel. No I/O. Each is the body of a [frame](kendall_remote::frame) of its kind, little-endian.
//!
//! | kind | from | fields |
//! | --- | --- | --- |
//! | 1, 2 | | `HELLO` and `REFUSED` of all services |
//! | 16 | client | request: abilities (1: bit 0 takes joined datagrams) |
//! | 17 | server | assigned: MTU (2), abilities (1), IPv4 of client (4), server (4), prefix (1), the same of IPv6 (16, 16, 1; without IPv6, the prefix is 0) |
//! | 18 | both | packet: the offload header (10), the IP packet |

use std::net::{Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};
use kendall_remote::{BadMessage, frame};

use crate::addresses::Assigned;

/// Kinds of frames.
pub(crate) const REQUEST: u8 = 16;
pub(crate) const ASSIGNED: u8 = 17;
pub(crate) const PACKET: u8 = 18;

/// The MTUs that a tunnel may have, in bytes: from what IPv6 needs (RFC 8200, section 5) to jumbo frames.
pub const MTUS: std::ops::RangeInclusive<u16> = 1280..=9000;

const JOINED_UDP: u8 = 1;

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Whether the client's kernel takes joined datagrams.
    pub(crate) joined_udp: bool,
}

impl Request {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let start = frame::begin(out, REQUEST);
        out.push(if self.joined_udp { JOINED_UDP } else { 0 });
        frame::end(out, start);
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, BadMessage> {
        let &[abilities, ..] = body else { return Err(BadMessage("Request")) };
        Ok(Self { joined_udp: abilities & JOINED_UDP != 0 })
    }
}

/// What a server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The MTU of both devices, in bytes.
    pub(crate) mtu: u16,
    /// Whether the server's kernel takes joined datagrams.
    pub(crate) joined_udp: bool,
    /// The client's addresses.
    pub(crate) assigned: Assigned,
}

impl Answer {
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let start = frame::begin(out, ASSIGNED);
        out.extend(self.mtu.to_le_bytes());
        out.push(if self.joined_udp { JOINED_UDP } else { 0 });
        let Assigned { v4, server_v4, v6, server_v6 } = self.assigned;
        out.extend([v4.addr().octets(), server_v4.octets()].concat());
        out.push(v4.prefix_len());
        let v6 = v6.zip(server_v6);
        let (net, server) = v6.unwrap_or_else(|| (Ipv6Net::default(), Ipv6Addr::UNSPECIFIED));
        out.extend([net.addr().octets(), server.octets()].concat());
        out.push(net.prefix_len());
        frame::end(out, start);
    }

    pub(crate) fn decode(body: &[u8]) -> Result<Self, BadMessage> {
        let mut rest = body;
        let mut answer = || {
            let mtu = u16::from_le_bytes(take(&mut rest)?);
            let [abilities] = take(&mut rest)?;
            let (v4, server_v4) =
                (Ipv4Addr::from(take::<4>(&mut rest)?), Ipv4Addr::from(take::<4>(&mut rest)?));
            let v4 = Ipv4Net::new(v4, take::<1>(&mut rest)?[0]).ok()?;
            let (v6, server_v6) =
                (Ipv6Addr::from(take::<16>(&mut rest)?), Ipv6Addr::from(take::<16>(&mut rest)?));
            let v6 = Ipv6Net::new(v6, take::<1>(&mut rest)?[0]).ok()?;
            let has_v6 = v6.prefix_len() != 0;
            let assigned =
                Assigned { v4, server_v4, v6: has_v6.then_some(v6), server_v6: has_v6.then_some(server_v6) };
            Some(Self { mtu, joined_udp: abilities & JOINED_UDP != 0, assigned })
        };
        answer().filter(|answer| MTUS.contains(&answer.mtu)).ok_or(BadMessage("Assigned"))
    }
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*front)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let v6 = "fd77::3/64".parse().ok();
        let both = Assigned {
            v4: "10.77.0.3/24".parse().unwrap(),
            server_v4: "10.77.0.1".parse().unwrap(),
            v6,
            server_v6: "fd77::1".parse().ok(),
        };
        for assigned in [both, Assigned { v6: None, server_v6: None, ..both }] {
            let answer = Answer { mtu: 1500, joined_udp: true, assigned };
            let mut out = Vec::new();
            answer.encode(&mut out);
            assert_eq!(Answer::decode(&out[frame::HEADER..]), Ok(answer));
            assert_eq!(Answer::decode(&out[frame::HEADER..out.len() - 1]), Err(BadMessage("Assigned")));
        }
        for request in [Request { joined_udp: true }, Request { joined_udp: false }] {
            let mut out = Vec::new();
            request.encode(&mut out);
            assert_eq!(Request::decode(&out[frame::HEADER..]), Ok(request));
        }
        assert_eq!(Request::decode(&[]), Err(BadMessage("Request")));
    }

    proptest! {
        #[test]
        fn no_body_panics(body in proptest::collection::vec(any::<u8>(), 0..60)) {
            _ = Request::decode(&body);
            _ = Answer::decode(&body);
        }
    }
}
