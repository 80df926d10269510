//! The header before each packet that a TUN device with offloads reads and writes (`virtio_net_hdr` of Virtual I/O Device
//! specification 1.2, section 5.1.6; `linux/virtio_net.h`), on the wire in little-endian.

use std::borrow::Cow;

use tun_rs::{
    VIRTIO_NET_HDR_GSO_TCPV4, VIRTIO_NET_HDR_GSO_TCPV6, VIRTIO_NET_HDR_GSO_UDP_L4, VIRTIO_NET_HDR_LEN,
    VirtioNetHdr, gso_split,
};

use crate::packet;

/// The number of bytes of the header.
pub(crate) const BYTES: usize = VIRTIO_NET_HDR_LEN;

/// `VIRTIO_NET_HDR_F_NEEDS_CSUM`: the sum of the transport is of the pseudo-header alone, the rest is left to hardware.
const NEEDS_CHECKSUM: u8 = 1;
/// All flags there are.
const FLAGS: u8 = 7;
/// `VIRTIO_NET_HDR_GSO_ECN`, a flag of the kind.
const ECN: u8 = 0x80;
/// The most datagrams that the kernel joins (`UDP_MAX_SEGMENTS` of Linux).
const MOST_DATAGRAMS: usize = 128;

/// The positions of the 16-bit fields.
const WORDS: [usize; 4] = [2, 4, 6, 8];

/// A packet with its header as the kernel takes it, of one from the wire.
pub(crate) fn from_wire(framed: &[u8]) -> Cow<'_, [u8]> {
    if cfg!(target_endian = "little") {
        return Cow::Borrowed(framed);
    }
    let mut framed = framed.to_vec();
    swap_to_wire(&mut framed);
    Cow::Owned(framed)
}

/// Changes a header between this machine's byte order and little-endian; the change is its own reverse.
pub(crate) fn swap_to_wire(header: &mut [u8]) {
    if cfg!(target_endian = "big") {
        WORDS.iter().for_each(|&at| header.swap(at, at + 1));
    }
}

/// Whether the transport's checksum of a packet is left to hardware; the header in either byte order.
pub(crate) fn is_partial(header: &[u8]) -> bool {
    header.first().is_some_and(|flags| flags & NEEDS_CHECKSUM != 0)
}

/// Whether a kernel without UDP segmentation (before Linux 6.2) refuses a packet with this header.
pub(crate) fn is_joined_udp(header: &[u8]) -> bool {
    header.get(1).is_some_and(|kind| kind & !ECN == VIRTIO_NET_HDR_GSO_UDP_L4)
}

/// Whether a header from a peer, in little-endian, fits a packet of a link with this MTU.
///
/// The kernel checks headers, too, since virtual machines write them; this spares it those that are wrong on their face.
pub(crate) fn is_valid(header: &[u8], length: usize, mtu: u16) -> bool {
    let word = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
    let [headers, segment, start, offset] = WORDS.map(word);
    let sums_fit = !is_partial(header) || start + offset + 2 <= length;
    let kind = header[1] & !ECN;
    let fits = match kind {
        0 => header[1] == 0 && length <= usize::from(mtu),
        VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_TCPV6 | VIRTIO_NET_HDR_GSO_UDP_L4 => {
            is_partial(header) && segment > 0 && headers <= length && start + segment <= usize::from(mtu)
        }
        _ => false,
    };
    header[0] & !FLAGS == 0 && sums_fit && fits
}

/// Divides joined datagrams into their own packets, for a peer whose kernel does not know them. Each has an empty
/// offload header. Packets that cannot be divided are dropped.
pub(crate) fn split_udp(header: &[u8], joined: &mut [u8], mut each: impl FnMut(&[u8; BYTES], &[u8])) {
    let Ok(header) = VirtioNetHdr::decode(header) else { return };
    let (most, is_v6) =
        (usize::from(header.csum_start) + 8 + usize::from(header.gso_size), joined[0] >> 4 == 6);
    // The kernel leaves it open how long it takes the headers to be.
    let header = VirtioNetHdr { hdr_len: header.csum_start + 8, ..header };
    let mut packets = vec![vec![0; most]; MOST_DATAGRAMS];
    let mut lengths = [0; MOST_DATAGRAMS];
    let Ok(count) = gso_split(joined, header, &mut packets, &mut lengths, 0, is_v6) else { return };
    for (packet, length) in packets.iter().zip(lengths).take(count) {
        if packet::addresses(&packet[..length]).is_some() {
            each(&[0; BYTES], &packet[..length]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(flags: u8, kind: u8, words: [u16; 4]) -> Vec<u8> {
        [vec![flags, kind], words.iter().flat_map(|word| word.to_le_bytes()).collect()].concat()
    }

    #[test]
    fn headers_that_do_not_fit_their_packets_are_refused() {
        let tcp = VIRTIO_NET_HDR_GSO_TCPV4;
        assert!(is_valid(&header(0, 0, [0; 4]), 1500, 1500));
        assert!(!is_valid(&header(0, 0, [0; 4]), 1501, 1500), "longer than the MTU");
        assert!(is_valid(&header(1, 0, [0, 0, 20, 16]), 60, 1500));
        assert!(!is_valid(&header(1, 0, [0, 0, 50, 16]), 60, 1500), "a checksum beyond the end");
        assert!(is_valid(&header(1, tcp, [52, 1448, 20, 16]), 64_000, 1500));
        assert!(!is_valid(&header(1, tcp, [52, 0, 20, 16]), 64_000, 1500), "segments of nothing");
        assert!(!is_valid(&header(1, tcp, [52, 1600, 20, 16]), 64_000, 1500), "segments beyond the MTU");
        assert!(!is_valid(&header(0, tcp, [52, 1448, 20, 16]), 64_000, 1500), "no checksum to complete");
        assert!(!is_valid(&header(8, 0, [0; 4]), 60, 1500), "an unknown flag");
        assert!(!is_valid(&header(1, 3, [28, 1448, 20, 6]), 60, 1500), "an unknown kind");
    }

    #[test]
    fn joined_datagrams_come_apart() {
        // Three datagrams of 100, 100 and 50 bytes behind one header of IPv4 and UDP.
        let mut joined = vec![0x45, 0, 0, 0, 0, 1, 0, 0, 64, 17, 0, 0, 10, 77, 0, 2, 10, 77, 0, 1];
        joined.extend([0x30, 0x39, 0, 53, 0, 0, 0, 0]);
        joined.extend((0..250_u8).collect::<Vec<_>>());
        let length = joined.len() as u16;
        joined[2..4].copy_from_slice(&length.to_be_bytes());
        let words = [28, 100, 20, 6];
        let native = [
            vec![1, VIRTIO_NET_HDR_GSO_UDP_L4],
            words.iter().flat_map(|word: &u16| word.to_ne_bytes()).collect(),
        ];
        let mut payloads = Vec::new();
        split_udp(&native.concat(), &mut joined, |header, packet| {
            assert_eq!(header, &[0; BYTES]);
            assert_eq!(usize::from(u16::from_be_bytes([packet[24], packet[25]])), packet.len() - 20);
            payloads.push(packet[28..].to_vec());
        });
        assert_eq!(payloads.iter().map(Vec::len).collect::<Vec<_>>(), [100, 100, 50]);
        assert_eq!(payloads.concat(), (0..250_u8).collect::<Vec<_>>());
    }
}
