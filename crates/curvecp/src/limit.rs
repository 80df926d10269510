//! How many Hellos a server answers and how many Initiates it opens: each costs Diffie-Hellman exchanges, and under a flood most
//! are forged or repeated.

use crate::hashing::KeyedHash;
use crate::refusals::Network;
use rand_core::CryptoRng;
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::time::Duration;

/// Networks are counted in this many groups, by a keyed hash.
const GROUPS: usize = 1024;
/// A group may use one of this many parts of the whole rate, so a flood from one network leaves the others theirs.
const PARTS: u32 = 4;

/// Admits packets of handshakes up to a rate, in constant memory.
#[derive(Clone, Debug)]
pub(crate) struct HandshakeLimiter {
    interval: Duration,
    burst: Duration,
    all: Duration,
    groups: Box<[Duration; GROUPS]>,
    hash: KeyedHash,
}

impl HandshakeLimiter {
    /// `rate_per_s` packets per second in the long run, `burst` at once.
    pub(crate) fn new(rate_per_s: u32, burst: u32, rng: &mut (impl CryptoRng + ?Sized)) -> Self {
        let interval = Duration::from_secs(1) / rate_per_s.max(1);
        let groups = Box::new([Duration::ZERO; GROUPS]);
        Self {
            interval,
            burst: interval * burst.max(1),
            all: Duration::ZERO,
            groups,
            hash: KeyedHash::new(rng),
        }
    }

    /// Whether to spend a Diffie-Hellman exchange on a packet from this address now.
    ///
    /// Two token buckets in the form of the generic cell rate algorithm (ITU-T I.371): an instant that each admission
    /// moves on by one interval, and that may be at most one burst ahead of now.
    pub(crate) fn admit(&mut self, now: Duration, from: SocketAddr) -> bool {
        let group = &mut self.groups[self.hash.hash_one(Network::of(from.ip())) as usize % GROUPS];
        let (of_group, of_all) =
            ((*group).max(now) + self.interval * PARTS, self.all.max(now) + self.interval);
        let admitted = of_group <= now + self.burst.max(self.interval * PARTS) && of_all <= now + self.burst;
        if admitted {
            (*group, self.all) = (of_group, of_all);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::StdRng};

    fn address(i: u32) -> SocketAddr {
        SocketAddr::from((i.to_be_bytes(), 7))
    }

    /// Admitted Hellos of 100,000 in one second, the i-th from `source(i)`.
    fn admitted(mut source: impl FnMut(u32) -> SocketAddr) -> (u32, HandshakeLimiter) {
        let mut limiter = HandshakeLimiter::new(1000, 100, &mut StdRng::seed_from_u64(1));
        let flood = (0..100_000).filter(|&i| limiter.admit(Duration::from_micros(10) * i, source(i))).count();
        (u32::try_from(flood).unwrap(), limiter)
    }

    #[test]
    fn a_flood_from_many_networks_is_held_to_the_rate_and_one_burst() {
        let (count, _) = admitted(|i| address(i << 8));
        assert!((1000..=1100).contains(&count), "{count}");
    }

    #[test]
    fn a_flood_from_one_network_leaves_the_rest_to_others() {
        let (count, mut limiter) = admitted(|i| address(i % 256));
        assert!((250..=275).contains(&count), "{count}");
        assert!(limiter.admit(Duration::from_secs(1), address(0x0a00_0000)));
    }
}
