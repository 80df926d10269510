//! Conditions beyond the plain model of a station: impatience, retries, breakdowns, setup times, batches.
//!
//! Kendall's notation has no letters for these. Each is off by default, and a station without conditions is the plain
//! one of the notation.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::discipline::Discipline;
use crate::law::{Law, LawError};

/// The conditions under which a station works; all off by default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Conditions {
    /// How long a customer waits for its service to begin before it leaves; `None` is for ever. A customer whose service
    /// has begun stays, even if it is interrupted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<Law>,
    /// The retries of customers that were rejected, lost their patience or were lost by a breakdown; `None`: they do not
    /// retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// How each server breaks down; `None` is never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Breakdown>,
    /// The setup time before an idle server serves again; `None`: an idle server is always ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup: Option<Setup>,
    /// The number of customers at each arrival of an open stream; `None` is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<Batch>,
}

/// How customers retry that were not served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retry {
    /// The probability that a customer retries, at each failure.
    pub probability: f64,
    /// The delay from a failure to the retry.
    pub after: Delays,
    /// The most retries of one customer; `None` is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<u32>,
}

/// The delays before the first, second, third retry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Delays {
    /// Each delay is drawn from one law.
    Law(Law),
    /// Listed, in seconds; the last one repeats. TCP repeats its SYN 1, 3 and 7 s after the first try, that is after 1,
    /// 2 and 4 s (RFC 6298, section 2; Linux doubles the delay each time).
    Listed(Vec<f64>),
}

/// How each server breaks down and is repaired, independently of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Breakdown {
    /// How long a server works until it breaks down, by its clock.
    pub up: Law,
    /// How long a repair takes.
    pub repair: Law,
    /// The fate of the service that the breakdown interrupts.
    #[serde(default)]
    pub then: Interrupted,
    /// When the time until the next breakdown runs.
    #[serde(default)]
    pub clock: Clock,
}

/// The fate of a customer whose server breaks down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interrupted {
    /// The customer returns to its position in the queue, and its service resumes where it stopped.
    #[default]
    Resume,
    /// The customer returns to its position in the queue, and the same service restarts.
    Restart,
    /// The customer is lost.
    Lose,
}

/// The time by which a server ages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// The clock runs only while the server serves.
    #[default]
    Operating,
    /// Always, except under repair.
    Calendar,
}

/// A server that runs out of work is switched off, and must be set up again before it serves.
///
/// A setup begins when more customers wait than servers are being set up. It always completes, even if another server
/// serves the customer for which it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setup {
    /// How long a setup takes.
    pub time: Law,
    /// How long a server stays on without work; `None`: it is switched off at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off_after: Option<Law>,
}

/// The size of a batch of customers, or the number of requests of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "batch", deny_unknown_fields)]
pub enum Batch {
    /// Always as many.
    Fixed {
        /// The number of customers in a batch.
        size: u32,
    },
    /// Geometric on 1, 2, 3, …
    Geometric {
        /// The mean, at least 1.
        mean: f64,
    },
    /// The size is one of several, at random.
    Listed {
        /// Size and probability of each.
        sizes: Vec<(u32, f64)>,
    },
}

/// The reason why conditions are not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ConditionError {
    #[error("{what}: {why}")]
    Law { what: &'static str, why: LawError },
    #[error("the mean of {0} must be positive")]
    NoTime(&'static str),
    #[error("the probability of a retry is {0}; it must lie between 0 and 1")]
    RetryProbability(f64),
    #[error("the delays before a retry must be a law, or a list of at least one positive number of seconds")]
    Delays,
    #[error("rejected customers would retry at once and for ever; set a delay, or limit the retries")]
    RetryAtOnce,
    #[error(
        "retry has no effect where no customer is rejected, impatient or lost; set a capacity or a patience, or remove retry"
    )]
    NothingToRetry,
    #[error(
        "batch-size: each size must be from 1 to 1,000,000, and their probabilities positive and add up to 1"
    )]
    Batch,
    #[error(
        "users of a closed population arrive one by one; remove batch, or make the arrivals an open stream"
    )]
    ClosedBatch,
    #[error("under processor sharing no customer waits, so none loses patience; remove patience")]
    PatientSharing,
    #[error("under processor sharing all servers serve each customer, so a breakdown can only resume")]
    BrokenSharing,
}

impl Conditions {
    /// Whether all conditions are off.
    pub fn are_none(&self) -> bool {
        *self == Self::default()
    }

