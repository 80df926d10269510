//! The address a server sends to, and how much it may send before the client has shown that it receives there.
//!
//! A packet's source address can be forged. An address is validated by a cookie that was sent to it, or by an echo of the
//! ID of a message that was sent to it; until then the server sends at most three times the bytes it received from there
//! (the limit of QUIC, RFC 9000, 8.1).

use std::net::SocketAddr;

/// Bytes that may go to an unvalidated address per byte that came from it.
const AMPLIFICATION: u64 = 3;

/// The peer's present address.
#[derive(Debug)]
pub(crate) struct Path {
    address: SocketAddr,
    limit: Option<Limit>,
}

#[derive(Debug, Default)]
struct Limit {
    received: u64,
    sent: u64,
    /// The first and last message ID sent to this address.
    ids: Option<(u32, u32)>,
}

impl Path {
    /// An address that is known to be the peer's.
    pub(crate) fn validated(address: SocketAddr) -> Self {
        Self { address, limit: None }
    }

    /// An address from which an authentic packet came, but which may be forged.
    pub(crate) fn unvalidated(address: SocketAddr) -> Self {
        Self { address, limit: Some(Limit::default()) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Bytes that may be sent now.
    pub(crate) fn allowance(&self) -> u64 {
        self.limit.as_ref().map_or(u64::MAX, |limit| AMPLIFICATION * limit.received - limit.sent)
    }

    /// Counts an authentic packet from this address, and validates the address where its message echoes one sent here.
    pub(crate) fn receive(&mut self, bytes: usize, message: &[u8]) {
        let Some(limit) = &mut self.limit else { return };
        limit.received += bytes as u64;
        let echo = message_ids(message).1;
        let echoes = |(first, last): (u32, u32)| echo.wrapping_sub(first) <= last.wrapping_sub(first);
        if echo != 0 && limit.ids.is_some_and(echoes) {
            self.limit = None;
        }
    }

    /// Counts a packet to this address.
    pub(crate) fn send(&mut self, bytes: usize, message: &[u8]) {
        let Some(limit) = &mut self.limit else { return };
        limit.sent += bytes as u64;
        let id = message_ids(message).0;
        if id != 0 {
            limit.ids = Some((limit.ids.map_or(id, |(first, _)| first), id));
        }
    }
}

/// A message's own ID and the ID it echoes, its first two fields; zero means none.
fn message_ids(message: &[u8]) -> (u32, u32) {
    let field =
        |at| message.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes);
    (field(0), field(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: u32, echo: u32) -> Vec<u8> {
        [&id.to_le_bytes()[..], &echo.to_le_bytes(), &[0; 40]].concat()
    }

    #[test]
    fn an_unvalidated_address_gets_three_bytes_per_byte_until_it_echoes() {
        let mut path = Path::unvalidated("192.0.2.1:1".parse().unwrap());
        assert_eq!(path.allowance(), 0);
        path.receive(100, &message(1, 0));
        path.send(120, &message(7, 0));
        path.send(120, &message(0, 0));
        path.send(40, &message(9, 0));
        assert_eq!(path.allowance(), 20);
        path.receive(10, &message(2, 6));
        path.receive(10, &message(2, 10));
        assert_eq!(path.allowance(), 80);
        path.receive(10, &message(3, 9));
        assert_eq!(path.allowance(), u64::MAX);
    }

    #[test]
    fn an_echo_of_nothing_that_was_sent_here_validates_nothing() {
        let mut path = Path::unvalidated("192.0.2.1:1".parse().unwrap());
        path.receive(16, &message(1, 1));
        path.receive(16, &[0; 3]);
        assert_eq!(path.allowance(), 96);
    }
}
