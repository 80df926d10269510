//! The arrival process: an open stream with independent gaps, a recorded trace, a closed population, or sessions.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::attendance::Attendance;
use crate::instants::Instants;
use crate::law::Law;
use crate::profile::{Profile, Spacing};
use crate::sessions::Sessions;

/// The arrival process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "arrivals")]
pub enum Arrivals {
    /// An open stream whose gaps are independent and follow one law; Poisson if that law is exponential.
    Open {
        /// The law of the gap between two requests.
        gap: Law,
    },
    /// An open stream at recorded instants.
    Trace {
        /// Instants since the start, in seconds, ascending.
        instants_s: Arc<[f64]>,
    },
    /// A closed population: each user thinks, sends a request, waits for the answer and thinks again.
    Closed {
        /// How many users.
        population: u32,
        /// The time between an answer and the next request.
        think: Law,
    },
    /// A closed population whose size changes over time.
    Attended(Attendance),
    /// An open stream whose rate changes over time.
    Varying(Profile),
    /// Users that arrive, make some requests each, and leave: partly open.
    Sessions(Sessions),
}

/// The reason why a trace of arrivals cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum TraceError {
    #[error("line {line}: {text:?} is not an instant; write one number of seconds per line")]
    NotANumber { line: usize, text: String },
    #[error(
        "line {line}: the instant {instant_s} s is negative or earlier than the one before it; sort the instants, and begin at 0 or \
         later"
    )]
    NotAscending { line: usize, instant_s: f64 },
    #[error("the trace is empty; write at least one instant")]
    Empty,
}

impl Arrivals {
    /// A Poisson stream.
    pub fn poisson(rate_per_s: f64) -> Self {
        Self::Open { gap: Law::exponential_rate(rate_per_s) }
    }

    /// A stream with constant gaps.
    pub fn constant(rate_per_s: f64) -> Self {
        Self::Open { gap: Law::Constant { mean_s: 1.0 / rate_per_s } }
    }

    /// Reads a trace: one instant per line, in seconds from the start. Skips blank lines and lines that begin with `#`.
    ///
    /// # Errors
    /// Fails on a line that is not a number, on instants in descending order, and on an empty trace.
    pub fn trace(text: &str) -> Result<Self, TraceError> {
        let mut instants_s: Vec<f64> = Vec::new();
        for (number, line) in text.lines().enumerate() {
            let (line, number) = (line.trim(), number + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let instant_s: f64 = match line.parse() {
                Ok(value) if f64::is_finite(value) => value,
                _ => return Err(TraceError::NotANumber { line: number, text: line.into() }),
            };
            if instant_s < instants_s.last().copied().unwrap_or(0.0) {
                return Err(TraceError::NotAscending { line: number, instant_s });
            }
            instants_s.push(instant_s);
        }
        if instants_s.is_empty() {
            Err(TraceError::Empty)
        } else {
            Ok(Self::Trace { instants_s: instants_s.into() })
        }
    }

    /// The mean rate of an open stream or of sessions in the long run, in 1/s; `None` for users, whose rate depends on the
    /// answers.
    pub fn rate_per_s(&self) -> Option<f64> {
        match self {
            Self::Open { gap } => Some(1.0 / gap.mean_s()),
            Self::Trace { instants_s } => {
                Some(instants_s.len() as f64 / instants_s.last().copied().unwrap_or(0.0))
            }
            Self::Varying(profile) => Some(profile.mean_rate_per_s()),
            Self::Sessions(sessions) => Some(sessions.rate_per_s()),
            Self::Closed { .. } | Self::Attended(_) => None,
        }
    }

    /// Returns the same kind of arrivals at another mean long-run rate, in 1/s: stretches gaps, changes the rate of
    /// sessions, scales the rates of a profile; `None` for a trace and a closed population, whose rate is fixed.
    pub fn at_rate(&self, rate_per_s: f64) -> Option<Self> {
        match self {
            Self::Open { gap } => Some(Self::Open { gap: gap.with_mean(1.0 / rate_per_s) }),
            Self::Sessions(sessions) => Some(Self::Sessions(sessions.at_rate(rate_per_s))),
            Self::Varying(profile) => {
                Some(Self::Varying(profile.scaled(rate_per_s / profile.mean_rate_per_s())))
            }
            Self::Trace { .. } | Self::Closed { .. } | Self::Attended(_) => None,
        }
    }

    /// Returns the arrivals as a station sees them behind a constant delay, in seconds: to it, a user thinks until the next request
    /// arrives, the way there and back included. Other arrivals stay as they are.
    #[must_use]
    pub fn behind(&self, delay_s: f64) -> Self {
        let longer = |think: &Law| match think.mean_s() {
            0.0 => Law::Constant { mean_s: delay_s },
            mean_s => think.with_mean(mean_s + delay_s),
        };
        match self {
            Self::Closed { population, think } => {
                Self::Closed { population: *population, think: longer(think) }
            }
            Self::Attended(users) => {
                Self::Attended(Attendance { think: longer(&users.think), points: users.points.clone() })
            }
            other => other.clone(),
        }
    }

    /// The expected number of requests in total; `None` for an endless process.
    pub fn expected_in_all(&self) -> Option<f64> {
        match self {
            Self::Trace { instants_s } => Some(instants_s.len() as f64),
            Self::Varying(profile) => Some(profile.expected(profile.ends_s()?)),
            Self::Open { .. } | Self::Closed { .. } | Self::Attended(_) | Self::Sessions(_) => None,
        }
    }

    /// The latest instant at which the last request is due, in seconds; `None` for an endless process.
    pub fn ends_s(&self) -> Option<f64> {
        match self {
            Self::Trace { instants_s } => instants_s.last().copied(),
            Self::Varying(profile) => profile.ends_s(),
            Self::Attended(users) => Some(users.ends_s()),
            Self::Open { .. } | Self::Closed { .. } | Self::Sessions(_) => None,
        }
    }

    /// The instants at which requests of an open stream are due, in seconds, ascending; `None` for a closed
    /// population and for sessions. A simulator and a load generator with the same seed see the same instants.
    pub fn instants(&self, seed: u64) -> Option<Instants<'_>> {
        match self {
            Self::Open { gap } => Some(Instants::of_gaps(gap, seed)),
            Self::Trace { instants_s } => Some(Instants::of_trace(instants_s)),
            Self::Varying(profile) => Some(Instants::of_profile(profile, seed)),
            Self::Closed { .. } | Self::Attended(_) | Self::Sessions(_) => None,
        }
    }

