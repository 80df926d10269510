//! Limits how often a source is read: at the configured interval, or more rarely where its cost demands it.

/// The pace of a source that may use a share of a core.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// The share of a core that sampling may use.
    share: f64,
    /// The smoothed cost of one reading.
    cost_ns: f64,
    /// The tick of the next reading.
    due: u64,
    /// In ticks.
    every: u64,
    least_every: u64,
}

impl Pace {
    /// A source that may use this share of a core, read at most every this many ticks.
    pub(crate) fn new(share: f64, least_every: u64) -> Self {
        Self { share, cost_ns: 0.0, due: 0, every: least_every, least_every }
    }

    pub(crate) fn is_due(&self, tick: u64) -> bool {
        tick >= self.due
    }

    /// Records the cost of a reading, and sets when the next one is due.
    pub(crate) fn took(&mut self, tick: u64, cost_ns: f64, tick_ns: f64) {
        // A few readings are expensive, because the kernel had other work; they must not slow the pace.
        let cost_ns = if self.cost_ns == 0.0 { cost_ns } else { cost_ns.min(4.0 * self.cost_ns) };
        self.cost_ns = if self.cost_ns == 0.0 { cost_ns } else { 0.8 * self.cost_ns + 0.2 * cost_ns };
        self.every = ((self.cost_ns / (self.share * tick_ns)).ceil() as u64).max(self.least_every);
        self.due = tick + self.every;
    }

    /// The current interval between readings, in ticks.
    pub(crate) fn every(&self) -> u64 {
        self.every
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of a core that a source uses over a thousand ticks of 10 ms.
    fn cost_share(mut pace: Pace, cost_ns: f64) -> f64 {
        let mut spent_ns = 0.0;
        for tick in 0..1000 {
            if pace.is_due(tick) {
                spent_ns += cost_ns;
                pace.took(tick, cost_ns, 1e7);
            }
        }
        spent_ns / (1000.0 * 1e7)
    }

    #[test]
    fn what_is_cheap_is_read_each_tick_and_what_is_dear_stays_within_its_share() {
        assert_eq!(cost_share(Pace::new(0.001, 1), 1000.0), 1000.0 / 1e7);
        for cost_ns in [11_000.0, 123_456.0, 2e6] {
            let share = cost_share(Pace::new(0.001, 1), cost_ns);
            // Only the first reading shows the cost, so it may exceed a limit of a few thousandths once.
            assert!(share <= 0.001 + cost_ns / 1e10, "{share} at {cost_ns} ns");
            assert!(share >= 0.0004, "{share} at {cost_ns} ns");
        }
    }
}
