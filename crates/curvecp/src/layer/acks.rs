//! Which of the peer's messages to acknowledge, and when.
//!
//! A peer that may be the reference gets one acknowledgment for every message, at once: its control of the rate needs
//! them. A peer of ours gets about eight in a round trip, one for at most ten messages and for at least two, except where
//! it can use one at once.

use std::collections::VecDeque;
use std::time::Duration;

/// Acknowledgments in a round trip for a peer of ours.
const ACKS_PER_ROUND_TRIP: u32 = 8;
/// Messages per acknowledgment at least and at most.
const MESSAGES_PER_ACK: [u32; 2] = [2, 10];
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
    /// The start of the current round trip, and the number of messages since then; then the number in the last round trip.
    round: (Duration, u32),
    last_round: u32,
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

    /// A message of a peer that wants few acknowledgments. `urgent`: it can use one at once. `delay`: how long an
    /// acknowledgment may wait, an eighth of a round trip.
    pub(super) fn some(&mut self, now: Duration, id: u32, duplicate: bool, urgent: bool, delay: Duration) {
        if now.saturating_sub(self.round.0) >= delay * ACKS_PER_ROUND_TRIP {
            self.last_round = self.round.1;
            self.round = (now, 0);
        }
        self.round.1 += 1;
        let in_order = id.wrapping_sub(self.highest) == 1;
        if (id.wrapping_sub(self.highest) as i32) > 0 {
            self.highest = id;
            self.newest = Some((id, now, duplicate));
        } else if duplicate || self.newest.is_none() {
            self.newest = Some((id, now, duplicate));
        }
        self.waiting += 1;
        let [least, most] = MESSAGES_PER_ACK;
        let enough = (self.last_round / ACKS_PER_ROUND_TRIP).clamp(least, most);
        self.at_once |= urgent || duplicate || !in_order || self.waiting >= enough;
        self.due.get_or_insert(now + delay);
    }

    /// A probe of the path's length, which nothing but its echo acknowledges.
    pub(super) fn probe(&mut self, id: u32) {
        if id.wrapping_sub(self.highest) == 1 {
            self.highest = id;
        }
        self.each(id, true);
    }

    /// Asks for an acknowledgment without an echo, to report a larger window or the end.
    pub(super) fn report(&mut self) {
        self.at_once = true;
    }

    /// Whether an acknowledgment is to leave now.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        self.at_once || !self.each.is_empty() || self.due.is_some_and(|due| due <= now)
    }

    /// Whether echoes remain for later messages. The next message must not acknowledge their blocks out of order: the
    /// reference would compute nonsense from the echo of a block that a range has acknowledged.
    pub(super) fn has_more(&self) -> bool {
        !self.each.is_empty()
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

    /// Hands in messages at a pace; how many acknowledgments leave in the last round trip of 80 ms.
    fn acks_in_a_round_trip(pace: Duration) -> u32 {
        let mut acks = Acks::default();
        let (mut sent, mut now) = (0, Duration::ZERO);
        for id in 1.. {
            now += pace;
            acks.some(now, id, false, false, 10 * MS);
            if acks.is_due(now) {
                acks.take(now);
                sent += u32::from(now > 400 * MS);
            }
            if now >= 480 * MS {
                break;
            }
        }
        sent
    }

    #[test]
    fn messages_in_order_share_acknowledgments_about_eight_in_a_round_trip() {
        // At 1 ms 80 messages, so one for ten; at 100 us 800, still one for ten; at 8 ms ten, one for two.
        assert!((7..=9).contains(&acks_in_a_round_trip(MS)));
        assert!((78..=82).contains(&acks_in_a_round_trip(MS / 10)));
        assert!((4..=6).contains(&acks_in_a_round_trip(8 * MS)));
    }

    #[test]
    fn a_lone_message_is_acknowledged_after_the_delay() {
        let mut acks = Acks::default();
        acks.some(20 * MS, 1, false, false, 25 * MS);
        assert_eq!(acks.deadline(), Some(45 * MS));
        assert!(!acks.is_due(44 * MS) && acks.is_due(45 * MS));
        assert_eq!(acks.take(46 * MS), Echo { id: 1, delay: 26 * MS, duplicate: false });
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
