//! The pairs that a relay knows, without sockets and clocks: instants are since any fixed one.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Token, announced};

/// The limits of a relay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Pairs at once.
    pub pairs: usize,
    /// Bytes per second that one pair may send, both ways together.
    pub bytes_per_s: f64,
    /// Bytes that a pair may send at once after a pause.
    pub burst: f64,
    /// A pair without a packet for this long is forgotten.
    pub idle: Duration,
}

impl Default for Limits {
    /// For 10,000 pairs that write to each other and send files now and then.
    fn default() -> Self {
        Self { pairs: 10_000, bytes_per_s: 1e6, burst: 4e6, idle: Duration::from_secs(60) }
    }
}

/// The name of a pair. It is never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PairId(u64);

/// The relay has no place for another pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the relay has {0} pairs, which is its limit; try again later")]
pub struct TooManyPairs(pub usize);

/// The action of the relay on a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramAction {
    /// The datagram announced a peer: this side (0 or 1) of the pair is at the address that it came from. The relay
    /// sends nothing.
    Seen {
        /// The pair.
        pair: PairId,
        /// Whose token it was: the first or the second.
        side: usize,
    },
    /// The relay forwards the datagram to this address.
    Forward(SocketAddr),
    /// The relay drops the datagram: it is from a stranger, for a peer that has not announced itself, or beyond the
    /// rate.
    Drop,
}

/// All pairs of a relay.
#[derive(Debug)]
pub struct Pairs {
    limits: Limits,
    next: u64,
    pairs: HashMap<PairId, Pair>,
    tokens: HashMap<Token, (PairId, usize)>,
    /// Only addresses of announced peers.
    addresses: HashMap<SocketAddr, (PairId, usize)>,
}

#[derive(Debug)]
struct Pair {
    tokens: [Token; 2],
    addresses: [Option<SocketAddr>; 2],
    last: Duration,
    /// Bytes that may be sent at `last`.
    allowance: f64,
}

impl Pairs {
    /// Makes a relay without pairs.
    pub fn new(limits: Limits) -> Self {
        Self { limits, next: 0, pairs: HashMap::new(), tokens: HashMap::new(), addresses: HashMap::new() }
    }

    /// A new pair, whose peers will announce themselves with these tokens, which must be drawn for it.
    ///
    /// # Errors
    /// There are too many.
    pub fn open(&mut self, now: Duration, tokens: [Token; 2]) -> Result<PairId, TooManyPairs> {
        if self.pairs.len() >= self.limits.pairs {
            self.expire(now);
        }
        if self.pairs.len() >= self.limits.pairs {
            return Err(TooManyPairs(self.limits.pairs));
        }
        let id = PairId(self.next);
        self.next += 1;
        for (side, token) in tokens.into_iter().enumerate() {
            self.tokens.insert(token, (id, side));
        }
        let pair = Pair { tokens, addresses: [None; 2], last: now, allowance: self.limits.burst };
        self.pairs.insert(id, pair);
        Ok(id)
    }

    /// Forgets a pair, if it still exists.
    pub fn close(&mut self, id: PairId) {
        let Some(pair) = self.pairs.remove(&id) else { return };
        for token in pair.tokens {
            self.tokens.remove(&token);
        }
        for address in pair.addresses.into_iter().flatten() {
            self.addresses.remove(&address);
        }
    }

    /// Forgets the pairs that were silent for too long.
    pub fn expire(&mut self, now: Duration) {
        let idle = self.limits.idle;
        let silent = |pair: &Pair| now.saturating_sub(pair.last) >= idle;
        let expired: Vec<PairId> =
            self.pairs.iter().filter(|(_, pair)| silent(pair)).map(|(id, _)| *id).collect();
        expired.into_iter().for_each(|id| self.close(id));
    }

    /// The number of pairs.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether the relay has no pairs.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// Decides what to do with a datagram from an address.
    pub fn handle(&mut self, now: Duration, from: SocketAddr, datagram: &[u8]) -> DatagramAction {
        if let Some(token) = announced(datagram) {
            return self.announce(now, from, &token);
        }
        let Some((id, side)) = self.addresses.get(&from) else { return DatagramAction::Drop };
        let pair = self.pairs.get_mut(id).expect("an address belongs to a pair");
        let Some(to) = pair.addresses[1 - side] else { return DatagramAction::Drop };
        let since = now.saturating_sub(pair.last).as_secs_f64();
        pair.last = pair.last.max(now);
        pair.allowance = self.limits.burst.min(pair.allowance + since * self.limits.bytes_per_s);
        let bytes = datagram.len() as f64;
        if pair.allowance < bytes {
            return DatagramAction::Drop;
        }
        pair.allowance -= bytes;
        DatagramAction::Forward(to)
    }

