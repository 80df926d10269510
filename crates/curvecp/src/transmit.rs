//! The buffer that an endpoint fills with datagrams to send, grouped for segmented sends.

use crate::packet::MAX_PACKET;
use std::net::SocketAddr;

/// Datagrams in one segmented send, at most: the limit of Linux (`UDP_MAX_SEGMENTS`).
const MAX_SEGMENTS: usize = 64;
/// Bytes in one segmented send, at most: an IPv4 packet holds 65,535 with its headers.
const MAX_BYTES: usize = 65_507;

/// A send buffer that its owner uses again and again.
#[derive(Debug)]
pub struct TransmitBuffer {
    bytes: Box<[u8]>,
    filled: usize,
    spans: Vec<Span>,
}

#[derive(Debug)]
struct Span {
    destination: SocketAddr,
    segment: usize,
    start: usize,
    end: usize,
    /// Nothing is joined to it.
    alone: bool,
}

/// Datagrams of equal length to one address, for one system call with UDP_SEGMENT; only the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// The destination address.
    pub destination: SocketAddr,
    /// Bytes of each datagram.
    pub segment: usize,
    /// The datagrams, one after another.
    pub bytes: &'a [u8],
}

impl<'a> Transmit<'a> {
    /// The datagrams one by one, for systems without segmentation.
    pub fn datagrams(&self) -> impl Iterator<Item = &'a [u8]> {
        self.bytes.chunks(self.segment)
    }
}

impl TransmitBuffer {
    /// A buffer for this many datagrams of the greatest length, at least one.
    pub fn new(datagrams: usize) -> Self {
        let datagrams = datagrams.max(1);
        Self {
            bytes: vec![0; datagrams * MAX_PACKET].into(),
            filled: 0,
            spans: Vec::with_capacity(datagrams),
        }
    }

    /// The packets to send, in order.
    pub fn transmits(&self) -> impl Iterator<Item = Transmit<'_>> {
        self.spans.iter().map(|span| Transmit {
            destination: span.destination,
            segment: span.segment,
            bytes: &self.bytes[span.start..span.end],
        })
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.filled = 0;
        self.spans.clear();
    }

    /// Where the next packet goes; `None` where the longest would not fit.
    pub(crate) fn next_packet(&mut self) -> Option<&mut [u8; MAX_PACKET]> {
        self.bytes[self.filled..].first_chunk_mut()
    }

    /// Takes up the packet of this length that [`next_packet`](Self::next_packet) holds.
    pub(crate) fn push(&mut self, destination: SocketAddr, length: usize) {
        let (start, end) = (self.filled, self.filled + length);
        self.filled = end;
        if let Some(last) = self.spans.last_mut() {
            let taken = last.end - last.start;
            let all_equal = taken.is_multiple_of(last.segment);
            let fits = taken / last.segment < MAX_SEGMENTS && taken + length <= MAX_BYTES && !last.alone;
            if last.destination == destination && length <= last.segment && all_equal && fits {
                last.end = end;
                return;
            }
        }
        self.spans.push(Span { destination, segment: length, start, end, alone: false });
    }

    /// Takes up a packet that may be too long for the network, so that it takes no other with it.
    pub(crate) fn push_alone(&mut self, destination: SocketAddr, length: usize) {
        let (start, end) = (self.filled, self.filled + length);
        self.filled = end;
        self.spans.push(Span { destination, segment: length, start, end, alone: true });
    }

    /// Bytes taken so far.
    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// The packets taken since `start`.
    pub(crate) fn since(&mut self, start: usize) -> &mut [u8] {
        &mut self.bytes[start..self.filled]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_datagrams_to_one_address_make_one_transmit_and_a_shorter_one_ends_it() {
        let (a, b) = (SocketAddr::from(([1; 4], 1)), SocketAddr::from(([2; 4], 2)));
        let mut buffer = TransmitBuffer::new(100);
        for (to, length) in [(a, 800), (a, 800), (a, 256), (a, 256), (b, 256), (b, 1152)] {
            buffer.next_packet().unwrap().fill(length as u8);
            buffer.push(to, length);
        }
        let spans: Vec<_> = buffer.transmits().map(|t| (t.destination, t.segment, t.bytes.len())).collect();
        assert_eq!(spans, [(a, 800, 1856), (a, 256, 256), (b, 256, 256), (b, 1152, 1152)]);
        let first = buffer.transmits().next().unwrap();
        assert_eq!(first.datagrams().map(<[u8]>::len).collect::<Vec<_>>(), [800, 800, 256]);
        assert!(first.datagrams().all(|datagram| datagram.iter().all(|&byte| byte == datagram.len() as u8)));
        buffer.clear();
        assert!(buffer.is_empty());
        buffer.push_alone(a, 1440);
        buffer.push(a, 1184);
        assert_eq!(buffer.transmits().map(|t| t.bytes.len()).collect::<Vec<_>>(), [1440, 1184]);
    }

    #[test]
    fn a_transmit_stays_within_the_limits_of_the_system_and_a_full_buffer_takes_no_more() {
        for length in [80, 1184, 1440] {
            let mut buffer = TransmitBuffer::new(200);
            while buffer.next_packet().is_some() {
                buffer.push(SocketAddr::from(([1; 4], 1)), length);
            }
            assert!(
                buffer
                    .transmits()
                    .all(|t| t.bytes.len() <= MAX_BYTES && t.datagrams().count() <= MAX_SEGMENTS)
            );
            assert!(buffer.transmits().map(|t| t.datagrams().count()).sum::<usize>() >= 200);
        }
    }
}
