//! The script of an application: the bytes that it writes and reads, its end, and the bytes of its stream.

use std::time::Duration;

const PERIOD: usize = 65_521;

/// How a script ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// In success.
    Finish,
    /// In failure.
    Abort,
    /// The application continues until the simulation ends.
    Never,
}

/// The script of an application.
#[derive(Clone, Debug)]
pub struct Script {
    /// Bytes to write.
    pub total: u64,
    /// The most bytes per write, and the pause after each.
    pub write: (usize, Duration),
    /// The most bytes per read, and the pause after each.
    pub read: (usize, Duration),
    /// The application's action after the last byte.
    pub ending: Ending,
    /// The instant at which the script begins.
    pub starts: Duration,
}

impl Script {
    /// Writes as fast as it can, then finishes.
    pub fn bulk(total: u64) -> Self {
        let at_once = (1 << 20, Duration::ZERO);
        Self { total, write: at_once, read: at_once, ending: Ending::Finish, starts: Duration::ZERO }
    }

    /// Writes nothing, and finishes at once.
    pub fn silent() -> Self {
        Self::bulk(0)
    }

    /// Begins later.
    pub fn from(mut self, starts: Duration) -> Self {
        self.starts = starts;
        self
    }
}

/// The bytes of all streams: each begins somewhere in a pattern that repeats after a prime number of bytes.
#[derive(Debug)]
pub(crate) struct Pattern(Vec<u8>);

impl Pattern {
    pub(crate) fn new() -> Self {
        let byte = |i: usize| (((i % PERIOD) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        Self((0..3 * PERIOD).map(byte).collect())
    }

    /// Bytes of a stream from a position on: this many, or as many as the pattern has before it repeats.
    pub(crate) fn bytes(&self, stream: u64, position: u64, most: u64) -> &[u8] {
        let from = ((stream % PERIOD as u64 + position % PERIOD as u64) % PERIOD as u64) as usize;
        &self.0[from..from + most.min(PERIOD as u64) as usize]
    }
}
