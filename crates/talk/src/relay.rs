//! A relay for pairs of peers: it shows each peer's address to the other side, and forwards their packets where they have no
//! direct way. The packets are CurveCP's, which it cannot read.
//!
//! A peer announces itself with a datagram of [`ANNOUNCEMENT_BYTES`]: eight fixed bytes, the token that the directory gave it,
//! and zeros. The relay sends nothing back, so a forged announcement earns nothing; the relay's owner learns the address
//! that the announcement came from. Everything else that a peer sends from that address is forwarded to the other peer, within
//! a rate.

mod pairs;
mod server;

pub use pairs::{DatagramAction, Limits, PairId, Pairs, TooManyPairs};
pub use server::{PeerAnnounced, Relay, RelayHandle};

/// A token that proves a peer's right to a pair.
pub type Token = [u8; 16];

/// Bytes of an announcement: as many as the smallest packet of CurveCP that a relay forwards has at least.
pub const ANNOUNCEMENT_BYTES: usize = 64;

const MAGIC: [u8; 8] = *b"kendTALK";

/// The datagram with which a peer announces itself.
pub fn announcement(token: &Token) -> [u8; ANNOUNCEMENT_BYTES] {
    let mut datagram = [0; ANNOUNCEMENT_BYTES];
    datagram[..8].copy_from_slice(&MAGIC);
    datagram[8..24].copy_from_slice(token);
    datagram
}

/// The token of an announcement, if the datagram is one.
pub fn announced(datagram: &[u8]) -> Option<Token> {
    let datagram: &[u8; ANNOUNCEMENT_BYTES] = datagram.try_into().ok()?;
    let rest = datagram.strip_prefix(&MAGIC)?;
    let (token, zeros) = rest.split_first_chunk()?;
    zeros.iter().all(|byte| *byte == 0).then_some(*token)
}
