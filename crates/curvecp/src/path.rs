//! The address a server sends to, and how much it may send before the client has shown that it receives there.
//!
//! A packet's source address can be forged. An address is validated by a cookie that was sent to it, or by an echo of the
//! ID of a message that was sent to it; until then the server sends at most three times the bytes it received from there
//! (the limit of QUIC, RFC 9000, 8.1). A client must not guess such an ID, so with each new address all IDs are shifted
//! by a number that only the server knows; the message layer sees its own IDs.

use std::net::SocketAddr;

/// Bytes that may go to an unvalidated address per byte that came from it.
const AMPLIFICATION: u64 = 3;
/// IDs sent to an address after which echoes of the address before are no longer expected.
const MEMORY: u32 = 1 << 30;

/// The peer's present address.
#[derive(Debug)]
pub(crate) struct Path {
    address: SocketAddr,
    limit: Option<Limit>,
    /// Added to the ID of each message to this address.
    shift: u32,
    /// The first and last shifted ID that were sent to it.
    ids: Option<(u32, u32)>,
    /// The shift of the address before.
    previous: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Limit {
    received: u64,
    sent: u64,
}

impl Path {
    /// An address that is known to be the peer's.
    pub(crate) fn validated(address: SocketAddr) -> Self {
        Self { address, limit: None, shift: 0, ids: None, previous: None }
    }

    /// An address from which an authentic packet came, but which may be forged. `shift` is a number that the peer cannot
    /// know.
    pub(crate) fn unvalidated(address: SocketAddr, shift: u32) -> Self {
        Self { limit: Some(Limit::default()), shift, ..Self::validated(address) }
    }

    /// Follows the peer to an address that may be forged; see [`unvalidated`](Self::unvalidated).
    pub(crate) fn follow(&mut self, address: SocketAddr, shift: u32) {
        *self = Self { previous: Some(self.shift), ..Self::unvalidated(address, shift) };
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the peer has shown that it receives there.
    pub(crate) fn is_validated(&self) -> bool {
        self.limit.is_none()
    }

    /// Bytes that may be sent now.
    pub(crate) fn allowance(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| AMPLIFICATION * limit.received - limit.sent)
    }

    /// Counts an authentic packet and validates the address where its message echoes one sent here. The echo becomes an
    /// ID of the message layer.
    pub(crate) fn receive(&mut self, from: SocketAddr, bytes: usize, message: &mut [u8]) {
        if let Some(limit) = self.limit.as_mut().filter(|_| from == self.address) {
            limit.received += bytes as u64;
        }
        let Some(field) = message.get_mut(4..8).and_then(|field| <&mut [u8; 4]>::try_from(field).ok()) else {
            return;
        };
        let echo = u32::from_le_bytes(*field);
        if echo == 0 {
            return;
        }
        let sent_here = self.ids.is_some_and(|(first, last)| distance(first, echo) <= distance(first, last));
        if sent_here && from == self.address {
            self.limit = None;
        }
        let shift = if sent_here { self.shift } else { self.previous.unwrap_or(self.shift) };
        *field = shifted(echo, IDS - shift).to_le_bytes();
    }

    /// Counts a packet to this address, and shifts the ID of its message.
    pub(crate) fn send(&mut self, bytes: usize, message: &mut [u8]) {
        if let Some(limit) = &mut self.limit {
            limit.sent += bytes as u64;
        }
        let field = message.first_chunk_mut().expect("a message has at least 16 bytes");
        let id = u32::from_le_bytes(*field);
        if id == 0 {
            return;
        }
        let id = shifted(id, self.shift);
        *field = id.to_le_bytes();
        let first = self.ids.map_or(id, |(first, _)| first);
        self.ids = Some((first, id));
        if distance(first, id) > MEMORY {
            (self.ids, self.previous) = (Some((id, id)), None);
        }
    }
}

/// IDs count from 1 to 2^32 - 1, then from 1 again; zero is not an ID.
const IDS: u32 = u32::MAX;

fn shifted(id: u32, by: u32) -> u32 {
    ((u64::from(id) - 1 + u64::from(by)) % u64::from(IDS)) as u32 + 1
}

/// From one ID to a later one.
fn distance(from: u32, to: u32) -> u32 {
    if to >= from { to - from } else { IDS - (from - to) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HERE: &str = "192.0.2.1:1";

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn message(id: u32, echo: u32) -> Vec<u8> {
        [&id.to_le_bytes()[..], &echo.to_le_bytes(), &[0; 40]].concat()
    }

    /// The ID under which a message of the layer leaves.
    fn sent(path: &mut Path, bytes: usize, id: u32) -> u32 {
        let mut message = message(id, 0);
        path.send(bytes, &mut message);
        u32::from_le_bytes(message[..4].try_into().unwrap())
    }

    /// The ID that the layer sees echoed.
    fn echoed(path: &mut Path, from: &str, bytes: usize, echo: u32) -> u32 {
        let mut message = message(1, echo);
        path.receive(address(from), bytes, &mut message);
        u32::from_le_bytes(message[4..8].try_into().unwrap())
    }

    #[test]
    fn an_unvalidated_address_gets_three_bytes_per_byte_until_it_echoes() {
        let mut path = Path::validated(address("192.0.2.9:9"));
        assert_eq!((path.allowance(), sent(&mut path, 100, 6)), (u64::MAX, 6));
        path.follow(address(HERE), 1000);
        assert_eq!(path.allowance(), 0);
        assert_eq!(echoed(&mut path, HERE, 100, 0), 0);
        assert_eq!(
            (sent(&mut path, 120, 7), sent(&mut path, 120, 0), sent(&mut path, 40, 9)),
            (1007, 0, 1009)
        );
        assert_eq!(path.allowance(), 20);
        // Echoes of what went to the address before, guesses, and an echo from elsewhere.
        assert_eq!(echoed(&mut path, HERE, 10, 6), 6);
        assert_eq!(echoed(&mut path, HERE, 10, 9), 9);
        assert_eq!(echoed(&mut path, "192.0.2.9:9", 10, 1008), 8);
        assert_eq!(path.allowance(), 80);
        assert_eq!(echoed(&mut path, HERE, 10, 1009), 9);
        assert_eq!(path.allowance(), u64::MAX);
    }

    #[test]
    fn an_echo_before_anything_was_sent_validates_nothing() {
        let mut path = Path::unvalidated(address(HERE), 5);
        echoed(&mut path, HERE, 16, 1);
        path.receive(address(HERE), 16, &mut [1; 7]);
        assert_eq!(path.allowance(), 96);
    }

    proptest! {
        #[test]
        fn shifts_are_invisible_to_the_message_layer(id in 1..=u32::MAX, shift: u32, count in 1..50u32) {
            let mut path = Path::validated(address(HERE));
            path.follow(address("192.0.2.2:2"), shift);
            for id in (0..count).map(|i| shifted(id, i)) {
                let wire = sent(&mut path, 100, id);
                prop_assert_ne!(wire, 0);
                prop_assert_eq!(echoed(&mut path, "192.0.2.2:2", 100, wire), id);
            }
        }
    }

    #[test]
    fn the_range_of_ids_is_bounded() {
        let mut path = Path::validated(address(HERE));
        for id in [1, MEMORY + 1, MEMORY + 2, 3 * MEMORY, u32::MAX, 1] {
            let wire = sent(&mut path, 100, id);
            assert_eq!(echoed(&mut path, HERE, 100, wire), id);
        }
    }
}
