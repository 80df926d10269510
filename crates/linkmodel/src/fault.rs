//! What can be wrong with the settings of a link, in sentences for users.

use thiserror::Error;

use crate::names::names;

/// Settings that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// Not a time.
    #[error("\"{text}\" is not a time; write it with its unit, like 20ms, 1.5s or 100us")]
    NotATime {
        /// What was written.
        text: String,
    },
    /// Not a rate.
    #[error("\"{text}\" is not a rate; write it in bits like 10mbit or 1.5gbit, or in bytes like 2MB/s")]
    NotARate {
        /// What was written.
        text: String,
    },
    /// Not a size.
    #[error("\"{text}\" is not a size; write it in bytes like 1500, 64k (64 000), 64KiB or 1M")]
    NotASize {
        /// What was written.
        text: String,
    },
    /// Not a share.
    #[error("\"{text}\" is not a share of the packets; write it like 0.1% or 0.001")]
    NotAShare {
        /// What was written.
        text: String,
    },
    /// Not what a setting is written like.
    #[error("{setting} cannot be \"{text}\"; it is {expected}")]
    NotAValue {
        /// Its name.
        setting: &'static str,
        /// What was written.
        text: String,
        /// What can be written.
        expected: &'static str,
    },
    /// No such setting.
    #[error("a link has no \"{name}\"; it has {}", names())]
    NoSuchSetting {
        /// What was written.
        name: String,
    },
    /// Asked for twice.
    #[error("{name} is given twice")]
    Twice {
        /// Its name.
        name: String,
    },
    /// Out of bounds.
    #[error("{setting} is out of bounds: it must be {bounds}")]
    OutOfBounds {
        /// Its name.
        setting: &'static str,
        /// From where to where it may be.
        bounds: &'static str,
    },
    /// More jitter than delay.
    #[error(
        "a jitter of {jitter} is more than the delay of {delay}, and no packet arrives before it was sent; ask for \
         more delay or less jitter"
    )]
    MoreJitterThanDelay {
        /// As asked.
        jitter: String,
        /// As asked.
        delay: String,
    },
    /// Not enough memory for the packets on the wire.
    #[error(
        "at this rate and delay {needed_bytes} bytes are on the wire, more than the {wire_bytes} that there is memory \
         for; ask for a larger wire"
    )]
    WireTooSmall {
        /// Rate × delay, in bytes.
        needed_bytes: u64,
        /// As asked.
        wire_bytes: u64,
    },
    /// A path without links.
    #[error("a path needs at least one link")]
    NoLink,
}
