//! Proportional rate reduction (RFC 6937, with slow-start reduction bound): spreads the decrease of the window over the
//! round trip of a recovery, in step with what arrives.

use super::SEGMENT_BYTES;
use crate::message::LONGEST_MESSAGE_BYTES;

/// One recovery. All counts are in bytes.
#[derive(Clone, Debug)]
pub(super) struct Prr {
    target: u64,
    flight_at_start: u64,
    delivered: u64,
    sent: u64,
    window: u64,
}

impl Prr {
    /// A recovery that is to end with a window of `target`; `flight` was in flight at its start, `in_flight` still is.
    pub(super) fn new(target: u64, flight: u64, in_flight: u64) -> Self {
        // The first retransmission always leaves.
        let window = in_flight + LONGEST_MESSAGE_BYTES as u64;
        Self { target, flight_at_start: flight.max(1), delivered: 0, sent: 0, window }
    }

    pub(super) fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Takes an acknowledgment of `bytes` bytes that leaves `in_flight`.
    pub(super) fn on_ack(&mut self, bytes: u64, in_flight: u64) {
        self.delivered += bytes;
        let quota = if in_flight > self.target {
            (self.delivered * self.target).div_ceil(self.flight_at_start).saturating_sub(self.sent)
        } else {
            let limit = self.delivered.saturating_sub(self.sent).max(bytes) + SEGMENT_BYTES;
            limit.min(self.target - in_flight)
        };
        self.window = in_flight + quota;
    }

    pub(super) fn window(&self) -> u64 {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const M: u64 = SEGMENT_BYTES;

    /// The first example of RFC 6937, section 4 in the large: twenty in flight, the first lost, a target of ten: one
    /// message leaves for every two that arrive.
    #[test]
    fn half_as_much_leaves_as_arrives_where_the_window_halves() {
        let mut prr = Prr::new(10 * M, 20 * M, 19 * M);
        let (mut in_flight, mut sent) = (19 * M, 0);
        for _ in 0..19 {
            in_flight -= M;
            prr.on_ack(M, in_flight);
            while in_flight + M <= prr.window() {
                in_flight += M;
                sent += 1;
                prr.on_sent(M);
            }
        }
        assert!((9..=10).contains(&sent), "{sent}");
        assert!(in_flight.abs_diff(10 * M) <= M, "{in_flight}");
    }

    #[test]
    fn after_heavy_loss_it_grows_back_to_the_target_as_slow_start() {
        let mut prr = Prr::new(10 * M, 20 * M, 4 * M);
        prr.on_ack(M, 3 * M);
        assert_eq!(prr.window(), 5 * M);
        prr.on_sent(2 * M);
        prr.on_ack(M, 4 * M);
        assert_eq!(prr.window(), 6 * M);
        prr.on_ack(20 * M, 4 * M);
        assert_eq!(prr.window(), 10 * M, "never beyond the target");
    }
}
