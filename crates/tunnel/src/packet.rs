//! IP packets: their addresses, and the segment size that a TCP connection asks for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const TCP: u8 = 6;
const SYN: u8 = 2;
/// The kinds of TCP options (RFC 9293, section 3.1).
const END: u8 = 0;
const NO_OPERATION: u8 = 1;
const MAXIMUM_SEGMENT_SIZE: u8 = 2;

/// The source and the destination of a packet (RFC 791, section 3.1; RFC 8200, section 3), where its length is what its
/// header says.
pub(crate) fn addresses(packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let word = |at: usize| Some(u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]));
    match packet.first()? >> 4 {
        4 => {
            let at = |at: usize| Some(Ipv4Addr::from(*packet.get(at..)?.first_chunk::<4>()?));
            let whole = packet.len() >= 20 && usize::from(word(2)?) == packet.len();
            whole.then_some((at(12)?.into(), at(16)?.into()))
        }
        6 => {
            let at = |at: usize| Some(Ipv6Addr::from(*packet.get(at..)?.first_chunk::<16>()?));
            let whole = packet.len() >= 40 && usize::from(word(4)?) + 40 == packet.len();
            whole.then_some((at(8)?.into(), at(24)?.into()))
        }
        _ => None,
    }
}

/// Lowers the maximum segment size that a SYN announces to what packets of `mtu` bytes hold, so that a host behind the tunnel
/// does not send larger ones. `partial` says that the kernel has not computed the TCP checksum yet.
pub(crate) fn clamp_mss(packet: &mut [u8], mtu: u16, partial: bool) {
    let Some((start, headers)) = tcp(packet) else { return };
    let tcp = &mut packet[start..];
    if tcp.len() < 20 || tcp[13] & SYN == 0 {
        return;
    }
    let end = (usize::from(tcp[12] >> 4) * 4).min(tcp.len());
    let Some(at) = segment_size(tcp, end) else { return };
    let (old, most) = (u16::from_be_bytes([tcp[at], tcp[at + 1]]), mtu.saturating_sub(headers));
    if old <= most {
        return;
    }
    tcp[at..at + 2].copy_from_slice(&most.to_be_bytes());
    if !partial {
        // The words that the sum is of begin at even places: a value at an odd one is in two of them.
        let in_words = |value: u16| if at % 2 == 0 { value } else { value.swap_bytes() };
        let sum = u16::from_be_bytes([tcp[16], tcp[17]]);
        tcp[16..18].copy_from_slice(&updated(sum, in_words(old), in_words(most)).to_be_bytes());
    }
}

/// Where the TCP header of a packet begins, and the bytes of the headers that no option makes longer.
fn tcp(packet: &[u8]) -> Option<(usize, u16)> {
    match packet.first()? >> 4 {
        4 => {
            let is_first = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x1fff == 0;
            let start = usize::from(packet[0] & 15) * 4;
            (is_first && packet.get(9) == Some(&TCP) && start >= 20 && start <= packet.len())
                .then_some((start, 40))
        }
        // A SYN behind extension headers keeps its announcement.
        6 => (packet.len() >= 40 && packet[6] == TCP).then_some((40, 60)),
        _ => None,
    }
}

/// The position of the option's value.
fn segment_size(tcp: &[u8], end: usize) -> Option<usize> {
    let mut at = 20;
    while at < end {
        match tcp[at] {
            END => return None,
            NO_OPERATION => at += 1,
            kind => {
                let length = usize::from(*tcp.get(at + 1)?);
                if kind == MAXIMUM_SEGMENT_SIZE {
                    return (length == 4 && at + 4 <= end).then_some(at + 2);
                }
                at += length.max(2);
            }
        }
    }
    None
}

/// An Internet checksum after one word of what it is of has changed (RFC 1624, equation 3).
fn updated(sum: u16, old: u16, new: u16) -> u16 {
    let mut total = u32::from(!sum) + u32::from(!old) + u32::from(new);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The sum of a TCP segment over IPv4 with its pseudo-header; 0 where the checksum in it is right.
    fn sum(packet: &[u8]) -> u16 {
        let words = |bytes: &[u8]| {
            bytes
                .chunks(2)
                .map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)))
                .sum::<u32>()
        };
        let mut total =
            words(&packet[12..20]) + u32::from(TCP) + (packet.len() - 20) as u32 + words(&packet[20..]);
        while total > 0xffff {
            total = (total & 0xffff) + (total >> 16);
        }
        !(total as u16)
    }

    fn syn(options: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, TCP, 0, 0, 10, 77, 0, 2, 192, 0, 2, 7];
        packet.extend([0; 20]);
        packet.extend(options);
        packet.resize(packet.len().next_multiple_of(4), 0);
        packet[32] = ((packet.len() - 20) as u8 / 4) << 4;
        packet[33] = SYN;
        let length = packet.len() as u16;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        let checksum = sum(&packet);
        packet[36..38].copy_from_slice(&checksum.to_be_bytes());
        packet
    }

    proptest! {
        #[test]
        fn a_clamped_syn_has_a_right_checksum(mss in any::<u16>(), before in 0_usize..6, mtu in 576_u16..9000) {
            let mut options = vec![NO_OPERATION; before];
            options.extend([MAXIMUM_SEGMENT_SIZE, 4]);
            options.extend(mss.to_be_bytes());
            let mut packet = syn(&options);
            clamp_mss(&mut packet, mtu, false);
            prop_assert_eq!(u16::from_be_bytes([packet[42 + before], packet[43 + before]]), mss.min(mtu - 40));
            // 0 and its complement are one number in this arithmetic.
            prop_assert!(matches!(sum(&packet), 0 | 0xffff));
        }

        #[test]
        fn no_bytes_panic(mut packet in proptest::collection::vec(any::<u8>(), 0..120), version in 0_u8..16) {
            if let Some(first) = packet.first_mut() {
                *first = version << 4 | *first & 15;
            }
            _ = addresses(&packet);
            clamp_mss(&mut packet, 1280, false);
        }
    }

    #[test]
    fn only_packets_of_their_own_length_have_addresses() {
        let packet = syn(&[]);
        let (source, destination) = addresses(&packet).unwrap();
        assert_eq!((source.to_string(), destination.to_string()), ("10.77.0.2".into(), "192.0.2.7".into()));
        assert_eq!(addresses(&packet[..39]), None);
        assert_eq!(addresses(&[]), None);
    }
}
