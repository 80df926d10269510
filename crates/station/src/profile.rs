//! A rate of arrivals that changes over time: a day's profile, a burst, a ramp.
//!
//! A Poisson stream of varying rate λ(t) is drawn exactly, by inversion: its instants are those at which Λ(t) = ∫λ
//! reaches the instants of a Poisson stream of rate 1 (Çınlar 1975, section 4.7). An even stream has its instants where
//! Λ reaches 1, 2, 3, …. The rate is piecewise constant or linear, so Λ is piecewise linear or quadratic and its
//! inverse is in closed form.

use serde::{Deserialize, Serialize};

/// How a rate changes over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Instants since the start, in seconds, ascending from 0, and the rate there, in 1/s. With linear interpolation,
    /// two points at one instant are a jump.
    pub points: Vec<(f64, f64)>,
    /// The rate between two points.
    #[serde(default)]
    pub between: Between,
    /// The period, in seconds, after which the profile restarts. Without it, the rate of the last point holds for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_s: Option<f64>,
    /// How arrivals are distributed, given the rate.
    #[serde(default)]
    pub spacing: Spacing,
}

/// How arrivals are distributed, given the rate of a [`Profile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spacing {
    /// Random and independent: a Poisson stream.
    #[default]
    Poisson,
    /// Even: the n-th arrives when the expected number is n. At a constant rate, the gaps are constant.
    Even,
}

/// The rate between two points of a [`Profile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Between {
    /// The rate of the earlier point.
    #[default]
    Steps,
    /// Interpolated linearly between the two points; in a period, also from the last point back to the first.
    Lines,
}

/// The reason why a profile is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ProfileError {
    #[error("the profile begins at {0} s; its first point must be at 0 s")]
    Start(f64),
    #[error("the profile needs at least one point")]
    Empty,
    #[error("the point at {0} s is not later than the one before it")]
    NotAscending(f64),
    #[error("the rate at {at_s} s is {rate_per_s}; it must be zero or more, and finite")]
    Rate { at_s: f64, rate_per_s: f64 },
    #[error(
        "the period of {period_s} s must be finite and positive, and must not end before the last point at {last_s} s"
    )]
    Period { period_s: f64, last_s: f64 },
    #[error("the rate is zero all the time")]
    Nobody,
}

/// A stretch on which the rate is linear.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from_s: f64,
    length_s: f64,
    rate_per_s: f64,
    /// By how much the rate grows, in 1/s².
    slope: f64,
    /// Λ where it begins.
    before: f64,
}

impl Stretch {
    /// ∫λ over the first `time_s` of it.
    fn expected(&self, time_s: f64) -> f64 {
        // The mean of two rates, which does not cancel where the rate falls.
        let to_per_s = (self.rate_per_s + self.slope * time_s).max(0.0);
        (self.rate_per_s + to_per_s) / 2.0 * time_s
    }

    /// The time after which ∫λ is `expected`.
    fn inverse_s(&self, expected: f64) -> f64 {
        let root = (self.rate_per_s * self.rate_per_s + 2.0 * self.slope * expected).max(0.0).sqrt();
        let sum = self.rate_per_s + root;
        if sum > 0.0 { (2.0 * expected / sum).min(self.length_s) } else { self.length_s }
    }
}

impl Profile {
    /// Checks that the profile is valid.
    ///
    /// # Errors
    /// Fails on points out of order, on rates that are negative or not finite, on a period that ends too early, and on
    /// a rate that is always zero.
    pub fn validate(&self) -> Result<(), ProfileError> {
        let first = self.points.first().ok_or(ProfileError::Empty)?;
        if first.0 != 0.0 {
            return Err(ProfileError::Start(first.0));
        }
        for pair in self.points.windows(2) {
            let later = pair[1].0 > pair[0].0 || (self.between == Between::Lines && pair[1].0 == pair[0].0);
            if !(later && pair[1].0.is_finite()) {
                return Err(ProfileError::NotAscending(pair[1].0));
            }
        }
        let sound = |rate_per_s: f64| rate_per_s >= 0.0 && rate_per_s.is_finite();
        if let Some(&(at_s, rate_per_s)) = self.points.iter().find(|point| !sound(point.1)) {
            return Err(ProfileError::Rate { at_s, rate_per_s });
        }
        let last_s = self.last().0;
        match self.period_s {
            Some(period_s) if !(period_s >= last_s && period_s > 0.0 && period_s.is_finite()) => {
                Err(ProfileError::Period { period_s, last_s })
            }
            _ if self.once() + self.rest_per_s() <= 0.0 => Err(ProfileError::Nobody),
            _ => Ok(()),
        }
    }

