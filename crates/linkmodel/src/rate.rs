//! The speed of a link: when the last bit of each packet has left, exact to the nanosecond over any length of time.

/// A stretch of time in a trace of rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The rate while it lasts, in bits/s; 0 is an outage.
    pub bits_per_s: u64,
    /// The duration of the piece, in ns.
    pub duration_ns: i64,
}

/// The rate at which a link sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Rate {
    /// Sending a packet takes no time, so none ever waits.
    #[default]
    Unlimited,
    /// Constant.
    Constant {
        /// In bits/s.
        bits_per_s: u64,
    },
    /// Varies with time; the pieces repeat.
    Trace(Vec<Piece>),
}

impl Rate {
    /// The mean over time, in bits/s; `None` if it is unlimited.
    pub fn mean_bits_per_s(&self) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Constant { bits_per_s } => Some(*bits_per_s as f64),
            Self::Trace(pieces) => {
                let duration_ns: f64 = pieces.iter().map(|piece| piece.duration_ns as f64).sum();
                let work: f64 =
                    pieces.iter().map(|piece| piece.bits_per_s as f64 * piece.duration_ns as f64).sum();
                Some(work / duration_ns)
            }
        }
    }

    /// The highest rate, in bits/s; `None` if it is unlimited.
    pub fn peak_bits_per_s(&self) -> Option<u64> {
        match self {
            Self::Unlimited => None,
            Self::Constant { bits_per_s } => Some(*bits_per_s),
            Self::Trace(pieces) => pieces.iter().map(|piece| piece.bits_per_s).max(),
        }
    }
}

/// Sends one packet after the other.
///
/// Work is counted in bits × 10⁹, so that a rate in bits/s times a time in ns is work, without a fraction. An instant is
/// rounded down to the nanosecond, and the remaining work is carried into the next packet: no drift.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    pace: Pace,
    /// When the last bit of the last packet leaves.
    free_ns: i64,
    /// Work of the last packet that is left at `free_ns`, less than that of a nanosecond.
    owed: u128,
}

#[derive(Clone, Debug)]
enum Pace {
    Constant { bits_per_s: u64 },
    Trace(Cycle),
}

/// A trace that repeats, with sums over its pieces.
#[derive(Clone, Debug)]
struct Cycle {
    start_ns: i64,
    /// The end of each piece, in ns since the start of the cycle, and its rate.
    ends: Vec<(i64, u64)>,
    length_ns: i64,
    work: u128,
}

impl Sender {
    /// A sender that is free at `start_ns`, when a trace begins; `None` if the rate is unlimited.
    pub(crate) fn new(rate: &Rate, start_ns: i64) -> Option<Self> {
        let pace = match rate {
            Rate::Unlimited => return None,
            Rate::Constant { bits_per_s } => Pace::Constant { bits_per_s: *bits_per_s },
            Rate::Trace(pieces) => Pace::Trace(Cycle::new(pieces, start_ns)),
        };
        Some(Self { pace, free_ns: start_ns, owed: 0 })
    }

    /// The instant at which the sender can begin the next packet.
    pub(crate) fn free_ns(&self) -> i64 {
        self.free_ns
    }

    /// Sends a packet from `start_ns` on and returns when its last bit has left.
    pub(crate) fn send(&mut self, start_ns: i64, bytes: u64) -> i64 {
        if start_ns > self.free_ns {
            (self.free_ns, self.owed) = (start_ns, 0);
        }
        let work = u128::from(bytes) * 8 * 1_000_000_000 + self.owed;
        (self.free_ns, self.owed) = match &self.pace {
            Pace::Constant { bits_per_s } => spend(self.free_ns, work, *bits_per_s),
            Pace::Trace(cycle) => cycle.send(self.free_ns, work),
        };
        self.free_ns
    }
}

/// When work ends that begins at an instant at a constant rate, and the work that is left then.
fn spend(from_ns: i64, work: u128, bits_per_s: u64) -> (i64, u128) {
    let rate = u128::from(bits_per_s);
    (from_ns.saturating_add(i64::try_from(work / rate).unwrap_or(i64::MAX)), work % rate)
}

impl Cycle {
    fn new(pieces: &[Piece], start_ns: i64) -> Self {
        let mut length_ns = 0;
        let ends = pieces
            .iter()
            .map(|piece| {
                length_ns += piece.duration_ns;
                (length_ns, piece.bits_per_s)
            })
            .collect();
        let work = pieces.iter().map(|piece| u128::from(piece.bits_per_s) * piece.duration_ns as u128).sum();
        Self { start_ns, ends, length_ns, work }
    }

