//! The errors of the settings of a link, with messages for users.

use thiserror::Error;

use crate::names::names;

/// The reason why settings are not valid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The value is not a time.
    #[error("\"{text}\" is not a time; write it with its unit, like 20ms, 1.5s or 100us")]
    NotATime {
        /// The value.
        text: String,
    },
    /// The value is not a rate.
    #[error("\"{text}\" is not a rate; write it in bits like 10mbit or 1.5gbit, or in bytes like 2MB/s")]
    NotARate {
        /// The value.
        text: String,
    },
    /// The value is not a size.
    #[error("\"{text}\" is not a size; write it in bytes like 1500, 64k (64 000), 64KiB or 1M")]
    NotASize {
        /// The value.
        text: String,
    },
    /// The value is not a share.
    #[error("\"{text}\" is not a share of the packets; write it like 0.1% or 0.001")]
    NotAShare {
        /// The value.
        text: String,
    },
    /// The value does not have the format of its setting.
    #[error("{setting} cannot be \"{text}\"; it is {expected}")]
    NotAValue {
        /// The name of the setting.
        setting: &'static str,
        /// The value.
        text: String,
        /// The valid format.
        expected: &'static str,
    },
    /// The setting does not exist.
    #[error("a link has no setting \"{name}\"; the settings are {}", names())]
    NoSuchSetting {
        /// The name.
        name: String,
    },
    /// The setting is given twice.
    #[error("{name} is given twice")]
    Twice {
        /// The name of the setting.
        name: String,
    },
    /// The value is out of bounds.
    #[error("{setting} is out of bounds: it must be {bounds}")]
    OutOfBounds {
        /// The name of the setting.
        setting: &'static str,
        /// The bounds.
        bounds: &'static str,
    },
    /// The jitter is larger than the delay.
    #[error(
        "a jitter of {jitter} is more than the delay of {delay}, but no packet arrives before it was sent; set \
         more delay or less jitter"
    )]
    MoreJitterThanDelay {
        /// The setting.
        jitter: String,
        /// The setting.
        delay: String,
    },
    /// The memory is too small for the packets on the wire.
    #[error(
        "at this rate and delay {needed_bytes} bytes are on the wire, more than its memory of {wire_bytes} \
         bytes; set a larger wire"
    )]
    WireTooSmall {
        /// Rate × delay, in bytes.
        needed_bytes: u64,
        /// The setting.
        wire_bytes: u64,
    },
    /// A path without links.
    #[error("a path needs at least one link")]
    NoLink,
}
