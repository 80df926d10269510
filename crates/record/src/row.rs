//! One request of a trial, and how it ended.

use serde::{Deserialize, Serialize};

/// How a request ended. Each request that was due ends in exactly one way, so the counts add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The complete and right answer came.
    Answered,
    /// A complete answer came, and it was not the right one.
    Wrong,
    /// The server turned it away: no connection, or a connection closed or reset before the answer.
    Refused,
    /// No complete answer within the time allowed for one request.
    TimedOut,
    /// Still out when the trial ended, after the drain. Its response time is at least the time it was out.
    Unanswered,
}

impl Outcome {
    /// All outcomes, in the order in which they are listed.
    pub const ALL: [Self; 5] = [Self::Answered, Self::Wrong, Self::Refused, Self::TimedOut, Self::Unanswered];

    /// The name in records and on screen.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Wrong => "wrong",
            Self::Refused => "refused",
            Self::TimedOut => "timed-out",
            Self::Unanswered => "unanswered",
        }
    }
}

/// One request. All instants are in nanoseconds since the start of the trial; those of the server are by its own
/// stamps on the same clock. An instant that never came is `None`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// Its number in the workload; the request is a pure function of the seed and this.
    pub index: u64,
    /// Its class in the workload.
    pub class: u32,
    /// The client's port, by which the server's stamps are matched to it; 0 if it never had a connection.
    pub port: u16,
    /// When it was due to be sent.
    pub scheduled: i64,
    /// When its first byte was handed to the kernel.
    pub sent: Option<i64>,
    /// When the first byte of the answer was read.
    pub first_byte: Option<i64>,
    /// When the answer was complete, or the request failed.
    pub completed: Option<i64>,
    /// When the server had read it whole and queued it.
    pub queued: Option<i64>,
    /// When a worker of the server first took it up.
    pub started: Option<i64>,
    /// When the server had its answer.
    pub finished: Option<i64>,
    /// The time it kept a worker of the server busy, in nanoseconds: `finished − started` less interruptions, and
    /// the handing over of its answer.
    pub service: Option<i64>,
    /// The part of that time which every request costs whatever it asks, where the server tells it apart.
    pub fixed: Option<i64>,
    /// How it ended.
    pub outcome: Outcome,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
}

impl RequestRow {
    /// From the instant the request was due until its answer was complete; `None` unless one came.
    pub fn response_ns(&self) -> Option<i64> {
        match self.outcome {
            Outcome::Answered | Outcome::Wrong => Some(self.completed? - self.scheduled),
            Outcome::Refused | Outcome::TimedOut | Outcome::Unanswered => None,
        }
    }

    /// How late it was sent: the generator's own delay, or its wait for a free connection.
    pub fn send_lag_ns(&self) -> Option<i64> {
        Some(self.sent? - self.scheduled)
    }

    /// The time between the server's having it and first taking it up.
    pub fn queueing_ns(&self) -> Option<i64> {
        Some(self.started? - self.queued?)
    }
}