    fn send(&self, mut at_ns: i64, mut work: u128) -> (i64, u128) {
        let cycles = (work / self.work) as i64;
        at_ns = at_ns.saturating_add(cycles.saturating_mul(self.length_ns));
        work %= self.work;
        let mut offset_ns = (at_ns - self.start_ns).rem_euclid(self.length_ns);
        let mut index = self.ends.partition_point(|(end_ns, _)| *end_ns <= offset_ns);
        while work > 0 {
            let (end_ns, bits_per_s) = self.ends[index];
            let until_end = u128::from(bits_per_s) * (end_ns - offset_ns) as u128;
            if work < until_end {
                return spend(at_ns, work, bits_per_s);
            }
            work -= until_end;
            at_ns = at_ns.saturating_add(end_ns - offset_ns);
            index = (index + 1) % self.ends.len();
            offset_ns = end_ns % self.length_ns;
        }
        (at_ns, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    #[test]
    fn packets_in_a_row_end_where_their_bits_do() {
        // 3 Mbit/s: 1,500 bytes take 4 ms; 1,000 bytes take 2,666,666.67 ns.
        let mut sender = Sender::new(&Rate::Constant { bits_per_s: 3_000_000 }, 0).unwrap();
        assert_eq!(sender.send(0, 1500), 4 * MS);
        let ends: Vec<i64> = (0..3).map(|_| sender.send(0, 1000)).collect();
        assert_eq!(ends, [6_666_666, 9_333_333, 12 * MS]);
        // After a pause it begins when the packet arrives, not before.
        assert_eq!(sender.send(20 * MS, 1500), 24 * MS);
    }

    #[test]
    fn a_day_of_packets_does_not_drift() {
        let rate = 9_999_991; // a prime: no packet ends on a whole nanosecond
        let mut sender = Sender::new(&Rate::Constant { bits_per_s: rate }, 0).unwrap();
        let packets = 1_000_000_u64;
        let end_ns = (0..packets).map(|_| sender.send(0, 1514)).last().unwrap();
        assert_eq!(end_ns as u128, u128::from(packets) * 1514 * 8 * 1_000_000_000 / u128::from(rate));
    }

    #[test]
    fn an_outage_stops_a_packet_in_its_middle() {
        let pieces = [(8_000_000, 1), (0, 10), (4_000_000, 5)]
            .map(|(bits_per_s, ms)| Piece { bits_per_s, duration_ns: ms * MS });
        let mut sender = Sender::new(&Rate::Trace(pieces.to_vec()), 0).unwrap();
        // 8,000 bits in the first ms, none for 10 ms, 4,000 bits in the next.
        assert_eq!(sender.send(0, 1500), 12 * MS);
        // What is left of the last piece: 4 ms of 4 Mbit/s = 2,000 bytes; then the first piece comes again.
        assert_eq!(sender.send(0, 2000), 16 * MS);
        assert_eq!(sender.send(0, 1000), 17 * MS);
        // An instant inside of an outage, many cycles later.
        assert_eq!(sender.send(1_600 * MS + 5 * MS, 500), 1_600 * MS + 12 * MS);
    }

    proptest! {
        /// A trace delivers the integral of its rate, to within one nanosecond's worth, however packets are divided.
        #[test]
        fn a_trace_sends_what_its_rate_adds_up_to(
            pieces in prop::collection::vec((0_u64..100_000_000, 1_i64..50 * MS), 1..6),
            sizes in prop::collection::vec(20_u64..20_000, 1..50),
        ) {
            let pieces: Vec<Piece> =
                pieces.into_iter().map(|(bits_per_s, duration_ns)| Piece { bits_per_s, duration_ns }).collect();
            prop_assume!(pieces.iter().any(|piece| piece.bits_per_s > 1_000_000));
            let mut sender = Sender::new(&Rate::Trace(pieces.clone()), 0).unwrap();
            let end_ns = sizes.iter().map(|bytes| sender.send(0, *bytes)).last().unwrap();
            let mut sent = 0_u128;
            let (mut at_ns, mut last) = (0, 0);
            'time: loop {
                for piece in &pieces {
                    let until_ns = (at_ns + piece.duration_ns).min(end_ns);
                    sent += u128::from(piece.bits_per_s) * (until_ns - at_ns) as u128;
                    if until_ns > at_ns { last = piece.bits_per_s; }
                    at_ns = until_ns;
                    if at_ns == end_ns { break 'time; }
                }
            }
            let asked = sizes.iter().map(|bytes| u128::from(*bytes) * 8_000_000_000).sum::<u128>();
            let highest = pieces.iter().map(|piece| piece.bits_per_s).max().unwrap().max(last);
            prop_assert!(sent <= asked && asked - sent <= u128::from(highest), "{sent} of {asked}");
        }
    }
}
