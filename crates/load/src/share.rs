//! The split of one load among several senders: threads of this process, or processes on several machines.
//!
//! A share is a rule on numbers, so it needs no coordination: sender k of n makes the requests whose numbers leave the
//! remainder k when divided by n, and has the users whose numbers do. The requests of an open stream keep their numbers and
//! instants, whatever the number of senders. A part of a share is a share, so a process that makes a share of a load splits
//! that among its threads by the same rule.

use std::iter::{Skip, StepBy};

use kendall_station::Arrivals;
use serde::{Deserialize, Serialize};

/// The part of a load that one of several senders makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "(u32, u32)", into = "(u32, u32)")]
pub struct Share {
    at: u32,
    of: u32,
}

/// A share that does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "share {at} of {of} does not exist; shares are counted from 0, and there are at most {SENDERS_AT_MOST}"
)]
pub struct NoShare {
    at: u32,
    of: u32,
}

/// The most senders of a load.
const SENDERS_AT_MOST: u32 = 65_536;

impl TryFrom<(u32, u32)> for Share {
    type Error = NoShare;

    fn try_from((at, of): (u32, u32)) -> Result<Self, NoShare> {
        if at < of && of <= SENDERS_AT_MOST { Ok(Self { at, of }) } else { Err(NoShare { at, of }) }
    }
}

impl From<Share> for (u32, u32) {
    fn from(share: Share) -> Self {
        (share.at, share.of)
    }
}

impl Share {
    /// The whole load.
    pub const ALL: Self = Self { at: 0, of: 1 };

    /// The number of this sender, counted from 0.
    pub fn at(self) -> u32 {
        self.at
    }

    /// The number of senders.
    pub fn of(self) -> u32 {
        self.of
    }

    /// The parts of this share for the given number of senders.
    ///
    /// # Panics
    /// Panics if the load then has more than 65,536 senders.
    pub fn split(self, parts: u32) -> impl Iterator<Item = Self> + Clone {
        let of = self.of.checked_mul(parts).filter(|&of| of <= SENDERS_AT_MOST);
        let of = of.expect("the callers limit threads and agents");
        (0..parts).map(move |part| Self { at: self.at + self.of * part, of })
    }

    /// Whether the request or the user with this number belongs to the share.
    pub fn has(self, number: u64) -> bool {
        number % u64::from(self.of) == u64::from(self.at)
    }

    /// The number of the share's request or user with this place in the share.
    pub fn nth(self, place: u64) -> u64 {
        u64::from(self.at) + u64::from(self.of) * place
    }

    /// How many of the given number of requests, users or connections the share has.
    pub fn count(self, all: u64) -> u64 {
        (all + u64::from(self.of) - 1 - u64::from(self.at)) / u64::from(self.of)
    }

    /// The share's part of a stream.
    pub(crate) fn stream<I: Iterator>(self, all: I) -> StepBy<Skip<I>> {
        all.skip(self.at as usize).step_by(self.of as usize)
    }

    /// How many of the given number of requests the share makes at most. Users make equal numbers of them, so a share has
    /// as many as its users.
    pub(crate) fn requests(self, arrivals: &Arrivals, all: u64) -> u64 {
        let users = match arrivals {
            Arrivals::Closed { population, .. } => u64::from(*population),
            Arrivals::Attended(attendance) => u64::from(attendance.most()),
            _ => return self.count(all),
        };
        let users = users.max(1);
        self.count(users) * (all / users) + self.count(all % users)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::Law;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn each_number_belongs_to_exactly_one_share(
            outer in 1u32..9, inner in 1u32..9, all in 0u64..10_000, users in 1u32..200,
        ) {
            let arrivals = Arrivals::Closed { population: users, think: Law::Constant { mean_s: 0.0 } };
            let shares: Vec<Share> =
                Share::ALL.split(outer).flat_map(|share| share.split(inner)).collect();
            prop_assert_eq!(shares.len() as u32, outer * inner);
            for number in all..all + 100 {
                prop_assert_eq!(shares.iter().filter(|share| share.has(number)).count(), 1);
            }
            prop_assert_eq!(shares.iter().map(|share| share.count(all)).sum::<u64>(), all);
            prop_assert_eq!(shares.iter().map(|share| share.requests(&arrivals, all)).sum::<u64>(), all);
            for share in shares {
                let numbers: Vec<u64> = share.stream(0..all).collect();
                prop_assert_eq!(numbers.len() as u64, share.count(all));
                for (place, number) in numbers.into_iter().enumerate() {
                    prop_assert_eq!(share.nth(place as u64), number);
                    prop_assert!(share.has(number));
                }
            }
        }
    }

    #[test]
    fn a_share_that_does_not_exist_is_refused() {
        for (at, of) in [(0, 0), (3, 3), (0, SENDERS_AT_MOST + 1)] {
            assert!(Share::try_from((at, of)).is_err(), "{at} of {of}");
        }
        assert!(serde_json::from_str::<Share>("[4,2]").is_err());
        assert_eq!(serde_json::to_string(&Share::ALL).unwrap(), "[0,1]");
    }
}