    /// The letter in Kendall's notation: that of the gaps, Mt for a Poisson stream of varying rate, Dt for an even one, G
    /// for a trace and for sessions, M for a closed population with exponential think time.
    pub fn letter(&self) -> String {
        match self {
            Self::Open { gap } => gap.letter(),
            Self::Varying(profile) => match profile.spacing {
                Spacing::Poisson => "Mt".into(),
                Spacing::Even => "Dt".into(),
            },
            Self::Trace { .. } | Self::Sessions(_) => "G".into(),
            Self::Closed { think, .. } | Self::Attended(Attendance { think, .. }) => think.letter(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_instants() {
        let arrivals = Arrivals::poisson(100.0);
        let first: Vec<f64> = arrivals.instants(5).unwrap().take(50).collect();
        assert_eq!(first, arrivals.instants(5).unwrap().take(50).collect::<Vec<_>>());
        assert_ne!(first, arrivals.instants(6).unwrap().take(50).collect::<Vec<_>>());
        assert!(first.is_sorted());
    }

    /// Five standard errors: a false alarm in 1.7 million.
    #[test]
    fn a_poisson_stream_has_its_rate_and_its_dispersion() {
        let instants: Vec<f64> = Arrivals::poisson(1000.0).instants(3).unwrap().take(100_000).collect();
        let rate = 100_000.0 / instants.last().unwrap();
        assert!((rate / 1000.0 - 1.0).abs() < 5.0 / 100_000f64.sqrt(), "{rate}");
    }

    #[test]
    fn behind_a_delay_users_think_for_longer_and_a_stream_stays() {
        let users = |think| Arrivals::Closed { population: 3, think };
        let thinking = Law::Exponential { mean_s: 2.0 };
        assert_eq!(users(thinking).behind(0.5), users(Law::Exponential { mean_s: 2.5 }));
        assert_eq!(users(Law::Constant { mean_s: 0.0 }).behind(0.5), users(Law::Constant { mean_s: 0.5 }));
        assert_eq!(Arrivals::poisson(4.0).behind(0.5), Arrivals::poisson(4.0));
    }

    #[test]
    fn a_trace_is_read_and_errors_name_the_line() {
        let trace = Arrivals::trace("# seconds\n0.5\n\n 0.5 \n2\n").unwrap();
        assert_eq!(trace.instants(0).unwrap().collect::<Vec<_>>(), [0.5, 0.5, 2.0]);
        assert_eq!(trace.rate_per_s(), Some(1.5));
        assert!(Arrivals::trace("1\nx\n").unwrap_err().to_string().starts_with("line 2: \"x\""));
        assert!(matches!(Arrivals::trace("1\n0.5"), Err(TraceError::NotAscending { line: 2, .. })));
        assert!(matches!(Arrivals::trace("-1"), Err(TraceError::NotAscending { line: 1, .. })));
        assert_eq!(Arrivals::trace("# nothing\n"), Err(TraceError::Empty));
    }
}
