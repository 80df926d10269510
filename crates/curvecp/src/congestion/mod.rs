//! Congestion control: how much may be in flight and how fast it leaves, behind one trait.

mod bbr;
mod chicago;
mod cubic;
mod hystart;
mod prr;

pub use bbr::Bbr;
pub use chicago::Chicago;
pub use cubic::Cubic;

use std::fmt::{Debug, Display, Formatter};
use std::str::FromStr;
use std::time::Duration;

use crate::message::{LONGEST_MESSAGE_BYTES, MAX_MESSAGE_BYTES};
use crate::recovery::{RateSample, Rtt};

/// The size by which windows are counted: the reference's longest message, in bytes. Windows and rates count the bytes of messages,
/// so neither the boxes nor the headers of UDP and IP.
pub const SEGMENT_BYTES: u64 = MAX_MESSAGE_BYTES as u64;
/// The window at the start: ten messages, as RFC 6928 and RFC 9002.
pub const INITIAL_WINDOW: u64 = 10 * SEGMENT_BYTES;
/// The window never falls below two messages, however long they are: RFC 9002.
pub const MIN_WINDOW: u64 = 2 * LONGEST_MESSAGE_BYTES as u64;

/// The spacing of the messages that a controller allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pacing {
    /// Whatever the window allows leaves at once.
    Unpaced,
    /// Messages leave at this rate, in bytes per second, in small bursts.
    Rate(f64),
    /// One message leaves per interval.
    Interval {
        /// From one message to the next.
        interval: Duration,
        /// The timer's granularity: a wait lasts until the next whole multiple of it, and one more where it is one
        /// already, as `poll()` with `ns / 1000000 + 1` milliseconds. Zero for an exact timer.
        granularity: Duration,
    },
}

/// How losses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossDetection {
    /// By later messages that arrive and by probes: RFC 9002.
    Rfc9002,
    /// By a time-out of this length for each message: the reference.
    Timeout(Duration),
}

/// A message with a number was sent.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The instant.
    pub now: Duration,
    /// The number of bytes in the message.
    pub bytes: u64,
    /// Bytes in flight, this message among them.
    pub in_flight: u64,
}

/// Messages were acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// The instant.
    pub now: Duration,
    /// Bytes of messages that are newly known to have arrived.
    pub bytes: u64,
    /// Bytes in flight before.
    pub in_flight_before: u64,
    /// Bytes in flight after.
    pub in_flight: u64,
    /// The round-trip time of the echoed message, if it is news.
    pub sample: Option<Duration>,
    /// The estimate with that sample.
    pub rtt: &'a Rtt,
    /// The delivery rate, if there is a sample.
    pub rate: Option<RateSample>,
    /// The highest number of a message that is known to have arrived.
    pub largest: u64,
    /// The number of the next message.
    pub next: u64,
    /// Whether the sender was held back by the window since the last acknowledgment.
    pub window_limited: bool,
    /// Bytes of data in the longest message that the path is known to carry.
    pub most_data: u64,
    /// Whether the newest message that arrived was sent before the last congestion event.
    pub in_recovery: bool,
}

/// A message was lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// The instant.
    pub now: Duration,
    /// The number of bytes lost.
    pub bytes: u64,
    /// Bytes in flight, without those of the lost message.
    pub in_flight: u64,
    /// Bytes that were in flight when it was sent, it among them.
    pub in_flight_at_send: u64,
    /// Bytes lost since it was sent, it among them.
    pub lost_since_send: u64,
    /// Whether the sender had nothing more to send when it was sent.
    pub application_limited: bool,
    /// The first message lost that was sent after the last congestion event: the start of a new event.
    pub begins_event: bool,
    /// The number of the next message.
    pub next: u64,
}

/// A congestion control: it sets window and pace from the messages that are sent, arrive and are lost.
pub trait Controller: Debug + Send {
    /// A message was sent.
    fn on_sent(&mut self, _sent: &Sent) {}
    /// Messages were acknowledged. Losses that the same acknowledgment shows are reported before it.
    fn on_ack(&mut self, ack: &Ack<'_>);
    /// A message was lost.
    fn on_loss(&mut self, loss: &Loss);
    /// All that was sent over several time-outs was lost: RFC 9002, section 7.6.
    fn on_persistent_congestion(&mut self, _now: Duration) {}
    /// All losses of the last event turned out to be none.
    fn on_spurious_event(&mut self, _now: Duration) {}
    /// A probe time-out passed, or under [`LossDetection::Timeout`] a message's.
    fn on_timeout(&mut self, _now: Duration) {}
    /// How many bytes of messages may be in flight.
    fn window(&self) -> u64;
    /// How many units of the stream may be outstanding, acknowledged out of order or not.
    fn max_units(&self) -> usize {
        usize::MAX
    }
    /// How messages are spread over time.
    fn pacing(&self, rtt: &Rtt) -> Pacing;
    /// How losses are found.
    fn loss_detection(&self) -> LossDetection {
        LossDetection::Rfc9002
    }
}

/// The congestion controls of this crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Algorithm {
    /// CUBIC: fair to TCP, the default.
    #[default]
    Cubic,
    /// BBR, version 3.
    Bbr,
    /// The reference's, with an exact timer.
    Chicago,
    /// The reference's, bound by its timer of a millisecond as the reference is.
    ChicagoPolled,
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Self; 4] = [Self::Cubic, Self::Bbr, Self::Chicago, Self::ChicagoPolled];

    /// A controller in its first state.
    pub fn controller(self, seed: u64, now: Duration) -> Box<dyn Controller> {
        match self {
            Self::Cubic => Box::new(Cubic::new()),
            Self::Bbr => Box::new(Bbr::new(seed, now)),
            Self::Chicago => Box::new(Chicago::exact(seed, now)),
            Self::ChicagoPolled => Box::new(Chicago::polled(seed, now)),
        }
    }

    /// The algorithm's name in commands and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
            Self::Chicago => "chicago",
            Self::ChicagoPolled => "chicago-polled",
        }
    }
}

impl Display for Algorithm {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// The name does not belong to a congestion control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no congestion control {0:?}: choose cubic, bbr, chicago or chicago-polled")]
pub struct NoSuchAlgorithm(pub String);

impl FromStr for Algorithm {
    type Err = NoSuchAlgorithm;

    fn from_str(name: &str) -> Result<Self, NoSuchAlgorithm> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| NoSuchAlgorithm(name.to_owned()))
    }
}
