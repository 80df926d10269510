//! One request of a trial, and its outcome.

use serde::{Deserialize, Serialize};

/// The outcome of a request. Each request that was due ends in exactly one way, so the counts add up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The complete and correct answer came.
    Answered,
    /// A complete answer came, but not the correct one.
    Wrong,
    /// The server rejected it: no connection, or a connection closed or reset before the answer.
    Refused,
    /// No complete answer within the time limit of one request.
    TimedOut,
    /// Still in flight at the end of the trial, after the drain. Its response time is at least the time in
    /// flight.
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
/// stamps on the same clock. `None` stands for an instant that did not occur.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestRow {
    /// The request's number in the workload; the request is a pure function of the seed and this number.
    pub index: u64,
    /// The request's class in the workload.
    pub class: u32,
    /// The client's port, which matches the server's stamps; 0 if it never had a connection.
    pub port: u16,
    /// The instant at which the request was due to be sent.
    pub scheduled: i64,
    /// The instant at which the request's first byte was passed to the kernel.
    pub sent: Option<i64>,
    /// When the first byte of the answer was read.
    pub first_byte: Option<i64>,
    /// When the answer was complete, or the request failed.
    pub completed: Option<i64>,
    /// The instant at which the server had read the request completely and queued it.
    pub queued: Option<i64>,
    /// The instant at which a worker of the server first started the request.
    pub started: Option<i64>,
    /// The instant at which the server had its answer.
    pub finished: Option<i64>,
    /// The time that it kept a worker of the server busy, in nanoseconds: `finished − started` without
    /// interruptions, plus passing on its answer.
    pub service: Option<i64>,
    /// The part of the service time that all requests have in common, if the server distinguishes it.
    pub fixed: Option<i64>,
    /// The outcome of the request.
    pub outcome: Outcome,
    /// Bytes sent.
    pub bytes_out: u64,
    /// Bytes received.
    pub bytes_in: u64,
}

impl RequestRow {
    /// A request that was due at an instant, before it is sent: of class 0, not sent, unanswered.
    pub fn due(index: u64, scheduled: i64) -> Self {
        Self {
            index,
            class: 0,
            port: 0,
            scheduled,
            sent: None,
            first_byte: None,
            completed: None,
            queued: None,
            started: None,
            finished: None,
            service: None,
            fixed: None,
            outcome: Outcome::Unanswered,
            bytes_out: 0,
            bytes_in: 0,
        }
    }

    /// Returns the row, sent at this instant from this port.
    #[must_use]
    pub fn sent_at(self, sent: i64, port: u16) -> Self {
        Self { sent: Some(sent), port, ..self }
    }

    /// Returns the row, with this outcome at this instant.
    #[must_use]
    pub fn ended(self, outcome: Outcome, completed: i64) -> Self {
        Self { outcome, completed: Some(completed), ..self }
    }

    /// Returns the row with the server's stamps, served without interruption.
    #[must_use]
    pub fn served(self, queued: i64, started: i64, finished: i64) -> Self {
        let stamps = [queued, started, finished, finished - started].map(Some);
        let [queued, started, finished, service] = stamps;
        Self { queued, started, finished, service, ..self }
    }

    /// The time from the instant the request was due until its answer was complete; `None` if it has none.
    pub fn response_ns(&self) -> Option<i64> {
        match self.outcome {
            Outcome::Answered | Outcome::Wrong => Some(self.completed? - self.scheduled),
            Outcome::Refused | Outcome::TimedOut | Outcome::Unanswered => None,
        }
    }

    /// How late the request was sent: the generator's own delay, or its wait for a free connection.
    pub fn send_lag_ns(&self) -> Option<i64> {
        Some(self.sent? - self.scheduled)
    }

    /// The time from when the server queued it until a worker first started it.
    pub fn queueing_ns(&self) -> Option<i64> {
        Some(self.started? - self.queued?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_made_step_by_step() {
        let row = RequestRow::due(3, 10);
        assert_eq!(
            (row.index, row.outcome, row.response_ns(), row.send_lag_ns()),
            (3, Outcome::Unanswered, None, None)
        );
        let row = row.sent_at(12, 4000).served(15, 17, 20).ended(Outcome::Answered, 25);
        assert_eq!((row.response_ns(), row.send_lag_ns(), row.queueing_ns()), (Some(15), Some(2), Some(2)));
        assert_eq!((row.service, row.port), (Some(3), 4000));
    }
}