    /// The name of the first condition; `None` if all are off.
    pub fn first(&self) -> Option<&'static str> {
        let named = [
            (self.patience.is_some(), "impatient customers"),
            (self.retry.is_some(), "retries"),
            (self.breakdown.is_some(), "breakdowns"),
            (self.setup.is_some(), "setup times"),
            (self.batch.is_some(), "arrivals in batches"),
        ];
        named.into_iter().find(|(stated, _)| *stated).map(|(_, name)| name)
    }

    /// Checks the conditions for a station of this discipline and capacity.
    ///
    /// # Errors
    /// Fails on invalid laws and probabilities, and on conditions that have no effect together with the others.
    pub fn validate(&self, discipline: Discipline, capacity: Option<u64>) -> Result<(), ConditionError> {
        let sharing = discipline.shares();
        if let Some(patience) = &self.patience {
            sound("patience", patience)?;
            if sharing {
                return Err(ConditionError::PatientSharing);
            }
        }
        if let Some(retry) = &self.retry {
            retry.validate()?;
            let loses = |breakdown: &Breakdown| breakdown.then == Interrupted::Lose;
            if self.patience.is_none() && capacity.is_none() && !self.breakdown.as_ref().is_some_and(loses) {
                return Err(ConditionError::NothingToRetry);
            }
        }
        if let Some(Breakdown { up, repair, then, .. }) = &self.breakdown {
            sound("time until a breakdown", up)?;
            sound("repair", repair)?;
            if up.mean_s() <= 0.0 {
                return Err(ConditionError::NoTime("the time until a breakdown"));
            }
            if sharing && *then != Interrupted::Resume {
                return Err(ConditionError::BrokenSharing);
            }
        }
        if let Some(Setup { time, off_after }) = &self.setup {
            sound("setup", time)?;
            off_after.iter().try_for_each(|law| sound("delay before a server is switched off", law))?;
        }
        self.batch.as_ref().map_or(Ok(()), Batch::validate)
    }
}

fn sound(what: &'static str, law: &Law) -> Result<(), ConditionError> {
    law.validate().map_err(|why| ConditionError::Law { what, why })
}

impl Retry {
    fn validate(&self) -> Result<(), ConditionError> {
        if !(0.0..=1.0).contains(&self.probability) {
            return Err(ConditionError::RetryProbability(self.probability));
        }
        let takes_time = match &self.after {
            Delays::Law(law) => {
                sound("delay before a retry", law)?;
                law.mean_s() > 0.0
            }
            Delays::Listed(delays_s) => {
                let positive = |&delay_s: &f64| delay_s > 0.0 && delay_s.is_finite();
                if delays_s.is_empty() || !delays_s.iter().all(positive) {
                    return Err(ConditionError::Delays);
                }
                true
            }
        };
        if takes_time || self.most.is_some() { Ok(()) } else { Err(ConditionError::RetryAtOnce) }
    }
}

impl Breakdown {
    /// The mean time, in seconds, in which a server does a second of service, where what was done is not lost: its
    /// failures cost repairs (Avi-Itzhak and Naor 1963, model A). By the calendar it is the inverse of the
    /// availability, up/(up + repair).
    pub fn stretch(&self) -> f64 {
        1.0 + self.repair.mean_s() / self.up.mean_s()
    }
}

impl Batch {
    /// The sizes that a batch may have. Each of its customers takes memory while it waits.
    const SIZES: RangeInclusive<u32> = 1..=1_000_000;

    pub(crate) fn validate(&self) -> Result<(), ConditionError> {
        let sound = match self {
            Self::Fixed { size } => Self::SIZES.contains(size),
            Self::Geometric { mean } => (1.0..=f64::from(*Self::SIZES.end())).contains(mean),
            Self::Listed { sizes } => {
                let sum: f64 = sizes.iter().map(|(_, probability)| probability).sum();
                (sum - 1.0).abs() <= 1e-9
                    && sizes.iter().all(|(size, p)| Self::SIZES.contains(size) && *p > 0.0)
            }
        };
        if sound { Ok(()) } else { Err(ConditionError::Batch) }
    }

    /// The mean size, E\[X\].
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed { size } => f64::from(*size),
            Self::Geometric { mean } => *mean,
            Self::Listed { sizes } => sizes.iter().map(|&(size, p)| f64::from(size) * p).sum(),
        }
    }

    /// E\[X²\], which with the mean gives the mean number in M^\[X\]/M/1: ρ(1 + E\[X²\]/E\[X\])/(2(1 − ρ)) (Gross et al.
    /// 2008, section 3.1).
    pub fn second_moment(&self) -> f64 {
        match self {
            Self::Fixed { size } => f64::from(*size).powi(2),
            Self::Geometric { mean } => mean * (2.0 * mean - 1.0),
            Self::Listed { sizes } => sizes.iter().map(|&(size, p)| f64::from(size).powi(2) * p).sum(),
        }
    }

    /// Draws one size.
    pub fn sample(&self, rng: &mut kendall_stats::random::Rng) -> u32 {
        const UNIT: Law = Law::Exponential { mean_s: 1.0 };
        match self {
            Self::Fixed { size } => *size,
            // The integer part of an exponential time of the right mean is geometric on 0, 1, 2, …
            Self::Geometric { mean } => {
                let failure = 1.0 - 1.0 / mean;
                if failure <= 0.0 {
                    return 1;
                }
                1 + (UNIT.sample(rng) / -libm::log(failure)).min(f64::from(u32::MAX - 1)) as u32
            }
            Self::Listed { sizes } => {
                let mut u = kendall_stats::random::unit(rng);
                for &(size, probability) in sizes {
                    u -= probability;
                    if u < 0.0 {
                        return size;
                    }
                }
                sizes.last().map_or(1, |last| last.0)
            }
        }
    }
}

