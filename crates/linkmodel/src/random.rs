//! Random numbers of a link: one stream for each condition of a packet, so that duplication does not change which packets
//! are lost.

use kendall_stats::random::{self, Rng};
use rand::RngExt as _;

/// The purpose of a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The loss of packets.
    Loss = 1,
    /// Which packets are damaged, and which of their bits.
    Corruption = 2,
    /// The duplication of packets.
    Duplication = 3,
    /// The difference of each delay from the set delay.
    Jitter = 4,
    /// The reordering of packets.
    Reordering = 5,
    /// The choice of the queue for a flow.
    Hashing = 6,
    /// The seed of a link in a row of links.
    Hop = 7,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Stream(Rng);

impl Stream {
    /// Opens the stream of a purpose.
    pub(crate) fn new(seed: u64, purpose: Purpose) -> Self {
        Self(random::seeded(derive(seed, purpose, 0)))
    }

    /// True with the given probability. Draws nothing for probabilities 0 and 1.
    pub(crate) fn happens(&mut self, share: f64) -> bool {
        share > 0.0 && self.unit() < share
    }

    /// A number from 0 up to, but not including, 1.
    pub(crate) fn unit(&mut self) -> f64 {
        random::unit(&mut self.0)
    }

    /// A whole number below the given one, which is not 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0.random_range(0..end)
    }

    /// A draw from the standard normal law, by Box and Muller (1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }
}

/// A seed for a part of a seeded whole, as unrelated to its neighbours as any two seeds.
pub(crate) fn derive(seed: u64, purpose: Purpose, index: u64) -> u64 {
    random::derive_numbered(seed, purpose as u64, index)
}
