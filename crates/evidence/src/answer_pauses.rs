//! Answers that pause in their middle for as long as an acknowledgement is delayed.
//!
//! A server that writes head and body apart, on a socket with Nagle's algorithm (RFC 896), sends the body only when the head is
//! acknowledged; and a client delays that acknowledgement (RFC 1122, section 4.2.3.2), on Linux by 40 ms. So nearly every answer pauses for
//! these 40 ms between its first byte and its last, but the first of each connection, whose segments Linux acknowledges at once.

use std::ops::Range;

use kendall_record::{Outcome, RequestRow};
use serde::{Deserialize, Serialize};

/// Pauses that a delayed acknowledgement makes, in ns: Linux delays it by 40 ms, to a tick of its clock and what waking takes.
const PAUSE_NS: Range<i64> = 38_000_000..56_000_000;
/// Shorter and longer ones, among which those of 40 ms have to stand out.
const OTHER_NS: Range<i64> = 8_000_000..150_000_000;
/// Fewer pauses do not make a pattern.
const LEAST: u64 = 10;
/// Pauses near 40 ms must be this many times as frequent as others.
const STAND_OUT: u64 = 4;
/// The share of the time of all requests that the pauses must make up.
const SHARE_OF_TIME: f64 = 0.5;
/// First answers pause so much less often.
const QUICK_FIRST: f64 = 0.5;

/// The number of answers, and of those among them that paused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseCount {
    /// Answers.
    pub answers: u64,
    /// The number of answers that paused for 38 to 56 ms between their first byte and their last.
    pub paused: u64,
}

impl PauseCount {
    /// The share that paused; 0 without answers.
    pub fn share(self) -> f64 {
        self.paused as f64 / self.answers.max(1) as f64
    }
}

/// The pauses of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerPauses {
    /// In the first answer of each connection.
    pub first: PauseCount,
    /// In all later ones.
    pub later: PauseCount,
    /// The sum of all pauses of that length, in nanoseconds.
    pub paused_ns: u64,
    /// The sum of the times from sending a request to its whole answer, in nanoseconds.
    pub requests_ns: u64,
    /// Answers that paused for 8 to 150 ms, but not for 38 to 56.
    pub paused_otherwise: u64,
}

impl AnswerPauses {
    /// Counts the pauses of requests in the order in which they ended.
    pub fn of<'r>(rows: impl IntoIterator<Item = &'r RequestRow>) -> Self {
        let mut counting = CountingPauses::default();
        rows.into_iter().for_each(|row| counting.add(row));
        counting.seen
    }

    /// Whether the pauses are those of Nagle's algorithm against delayed acknowledgements: pauses of 40 ms stand out and make up most of
    /// the time, and the first answers of connections have none.
    pub fn are_of_delayed_acknowledgements(&self) -> bool {
        let Self { first, later, paused_ns, requests_ns, paused_otherwise } = *self;
        later.paused >= LEAST.max(STAND_OUT * paused_otherwise)
            && paused_ns as f64 > SHARE_OF_TIME * requests_ns as f64
            && first.answers > 0
            && first.share() <= QUICK_FIRST * later.share()
    }

    /// The mean pause of the answers that paused, in seconds.
    pub fn mean_s(&self) -> f64 {
        self.paused_ns as f64 / 1e9 / (self.first.paused + self.later.paused).max(1) as f64
    }
}

/// Counts pauses as requests end.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountingPauses {
    pub(crate) seen: AnswerPauses,
    /// The client's ports that have had an answer, a bit each.
    ports: Vec<u64>,
}

impl CountingPauses {
    pub(crate) fn add(&mut self, row: &RequestRow) {
        let times = row.first_byte.zip(row.completed);
        let Some((first_byte, completed)) =
            times.filter(|_| row.outcome == Outcome::Answered && row.port > 0)
        else {
            return;
        };
        self.ports.resize(1024, 0);
        let (word, bit) = (&mut self.ports[usize::from(row.port) / 64], 1 << (row.port % 64));
        let count = if *word & bit == 0 { &mut self.seen.first } else { &mut self.seen.later };
        *word |= bit;
        count.answers += 1;
        let pause_ns = completed - first_byte;
        if PAUSE_NS.contains(&pause_ns) {
            count.paused += 1;
            self.seen.paused_ns += pause_ns as u64;
        } else if OTHER_NS.contains(&pause_ns) {
            self.seen.paused_otherwise += 1;
        }
        self.seen.requests_ns += (completed - row.sent.unwrap_or(first_byte)).max(0) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request on a connection; its answer pauses for `pause_ms`.
    fn row(index: u64, port: u16, pause_ms: i64) -> RequestRow {
        let due = index as i64 * 100_000_000;
        RequestRow {
            first_byte: Some(due + 200_000),
            ..RequestRow::due(index, due)
                .sent_at(due, port)
                .ended(Outcome::Answered, due + 200_000 + pause_ms * 1_000_000)
        }
    }

    #[test]
    fn pauses_of_all_but_the_first_answers_are_of_delayed_acknowledgements() {
        let rows: Vec<_> =
            (0..100).map(|at| row(at, 4000 + (at % 4) as u16, if at < 4 { 0 } else { 41 })).collect();
        let seen = AnswerPauses::of(&rows);
        assert_eq!((seen.first.answers, seen.first.paused, seen.later.paused), (4, 0, 96));
        assert!(seen.are_of_delayed_acknowledgements());
        assert!((seen.mean_s() - 0.041).abs() < 1e-9);
    }

    #[test]
    fn other_pauses_are_not() {
        let is = |pause: fn(u64) -> i64, ports: u64| {
            let rows: Vec<_> = (0..100).map(|at| row(at, 4000 + (at % ports) as u16, pause(at))).collect();
            AnswerPauses::of(&rows).are_of_delayed_acknowledgements()
        };
        // Work between head and body takes as long in the first answer; nor is every pause one of 40 ms.
        assert!(!is(|_| 41, 4) && !is(|_| 0, 4) && !is(|_| 20, 4) && !is(|_| 100, 4));
        // Pauses of any length, of which some are of 40 ms, are the server's.
        assert!(!is(|at| (at * 37 % 90) as i64, 4));
        // On a connection that rests, acknowledgements are quick again; the others make up the time all the same.
        let rests = |at: u64| if at < 4 || !at.is_multiple_of(3) { 0 } else { 41 };
        assert!(is(rests, 4));
        // A connection for each request has first answers only.
        assert!(!is(|at| if at < 50 { 0 } else { 41 }, 100));
    }
}
