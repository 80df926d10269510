//! What happens when time passes: losses, probes, pings, the end of waiting.

use std::time::Duration;

use super::acks::MAX_ACK_DELAY;
use super::{Failure, LayerState, MessageLayer, Peer};
use crate::congestion::LossDetection;

/// The longest time between probes unless the round trip is longer: a peer in its time-wait must see several.
const MAX_PROBE_TIMEOUT: Duration = Duration::from_secs(4);
/// After this time without messages a connection gives back the memory of its buffers.
const TRIM_AFTER: Duration = Duration::from_secs(1);
/// Probes that leave at a time-out: RFC 9002, section 6.2.4.
const PROBES: u8 = 2;

impl MessageLayer {
    /// When to call [`handle_timeout`](Self::handle_timeout) or [`poll_transmit`](Self::poll_transmit) if nothing else
    /// happens before; `None` if time changes nothing. An instant in the past means now.
    pub fn next_deadline(&self) -> Option<Duration> {
        match self.state {
            LayerState::Drained | LayerState::Failed(_) => None,
            LayerState::Closing => {
                Some(self.acks.deadline().map_or(self.time_wait_until, |due| due.min(self.time_wait_until)))
            }
            LayerState::Open => [
                self.acks.deadline(),
                self.paced_until,
                self.expiry,
                self.recovery.loss_time(),
                self.probe_time(),
                self.ping_time(),
                self.trim_time(),
                self.idle_time(),
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    /// Runs all timers that are due by `now`. Messages that become due are taken with
    /// [`poll_transmit`](Self::poll_transmit).
    pub fn handle_timeout(&mut self, now: Duration) {
        let due = |time: Option<Duration>| time.is_some_and(|time| time <= now);
        match self.state {
            LayerState::Drained | LayerState::Failed(_) => return,
            LayerState::Closing => {
                if self.time_wait_until <= now {
                    self.state = LayerState::Drained;
                }
                return;
            }
            LayerState::Open => {}
        }
        if due(self.idle_time()) {
            self.fail(Failure::IdleTimeout);
            return;
        }
        if due(self.recovery.loss_time()) {
            self.find_losses(now);
        }
        if due(self.probe_time()) {
            self.probe(now);
        }
        if due(self.trim_time()) {
            self.send.trim();
            self.receive.trim();
            self.recovery.trim();
        }
        if due(self.ping_time()) {
            self.wants_ping = true;
            self.last_ping = now;
        }
    }

    fn probe(&mut self, now: Duration) {
        self.stats.timeouts += 1;
        if self.path_mtu.timed_out(self.recovery.timed_out()) {
            self.fall_to_base(now);
        }
        self.last_ping = now;
        match self.controller.loss_detection() {
            LossDetection::Rfc9002 => {
                self.controller.on_timeout(now);
                self.probes = PROBES;
                self.probe_number = self.recovery.next_number();
            }
            LossDetection::Timeout(_) => self.wants_ping = true,
        }
    }

    /// When a probe leaves: something is in flight, or the peer's window holds data back and the news of its growth may
    /// have been lost. The reference's rule for losses needs only the second.
    fn probe_time(&self) -> Option<Duration> {
        let by_rfc_9002 = self.controller.loss_detection() == LossDetection::Rfc9002;
        let in_flight = self.recovery.in_flight() > 0;
        if !(if by_rfc_9002 { in_flight || self.flow_limited } else { !in_flight && self.flow_limited }) {
            return None;
        }
        let ack_delay = if matches!(self.peer, Peer::Ours { .. }) { MAX_ACK_DELAY } else { Duration::ZERO };
        let since = self.last_ping.max(self.recovery.last_sent());
        Some(since + self.recovery.probe_timeout(ack_delay, MAX_PROBE_TIMEOUT))
    }

    fn trim_time(&self) -> Option<Duration> {
        let since = self.last_received.max(self.recovery.last_sent());
        (self.send.can_trim() || self.receive.can_trim()).then_some(since + TRIM_AFTER)
    }

    fn ping_time(&self) -> Option<Duration> {
        let interval = self.config.keep_alive?;
        Some(self.last_received.max(self.last_ping) + interval)
    }

    fn idle_time(&self) -> Option<Duration> {
        Some(self.last_received + self.config.idle_timeout?)
    }
}
