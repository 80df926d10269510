//! The offset between the clocks of two machines, from the times that messages take there and back (as NTP does).

/// Number of probes. Of all, the one that was fastest there and back bounds the error best.
const PROBES: usize = 20;
/// The most probes: on busy machines few of them pass quickly.
const PROBES_AT_MOST: usize = 200;
/// No load starts with a larger bound: instants of different agents would not be one schedule.
pub(crate) const BOUND_AT_MOST_NS: i64 = 5_000_000;

/// One probe: when it left, the other clock on the way, and when it was back, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Probe {
    pub(crate) left_ns: i64,
    pub(crate) there_ns: i64,
    pub(crate) back_ns: i64,
}

/// How far the other clock is ahead of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offset {
    pub(crate) ns: i64,
    /// The offset is at most this far from the true one, however unequal the ways there and back.
    pub(crate) bound_ns: i64,
}

impl Offset {
    /// The offset by the fastest of the probes; `None` without a probe.
    pub(crate) fn of(probes: &[Probe]) -> Option<Self> {
        let fastest = probes.iter().min_by_key(|probe| probe.back_ns - probe.left_ns)?;
        let there_and_back_ns = fastest.back_ns - fastest.left_ns;
        Some(Self {
            ns: fastest.there_ns - fastest.left_ns - there_and_back_ns / 2,
            bound_ns: there_and_back_ns / 2 + 1,
        })
    }

    /// Whether these probes suffice: the offset is known well enough, or more probes would hardly help.
    pub(crate) fn is_settled(probes: &[Probe]) -> bool {
        let is_known = Self::of(probes).is_some_and(|offset| offset.bound_ns <= BOUND_AT_MOST_NS);
        probes.len() >= if is_known { PROBES } else { PROBES_AT_MOST }
    }

    /// An instant of this clock by the other one.
    pub(crate) fn there_ns(self, here_ns: i64) -> i64 {
        here_ns.saturating_add(self.ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However long the ways are, and however unequal.
        #[test]
        fn the_true_offset_is_within_the_bound(
            truth in -1i64 << 60..1i64 << 60,
            ways in prop::collection::vec((1i64..10_000_000, 1i64..10_000_000), 1..20),
        ) {
            let probe = |(i, &(there, back)): (usize, &(i64, i64))| {
                let left_ns = i as i64 * 30_000_000;
                Probe { left_ns, there_ns: left_ns + there + truth, back_ns: left_ns + there + back }
            };
            let probes: Vec<Probe> = ways.iter().enumerate().map(probe).collect();
            let offset = Offset::of(&probes).unwrap();
            prop_assert!((offset.ns - truth).abs() <= offset.bound_ns, "{offset:?}");
            prop_assert!(offset.bound_ns <= ways.iter().map(|way| way.0 + way.1).min().unwrap() / 2 + 1);
        }
    }
}
