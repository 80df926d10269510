//! The instants at which requests of an open stream are due, drawn from a seed.

use crate::law::Law;
use crate::profile::{Passing, Profile, Spacing};
use kendall_stats::random::{Purpose, Rng, stream};

/// The instants of an open stream, in seconds since its start. Endless except for a trace and for a profile that
/// ends.
#[derive(Debug)]
pub struct Instants<'a> {
    source: Source<'a>,
    now_s: f64,
}

#[derive(Debug)]
enum Source<'a> {
    Law(&'a Law, Rng),
    Trace(std::slice::Iter<'a, f64>),
    Varying(Passing, Spacing, Rng),
}

const UNIT_MEAN: Law = Law::Exponential { mean_s: 1.0 };

impl<'a> Instants<'a> {
    /// The instants of independent gaps.
    pub(crate) fn of_gaps(gap: &'a Law, seed: u64) -> Self {
        Self { source: Source::Law(gap, stream(seed, Purpose::Arrivals, 0)), now_s: 0.0 }
    }

    /// The instants of a recorded trace.
    pub(crate) fn of_trace(instants_s: &'a [f64]) -> Self {
        Self { source: Source::Trace(instants_s.iter()), now_s: 0.0 }
    }

    /// The instants of a rate that changes over time.
    pub(crate) fn of_profile(profile: &Profile, seed: u64) -> Self {
        let random = stream(seed, Purpose::Arrivals, 0);
        Self { source: Source::Varying(profile.passing(), profile.spacing, random), now_s: 0.0 }
    }

    /// Fills the slice with the next instants and returns how many there are: fewer than its length at the end of a
    /// trace.
    pub fn fill(&mut self, instants_s: &mut [f64]) -> usize {
        if let Source::Law(gap, rng) = &mut self.source {
            gap.fill(rng, instants_s);
            for instant_s in &mut *instants_s {
                self.now_s += *instant_s;
                *instant_s = self.now_s;
            }
            return instants_s.len();
        }
        instants_s.iter_mut().zip(self).map(|(place, instant_s)| *place = instant_s).count()
    }
}

impl Iterator for Instants<'_> {
    type Item = f64;

    fn next(&mut self) -> Option<f64> {
        self.now_s = match &mut self.source {
            Source::Law(gap, rng) => self.now_s + gap.sample(rng),
            Source::Trace(instants_s) => *instants_s.next()?,
            Source::Varying(passing, Spacing::Poisson, rng) => passing.next_s(UNIT_MEAN.sample(rng))?,
            Source::Varying(passing, Spacing::Even, _) => passing.next_s(1.0)?,
        };
        Some(self.now_s)
    }
}