    /// The rate at an instant, in 1/s.
    pub fn rate_per_s(&self, at_s: f64) -> f64 {
        let at_s = self.period_s.map_or(at_s, |period_s| at_s % period_s);
        match self.stretches().iter().rfind(|stretch| stretch.from_s <= at_s) {
            Some(stretch) if at_s < stretch.from_s + stretch.length_s => {
                (stretch.rate_per_s + stretch.slope * (at_s - stretch.from_s)).max(0.0)
            }
            _ => self.rest_per_s(),
        }
    }

    /// The expected number of arrivals from the start until an instant, Λ(t).
    pub fn expected(&self, until_s: f64) -> f64 {
        let (cycles, rest_s) = match self.period_s {
            Some(period_s) => ((until_s / period_s).floor(), until_s % period_s),
            None => (0.0, until_s),
        };
        let within =
            |stretch: &Stretch| stretch.expected((rest_s - stretch.from_s).clamp(0.0, stretch.length_s));
        let parts: f64 = self.stretches().iter().map(within).sum();
        let after_s = if self.period_s.is_none() { (rest_s - self.last().0).max(0.0) } else { 0.0 };
        let whole = if cycles > 0.0 { cycles * self.once() } else { 0.0 };
        whole + parts + after_s * self.rest_per_s()
    }

    /// The mean long-run rate, in 1/s: over a period, or that of the last point; where that is zero, the mean until the
    /// last point.
    pub fn mean_rate_per_s(&self) -> f64 {
        match self.period_s {
            Some(period_s) => self.once() / period_s,
            None if self.last().1 > 0.0 => self.last().1,
            None => self.once() / self.last().0,
        }
    }

    /// The time, in seconds, after which there are no more arrivals; `None` for an endless profile.
    pub fn ends_s(&self) -> Option<f64> {
        let over = self.period_s.is_none() && self.last().1 <= 0.0;
        over.then(|| self.last().0)
    }

    /// Whether the profile repeats for ever, so that averages over its periods settle.
    pub fn is_periodic(&self) -> bool {
        self.period_s.is_some()
    }

    /// Returns the profile with every rate multiplied by a factor.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self {
            points: self.points.iter().map(|&(at_s, rate)| (at_s, rate * factor)).collect(),
            ..self.clone()
        }
    }

    /// The last point; (0, 0) for an empty profile.
    fn last(&self) -> (f64, f64) {
        self.points.last().copied().unwrap_or((0.0, 0.0))
    }

    /// The rate after the last stretch.
    fn rest_per_s(&self) -> f64 {
        if self.period_s.is_some() { 0.0 } else { self.last().1 }
    }

    /// Λ over all stretches.
    fn once(&self) -> f64 {
        self.stretches().last().map_or(0.0, |last| last.before + last.expected(last.length_s))
    }

    fn stretches(&self) -> Vec<Stretch> {
        let first_rate = self.points.first().map_or(0.0, |point| point.1);
        let end = self.period_s.map(|period_s| (period_s, first_rate));
        let ends = self.points.iter().copied().skip(1).chain(end);
        let mut before = 0.0;
        let stretch = |(from, to): (&(f64, f64), (f64, f64))| {
            let length_s = to.0 - from.0;
            let slope = match self.between {
                Between::Lines if length_s > 0.0 => (to.1 - from.1) / length_s,
                _ => 0.0,
            };
            let stretch = Stretch { from_s: from.0, length_s, rate_per_s: from.1, slope, before };
            before += stretch.expected(length_s);
            stretch
        };
        self.points.iter().zip(ends).map(stretch).collect()
    }

    /// An iterator over the arrivals, from the start.
    pub(crate) fn passing(&self) -> Passing {
        Passing {
            stretches: self.stretches(),
            once: self.once(),
            period_s: self.period_s,
            last_s: self.last().0,
            rest_per_s: self.rest_per_s(),
            at: 0,
            begun_s: 0.0,
            reached: 0.0,
        }
    }
}

