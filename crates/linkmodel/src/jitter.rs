//! How the delays of packets vary, and which packets are overtaken.

use crate::random::Stream;

/// How the delays of packets differ from the delay asked for.
///
/// Each packet's is drawn by itself, but packets keep their order: one that would overtake another arrives with it. So
/// where packets follow each other faster than the jitter is large, the slow ones hold up those behind them, and the mean
/// delay rises, as it does on a path whose delay varies but whose packets stand in line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// Its size, in ns; what that means depends on the law.
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
    /// Three parts of a Pareto law of index 3, cut off at ten times its least value, and one of a normal law, which is
    /// how netem mixes them: most packets come a little early and a few very late. The spread is its standard deviation.
    ParetoNormal,
}

/// No law goes further than this many spreads from the mean. One draw in a million million would.
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
    /// How many packets overtake it.
    pub distance: u32,
    /// How long it waits for them at most, in ns: after the last packet of a flow no other may come.
    pub within_ns: i64,
}
