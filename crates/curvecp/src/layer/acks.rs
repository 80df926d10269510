//! Which of the peer's messages to acknowledge, and when.
//!
//! A peer that may be the reference gets one acknowledgment for every message, at once: its control of the rate needs
//! them. A peer of ours gets one for ten messages or an eighth of a round trip, except where it can use one at once.

use std::collections::VecDeque;
use std::time::Duration;

/// Messages per acknowledgment for a peer of ours.
const MESSAGES_PER_ACK: u32 = 10;
/// The longest that an acknowledgment is delayed; the sender's probe time-out allows for it.
pub(super) const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// Echoes that wait for a peer that gets one for each message. The reference has 128 messages on their way at most.
const MOST_ECHOES: usize = 128;

/// The part of an acknowledgment that is about one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Echo {
    pub(super) id: u32,
    /// Since the message arrived.
    pub(super) delay: Duration,
    pub(super) duplicate: bool,
}

/// What to acknowledge.
#[derive(Debug, Default)]
pub(super) struct Acks {
    /// Messages that each need an acknowledgment.
    each: VecDeque<u32>,
    /// The newest message that is not acknowledged: number, arrival, whether it was a duplicate.
    newest: Option<(u32, Duration, bool)>,
    /// The highest number so far.
    highest: u32,
    waiting: u32,
    at_once: bool,
    due: Option<Duration>,
}

impl Acks {
    /// A message of a peer that gets an acknowledgment for each. Without an echo the acknowledgment has only ranges.
    pub(super) fn each(&mut self, id: u32, echo: bool) {
        if !echo {
            self.at_once = true;
        } else if self.each.len() < MOST_ECHOES {
            self.each.push_back(id);
        }
    }

    /// A message of a peer that wants few acknowledgments. `urgent`: it can use one at once.
    pub(super) fn some(&mut self, now: Duration, id: u32, duplicate: bool, urgent: bool, delay: Duration) {
        let in_order = id.wrapping_sub(self.highest) == 1;
        if (id.wrapping_sub(self.highest) as i32) > 0 {
            self.highest = id;
            self.newest = Some((id, now, duplicate));
        } else if duplicate || self.newest.is_none() {
            self.newest = Some((id, now, duplicate));
        }
        self.waiting += 1;
        self.at_once |= urgent || duplicate || !in_order || self.waiting >= MESSAGES_PER_ACK;
        self.due.get_or_insert(now + delay);
    }

    /// Asks for an acknowledgment without an echo, to report a larger window or the end.
    pub(super) fn report(&mut self) {
        self.at_once = true;
    }

    /// Whether an acknowledgment is to leave now.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.at_once || !self.each.is_empty() || self.due.is_some_and(|due| due <= now)
    }

    /// When an acknowledgment is to leave, if one waits.
    pub(super) fn deadline(&self) -> Option<Duration> {
        if self.at_once || !self.each.is_empty() { Some(Duration::ZERO) } else { self.due }
    }

    /// Takes what the next message of ours says; no message is echoed twice.
    pub(super) fn take(&mut self, now: Duration) -> Echo {
        (self.waiting, self.at_once, self.due) = (0, false, None);
        if let Some(id) = self.each.pop_front() {
            return Echo { id, ..Echo::default() };
        }
        self.newest.take().map_or_else(Echo::default, |(id, at, duplicate)| Echo {
            id,
            delay: now.saturating_sub(at),
            duplicate,
        })
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes of memory.
    pub(super) fn memory_bytes(&self) -> usize {
        self.each.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_reference_gets_every_echo_once_and_in_order() {
        let mut acks = Acks::default();
        for id in [4, 5, 7] {
            acks.each(id, true);
        }
        acks.each(6, false);
        let echoes: Vec<u32> = std::iter::from_fn(|| acks.is_due(MS).then(|| acks.take(MS).id)).collect();
        assert_eq!(echoes, [4, 5, 7]);
    }

    #[test]
    fn messages_in_order_share_acknowledgments() {
        let mut acks = Acks::default();
        for id in 1..10 {
            acks.some(id * MS, id, false, false, 25 * MS);
            assert!(!acks.is_due(id * MS), "message {id}");
        }
        acks.some(10 * MS, 10, false, false, 25 * MS);
        assert_eq!(acks.take(12 * MS), Echo { id: 10, delay: 2 * MS, duplicate: false });
        acks.some(20 * MS, 11, false, false, 25 * MS);
        assert_eq!(acks.deadline(), Some(45 * MS));
        assert!(acks.is_due(45 * MS));
    }

    #[test]
    fn a_gap_a_duplicate_and_an_urgent_message_are_acknowledged_at_once() {
        for (id, duplicate, urgent) in [(3, false, false), (2, true, false), (2, false, true)] {
            let mut acks = Acks::default();
            acks.some(MS, 1, false, false, 25 * MS);
            assert!(!acks.is_due(MS));
            acks.some(MS, id, duplicate, urgent, 25 * MS);
            assert_eq!(acks.take(MS), Echo { id, delay: Duration::ZERO, duplicate });
        }
    }
}