impl Delays {
    /// The mean delay before retry number `retry`, counted from 0, in seconds.
    pub fn mean_s(&self, retry: u32) -> f64 {
        match self {
            Self::Law(law) => law.mean_s(),
            Self::Listed(delays_s) => listed(delays_s, retry),
        }
    }

    /// The delay before retry number `retry`, counted from 0, in seconds.
    pub fn sample(&self, retry: u32, rng: &mut kendall_stats::random::Rng) -> f64 {
        match self {
            Self::Law(law) => law.sample(rng),
            Self::Listed(delays_s) => listed(delays_s, retry),
        }
    }
}

fn listed(delays_s: &[f64], retry: u32) -> f64 {
    delays_s.get(retry as usize).or_else(|| delays_s.last()).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_stats::random::{Purpose, stream};

    fn refused(conditions: &Conditions, discipline: Discipline) -> String {
        conditions.validate(discipline, None).unwrap_err().to_string()
    }

    #[test]
    fn conditions_without_effect_are_rejected() {
        let fifo = Discipline::Fifo;
        let second = || Law::Constant { mean_s: 1.0 };
        let retry = |probability, after, most| Retry { probability, after, most };
        let with =
            |retry| Conditions { patience: Some(second()), retry: Some(retry), ..Conditions::default() };
        assert!(refused(&with(retry(1.5, Delays::Law(second()), None)), fifo).contains("is 1.5"));
        assert!(refused(&with(retry(1.0, Delays::Listed(vec![]), None)), fifo).contains("at least one"));
        let at_once = Delays::Law(Law::Constant { mean_s: 0.0 });
        assert!(refused(&with(retry(1.0, at_once.clone(), None)), fifo).contains("for ever"));
        assert_eq!(with(retry(1.0, at_once, Some(3))).validate(fifo, None), Ok(()));
        let idle = Conditions { patience: None, ..with(retry(1.0, Delays::Law(second()), None)) };
        assert!(refused(&idle, fifo).contains("no effect"));
        assert_eq!(idle.validate(fifo, Some(4)), Ok(()));
        let shared = Conditions { patience: Some(second()), ..Conditions::default() };
        assert!(refused(&shared, Discipline::ProcessorSharing).contains("no customer waits"));
        for batch in [
            Batch::Fixed { size: 0 },
            Batch::Fixed { size: u32::MAX },
            Batch::Geometric { mean: 1e300 },
            Batch::Geometric { mean: 0.5 },
            Batch::Listed { sizes: vec![(1, 0.5), (2, 0.4)] },
        ] {
            let odd = Conditions { batch: Some(batch), ..Conditions::default() };
            assert!(refused(&odd, fifo).contains("batch-size: each size"));
        }
    }

    /// Five standard errors: a false alarm in 1.7 million.
    #[test]
    fn batches_have_their_moments() {
        let batches = [
            Batch::Fixed { size: 3 },
            Batch::Geometric { mean: 1.0 },
            Batch::Geometric { mean: 4.0 },
            Batch::Listed { sizes: vec![(1, 0.5), (2, 0.25), (8, 0.25)] },
        ];
        for batch in batches {
            let mut rng = stream(7, Purpose::Batch, 0);
            let n = 100_000;
            let sizes: Vec<f64> = (0..n).map(|_| f64::from(batch.sample(&mut rng))).collect();
            let mean = sizes.iter().sum::<f64>() / f64::from(n);
            let square = sizes.iter().map(|x| x * x).sum::<f64>() / f64::from(n);
            let deviation = (batch.second_moment() - batch.mean().powi(2)).max(0.0).sqrt();
            assert!(
                (mean - batch.mean()).abs() <= 5.0 * deviation / f64::from(n).sqrt(),
                "{batch:?}: {mean}"
            );
            assert!((square / batch.second_moment() - 1.0).abs() < 0.05, "{batch:?}: {square}");
        }
    }

    #[test]
    fn listed_delays_end_with_the_last() {
        let mut rng = stream(1, Purpose::Retry, 0);
        let syn = Delays::Listed(vec![1.0, 2.0, 4.0]);
        let delays: Vec<f64> = (0..5).map(|retry| syn.sample(retry, &mut rng)).collect();
        assert_eq!(delays, [1.0, 2.0, 4.0, 4.0, 4.0]);
    }
}
