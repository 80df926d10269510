//! The variation of the delays of packets, and the packets that are overtaken.

use crate::random::Stream;

/// The difference of the delays of packets from the set delay.
///
/// It is drawn independently for each packet, but packets keep their order: one that would overtake another arrives with
/// it. So if packets follow each other faster than the jitter is large, the slow ones delay those behind them, and the
/// mean delay rises, as on a path whose delay varies but which keeps the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// The jitter's size, in ns; the meaning depends on the law.
    pub spread_ns: i64,
    /// The law of the differences.
    pub law: Law,
}

/// A law of mean 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Law {
    /// Evenly from −spread to +spread.
    #[default]
    Uniform,
    /// Normal; the spread is its standard deviation.
    Normal,
    /// Three parts of a Pareto law of index 3, truncated at ten times its least value, and one of a normal law, which is
    /// how netem mixes them: most packets arrive a little early and a few very late. The spread is its standard
    /// deviation.
    ParetoNormal,
}

/// The largest deviation of a draw from the mean, in spreads. One draw in 10¹² would exceed it.
const FURTHEST: f64 = 16.0;

/// The Pareto law of index 3 on 1 to 10 has the density 3/(0.999 x⁴), so this mean and this standard deviation …
const CUT_MEAN: f64 = 1.5 * 0.99 / 0.999;
const CUT_DEVIATION: f64 = 0.702_182_759_825_221;
/// … and mixed with a normal law by 3 to 1 it has this one: √(0.75² + 0.25²).
const MIXED_DEVIATION: f64 = 0.790_569_415_042_094_8;

impl Jitter {
    /// The standard deviation of the delays of packets that are far apart, in ns.
    pub fn deviation_ns(&self) -> f64 {
        match self.law {
            Law::Uniform => self.spread_ns as f64 / 3.0_f64.sqrt(),
            Law::Normal | Law::ParetoNormal => self.spread_ns as f64,
        }
    }

    /// The most that it adds to a delay, in ns.
    pub(crate) fn furthest_ns(&self) -> i64 {
        match self.law {
            Law::Uniform => self.spread_ns,
            Law::Normal | Law::ParetoNormal => (self.spread_ns as f64 * FURTHEST) as i64,
        }
    }

    pub(crate) fn draw_ns(&self, stream: &mut Stream) -> i64 {
        if self.spread_ns == 0 {
            return 0;
        }
        let spreads = match self.law {
            Law::Uniform => 2.0 * stream.unit() - 1.0,
            Law::Normal => stream.normal(),
            Law::ParetoNormal => {
                let pareto = 1.0 / libm::cbrt(1.0 - 0.999 * stream.unit());
                (0.75 * (pareto - CUT_MEAN) / CUT_DEVIATION + 0.25 * stream.normal()) / MIXED_DEVIATION
            }
        };
        (spreads.clamp(-FURTHEST, FURTHEST) * self.spread_ns as f64).round() as i64
    }
}

/// Which packets are overtaken, and by how many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The probability that a packet is held back.
    pub share: f64,
    /// The number of packets that overtake it.
    pub distance: u32,
    /// The longest time that it waits for them, in ns: after the last packet of a flow no other may come.
    pub within_ns: i64,
}