    fn announce(&mut self, now: Duration, from: SocketAddr, token: &Token) -> DatagramAction {
        let Some(&(id, side)) = self.tokens.get(token) else { return DatagramAction::Drop };
        // A socket is of one pair: the address of another cannot be taken over.
        if self.addresses.get(&from).is_some_and(|owner| *owner != (id, side)) {
            return DatagramAction::Drop;
        }
        let pair = self.pairs.get_mut(&id).expect("a token belongs to a pair");
        if let Some(before) = pair.addresses[side].replace(from) {
            self.addresses.remove(&before);
        }
        pair.last = pair.last.max(now);
        self.addresses.insert(from, (id, side));
        DatagramAction::Seen { pair: id, side }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::relay::announcement;

    fn at(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn pairs(limits: Limits) -> Pairs {
        Pairs::new(limits)
    }

    const START: Duration = Duration::ZERO;
    const PACKET: [u8; 100] = [1; 100];

    #[test]
    fn packets_go_to_the_other_peer_once_both_have_announced_themselves() {
        let mut pairs = pairs(Limits::default());
        let id = pairs.open(START, [[1; 16], [2; 16]]).unwrap();
        assert_eq!(pairs.handle(START, at(1), &PACKET), DatagramAction::Drop);
        assert_eq!(
            pairs.handle(START, at(1), &announcement(&[1; 16])),
            DatagramAction::Seen { pair: id, side: 0 }
        );
        assert_eq!(pairs.handle(START, at(1), &PACKET), DatagramAction::Drop);
        assert_eq!(
            pairs.handle(START, at(2), &announcement(&[2; 16])),
            DatagramAction::Seen { pair: id, side: 1 }
        );
        assert_eq!(pairs.handle(START, at(1), &PACKET), DatagramAction::Forward(at(2)));
        assert_eq!(pairs.handle(START, at(2), &PACKET), DatagramAction::Forward(at(1)));
        assert_eq!(pairs.handle(START, at(3), &PACKET), DatagramAction::Drop);
        assert_eq!(pairs.handle(START, at(3), &announcement(&[3; 16])), DatagramAction::Drop);

        // The second peer's translator gives it another port.
        assert_eq!(
            pairs.handle(START, at(4), &announcement(&[2; 16])),
            DatagramAction::Seen { pair: id, side: 1 }
        );
        assert_eq!(pairs.handle(START, at(1), &PACKET), DatagramAction::Forward(at(4)));
        assert_eq!(pairs.handle(START, at(2), &PACKET), DatagramAction::Drop);

        pairs.close(id);
        assert_eq!(pairs.handle(START, at(1), &PACKET), DatagramAction::Drop);
        assert_eq!(pairs.handle(START, at(1), &announcement(&[1; 16])), DatagramAction::Drop);
    }

    #[test]
    fn an_address_of_another_pair_cannot_be_taken_over() {
        let mut pairs = pairs(Limits::default());
        pairs.open(START, [[1; 16], [2; 16]]).unwrap();
        pairs.open(START, [[3; 16], [4; 16]]).unwrap();
        pairs.handle(START, at(1), &announcement(&[1; 16]));
        assert_eq!(pairs.handle(START, at(1), &announcement(&[3; 16])), DatagramAction::Drop);
        assert_eq!(pairs.handle(START, at(1), &announcement(&[2; 16])), DatagramAction::Drop);
    }

    #[test]
    fn pairs_and_their_bytes_are_bounded() {
        let limits = Limits { pairs: 1, bytes_per_s: 1000.0, burst: 250.0, idle: Duration::from_secs(10) };
        let mut pairs = pairs(limits);
        pairs.open(START, [[1; 16], [2; 16]]).unwrap();
        assert_eq!(pairs.open(START, [[3; 16], [4; 16]]), Err(TooManyPairs(1)));
        pairs.handle(START, at(1), &announcement(&[1; 16]));
        pairs.handle(START, at(2), &announcement(&[2; 16]));
        let verdicts = [(); 3].map(|()| pairs.handle(START, at(1), &PACKET));
        assert_eq!(
            verdicts,
            [DatagramAction::Forward(at(2)), DatagramAction::Forward(at(2)), DatagramAction::Drop]
        );
        let later = START + Duration::from_millis(100);
        assert_eq!(pairs.handle(later, at(1), &PACKET), DatagramAction::Forward(at(2)));

        let silent = later + Duration::from_secs(10);
        assert!(pairs.open(silent, [[3; 16], [4; 16]]).is_ok());
        assert_eq!(pairs.handle(silent, at(1), &PACKET), DatagramAction::Drop);
    }

    proptest! {
        /// Whatever happens, a packet goes to the other peer of its sender's pair, and the tables hold nothing else.
        #[test]
        fn packets_never_leave_their_pair(acts in proptest::collection::vec((0_u8..4, 0_u8..6, 1_u16..8), 0..200)) {
            let limits = Limits { pairs: 2, idle: Duration::from_secs(5), ..Limits::default() };
            let mut pairs = pairs(limits);
            let mut now = START;
            let mut open = Vec::new();
            let mut owner: HashMap<SocketAddr, Token> = HashMap::new();
            for (act, token, port) in acts {
                now += Duration::from_millis(300);
                match act {
                    0 => {
                        let (first, second) = (token / 2 * 2, token / 2 * 2 + 1);
                        if !pairs.tokens.contains_key(&[first; 16]) {
                            open.extend(pairs.open(now, [[first; 16], [second; 16]]));
                        }
                    }
                    1 => if let Some(id) = open.pop() { pairs.close(id) },
                    2 => if matches!(pairs.handle(now, at(port), &announcement(&[token; 16])), DatagramAction::Seen { .. }) {
                        owner.retain(|_, held| *held != [token; 16]);
                        owner.insert(at(port), [token; 16]);
                    },
                    _ => if let DatagramAction::Forward(to) = pairs.handle(now, at(port), &PACKET) {
                        prop_assert_eq!(owner[&to][0] ^ 1, owner[&at(port)][0]);
                    },
                }
                prop_assert!(pairs.len() <= 2 && pairs.tokens.len() == 2 * pairs.len());
                prop_assert!(pairs.addresses.len() <= 2 * pairs.len());
            }
        }
    }
}