/// The position in a profile, which advances from arrival to arrival.
#[derive(Clone, Debug)]
pub(crate) struct Passing {
    stretches: Vec<Stretch>,
    once: f64,
    period_s: Option<f64>,
    last_s: f64,
    rest_per_s: f64,
    /// The current stretch.
    at: usize,
    /// The instant at which the current period began.
    begun_s: f64,
    /// Λ since then.
    reached: f64,
}

impl Passing {
    /// The instant at which Λ has grown by `hazard`; `None` where it never does.
    pub(crate) fn next_s(&mut self, hazard: f64) -> Option<f64> {
        self.reached += hazard;
        loop {
            while let Some(stretch) = self.stretches.get(self.at) {
                let expected = self.reached - stretch.before;
                if expected < stretch.expected(stretch.length_s) {
                    return Some(self.begun_s + stretch.from_s + stretch.inverse_s(expected));
                }
                self.at += 1;
            }
            let Some(period_s) = self.period_s else { break };
            self.reached = (self.reached - self.once).max(0.0);
            self.begun_s += period_s;
            self.at = 0;
        }
        let after = self.reached - self.once;
        (self.rest_per_s > 0.0).then(|| self.last_s + after / self.rest_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use proptest::prelude::*;

    fn profile(points: &[(f64, f64)], between: Between, period_s: Option<f64>) -> Profile {
        Profile { points: points.to_vec(), between, period_s, spacing: Spacing::Poisson }
    }

    #[test]
    fn the_expected_number_is_the_area_under_the_rate() {
        let steps = profile(&[(0.0, 2.0), (10.0, 6.0)], Between::Steps, Some(15.0));
        assert_eq!([steps.expected(10.0), steps.expected(15.0), steps.expected(40.0)], [20.0, 50.0, 120.0]);
        assert!((steps.mean_rate_per_s() - 50.0 / 15.0).abs() < 1e-12);
        assert_eq!([steps.rate_per_s(9.9), steps.rate_per_s(12.0), steps.rate_per_s(16.0)], [2.0, 6.0, 2.0]);
        let ramp = profile(&[(0.0, 0.0), (10.0, 4.0)], Between::Lines, None);
        assert_eq!([ramp.expected(5.0), ramp.expected(10.0), ramp.expected(12.0)], [5.0, 20.0, 28.0]);
        assert_eq!([ramp.rate_per_s(5.0), ramp.rate_per_s(50.0)], [2.0, 4.0]);
        let tent = profile(&[(0.0, 0.0), (5.0, 4.0)], Between::Lines, Some(10.0));
        assert_eq!([tent.expected(10.0), tent.rate_per_s(7.5)], [20.0, 2.0]);
    }

    #[test]
    fn a_profile_that_ends_in_zero_ends() {
        let burst = Arrivals::Varying(profile(&[(0.0, 50.0), (10.0, 0.0)], Between::Steps, None));
        let instants: Vec<f64> = burst.instants(3).unwrap().collect();
        assert!(instants.is_sorted() && *instants.last().unwrap() <= 10.0);
        // A Poisson number of mean 500: five standard deviations are 112, a false alarm in 1.7 million.
        assert!(instants.len().abs_diff(500) < 112, "{}", instants.len());
        assert_eq!(burst.rate_per_s(), Some(50.0));
    }

    #[test]
    fn lines_may_jump_and_an_even_stream_has_as_many_as_are_expected() {
        let points = [(0.0, 0.0), (10.0, 500.0), (10.0, 100.0), (40.0, 100.0), (40.0, 0.0)];
        let stages = profile(&points, Between::Lines, None);
        assert_eq!(stages.validate(), Ok(()));
        assert_eq!(
            [stages.rate_per_s(5.0), stages.rate_per_s(10.0), stages.rate_per_s(41.0)],
            [250.0, 100.0, 0.0]
        );
        assert_eq!((stages.expected(40.0), stages.ends_s()), (5500.0, Some(40.0)));
        let even = Arrivals::Varying(Profile { spacing: Spacing::Even, ..stages.clone() });
        let instants: Vec<f64> = even.instants(1).unwrap().collect();
        assert_eq!(instants.len(), 5499, "the last would come at the very end");
        assert_eq!(even.expected_in_all(), Some(5500.0));
        let off = |(i, &at_s): (usize, &f64)| (stages.expected(at_s) - (i + 1) as f64).abs();
        assert!(instants.iter().enumerate().map(off).fold(0.0, f64::max) < 1e-6);
        assert_eq!(even.letter(), "Dt");
        // A Poisson number of mean 5500: five standard deviations are a false alarm in 1.7 million.
        let poisson = Arrivals::Varying(stages).instants(1).unwrap().count();
        assert!(poisson.abs_diff(5500) < 371, "{poisson}");
    }

    #[test]
    fn invalid_profiles_are_rejected() {
        let refused = |points: &[(f64, f64)], period_s| {
            profile(points, Between::Steps, period_s).validate().unwrap_err().to_string()
        };
        assert!(refused(&[], None).contains("at least one"));
        assert!(refused(&[(1.0, 1.0)], None).contains("begins at 1 s"));
        assert!(refused(&[(0.0, 1.0), (0.0, 2.0)], None).contains("not later"));
        assert!(refused(&[(0.0, -1.0)], None).contains("rate at 0 s is -1"));
        assert!(refused(&[(0.0, 1.0), (5.0, 2.0)], Some(4.0)).contains("period of 4 s"));
        assert!(refused(&[(0.0, 0.0)], None).contains("zero all the time"));
        assert!(refused(&[(0.0, 0.0), (1.0, 0.0)], Some(3.0)).contains("zero all the time"));
    }

    /// The number in each of the twelve parts of a period over 2,000 periods is Poisson: five standard deviations for
    /// each are a false alarm in 100,000 for all.
    #[test]
    fn arrivals_follow_the_rate() {
        let day = profile(&[(0.0, 1.0), (6.0, 9.0), (9.0, 3.0), (18.0, 0.0)], Between::Lines, Some(24.0));
        for between in [Between::Lines, Between::Steps] {
            let day = Profile { between, ..day.clone() };
            let (periods, mut counts) = (2000.0, [0.0; 12]);
            let stream = Arrivals::Varying(day.clone());
            for at_s in stream.instants(11).unwrap().take_while(|&at_s| at_s < 24.0 * periods) {
                counts[((at_s % 24.0) / 2.0) as usize] += 1.0;
            }
            for (i, count) in counts.into_iter().enumerate() {
                let from_s = 2.0 * i as f64;
                let expected = periods * (day.expected(from_s + 2.0) - day.expected(from_s));
                let expected = if i == 11 { periods * (day.once() - day.expected(22.0)) } else { expected };
                let off = f64::abs(count - expected);
                assert!(off <= 5.0 * expected.sqrt() + 1e-9, "{between:?} {i}: {count}, expected {expected}");
            }
        }
    }

    proptest! {
        /// Λ at an instant equals the hazard that led to it, for every profile.
        #[test]
        fn drawing_inverts_the_expected_number(
            gaps in prop::collection::vec((0.01f64..10.0, 0.0f64..100.0), 1..8),
            first in 0.01f64..50.0,
            lines in any::<bool>(),
            period in prop::option::of(0.1f64..5.0),
            hazards in prop::collection::vec(0.0f64..30.0, 1..30),
        ) {
            let mut points = vec![(0.0, first)];
            for (gap_s, rate) in gaps {
                points.push((points.last().unwrap().0 + gap_s, rate));
            }
            let last_s = points.last().unwrap().0;
            let between = if lines { Between::Lines } else { Between::Steps };
            let profile = profile(&points, between, period.map(|more_s| last_s + more_s));
            prop_assert_eq!(profile.ends_s().is_some(), period.is_none() && points.last().unwrap().1 == 0.0);
            prop_assert_eq!(profile.validate(), Ok(()));
            let mut passing = profile.passing();
            let mut sum = 0.0;
            for hazard in hazards {
                sum += hazard;
                let Some(at_s) = passing.next_s(hazard) else { break };
                prop_assert!((profile.expected(at_s) - sum).abs() < 1e-6 * (1.0 + sum), "{at_s} {sum}");
            }
        }
    }
}
