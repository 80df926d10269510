//! How BBR moves between its phases: it fills the pipe, drains it, and then probes for bandwidth and round-trip time.

use std::time::Duration;

use super::{BETA, Bbr, LOSS_THRESHOLD, PROBE_RTT_DURATION, PROBE_RTT_WINDOW_GAIN, Phase, UP_PACING_GAIN};
use crate::congestion::{Ack, SEGMENT_BYTES};
use crate::recovery::RateSample;

/// The pipe is full after this many rounds in which the bandwidth grew by less than a quarter.
const FULL_ROUNDS: u32 = 3;
const FULL_GROWTH: f64 = 1.25;
/// Losses in a round of the start that count as a full pipe.
const STARTUP_LOSSES: u32 = 6;
/// Rounds between probes at which a flow of Reno would have probed, too, at most.
const MOST_RENO_ROUNDS: f64 = 63.0;

impl Bbr {
    /// At the end of a round trip: the bounds that losses impose.
    pub(super) fn on_round(&mut self, rate: &RateSample) {
        let probing = matches!(self.phase, Phase::Startup | Phase::Refill | Phase::Up);
        if self.model.loss_in_round && !probing {
            self.model.adapt_lower_bounds(self.window);
        }
        let share = rate.lost as f64 / rate.in_flight_at_send.max(1) as f64;
        if self.phase == Phase::Startup
            && self.loss_events_in_round >= STARTUP_LOSSES
            && share > LOSS_THRESHOLD
        {
            self.full_reached = true;
            let delivered = (rate.delivered - rate.prior_delivered) as f64;
            self.model.inflight_high = self.inflight(1.0).max(delivered);
        }
        self.loss_events_in_round = 0;
        self.model.reset_round();
    }

    /// Whether the bandwidth has stopped growing: draft, section 4.3.1.2.
    pub(super) fn check_full_pipe(&mut self, rate: &RateSample, round: bool) {
        if self.full_now || !round || rate.application_limited {
            return;
        }
        if rate.bytes_per_s >= self.full_bandwidth * FULL_GROWTH {
            self.reset_full_bandwidth();
            self.full_bandwidth = rate.bytes_per_s;
            return;
        }
        self.full_rounds += 1;
        self.full_now = self.full_rounds >= FULL_ROUNDS;
        self.full_reached |= self.full_now;
    }

    fn reset_full_bandwidth(&mut self) {
        (self.full_bandwidth, self.full_rounds, self.full_now) = (0.0, 0, false);
    }

    /// Raises the bound on what is in flight while more of it does no harm: draft, section 4.5.10.3.
    pub(super) fn adapt_upper_bound(&mut self, rate: &RateSample, ack: &Ack<'_>) {
        if rate.lost as f64 > rate.in_flight_at_send as f64 * LOSS_THRESHOLD {
            if self.probe_samples {
                self.inflight_too_high(ack.now, rate.in_flight_at_send as f64, rate.application_limited);
            }
            return;
        }
        if self.model.inflight_high.is_infinite() {
            return;
        }
        self.model.inflight_high = self.model.inflight_high.max(rate.in_flight_at_send as f64);
        if self.phase == Phase::Up && ack.window_limited && self.window >= self.model.inflight_high {
            self.up_acked += ack.bytes as f64;
            let steps = (self.up_acked / self.up_bytes_per_step).floor();
            self.up_acked -= steps * self.up_bytes_per_step;
            self.model.inflight_high += steps * SEGMENT_BYTES as f64;
        }
    }

    /// Growth while probing doubles every round, from one segment.
    fn raise_up_slope(&mut self) {
        let growth = SEGMENT_BYTES as f64 * f64::from(1_u32 << self.up_rounds.min(30));
        self.up_rounds += 1;
        self.up_bytes_per_step = (self.window * SEGMENT_BYTES as f64 / growth).max(SEGMENT_BYTES as f64);
    }

    /// Losses show that the probe put too much in flight.
    pub(super) fn inflight_too_high(&mut self, now: Duration, in_flight: f64, application_limited: bool) {
        self.probe_samples = false;
        if !application_limited {
            let target = self.inflight(1.0).min(self.window);
            self.model.inflight_high = in_flight.max(target * BETA);
        }
        if self.phase == Phase::Up {
            self.start_down(now);
        }
    }

    /// Moves to the next phase if it is time.
    pub(super) fn advance_phase(&mut self, ack: &Ack<'_>, round: bool) {
        let in_flight = ack.in_flight as f64;
        match self.phase {
            Phase::Startup if self.full_reached => self.phase = Phase::Drain,
            Phase::Drain if in_flight <= self.inflight(1.0) => self.start_down(ack.now),
            Phase::Down => self.check_end_of_down(ack.now, in_flight),
            Phase::Cruise => {
                self.check_time_to_probe(ack.now);
            }
            Phase::Refill if round => {
                self.probe_samples = true;
                self.phase = Phase::Up;
                self.cycle_stamp = ack.now;
                self.reset_full_bandwidth();
                self.full_bandwidth = ack.rate.map_or(0.0, |rate| rate.bytes_per_s);
                (self.up_rounds, self.up_acked) = (0, 0.0);
                self.raise_up_slope();
                self.model.start_round();
            }
            Phase::Up => {
                if round {
                    self.raise_up_slope();
                }
                self.check_end_of_up(ack);
            }
            _ => {}
        }
    }

    fn check_end_of_down(&mut self, now: Duration, in_flight: f64) {
        let drained = in_flight <= self.inflight_with_headroom() && in_flight <= self.inflight(1.0);
        if !self.check_time_to_probe(now) && drained {
            self.phase = Phase::Cruise;
        }
    }

    fn check_end_of_up(&mut self, ack: &Ack<'_>) {
        if ack.window_limited && self.window >= self.model.inflight_high {
            // The bound, not the path, holds the bandwidth back.
            self.reset_full_bandwidth();
            self.full_bandwidth = ack.rate.map_or(0.0, |rate| rate.bytes_per_s);
            return;
        }
        let lasted = ack.now.saturating_sub(self.cycle_stamp);
        let queue_is_built = self.model.min_rtt().is_some_and(|min| lasted > min)
            && ack.in_flight as f64 > self.inflight(UP_PACING_GAIN);
        if self.full_now || queue_is_built {
            self.start_down(ack.now);
        }
    }

    pub(super) fn start_down(&mut self, now: Duration) {
        self.phase = Phase::Down;
        self.model.reset_round();
        self.model.advance_bandwidth_filter();
        self.up_bytes_per_step = f64::INFINITY;
        self.cycle_stamp = now;
        // Two to three seconds, and for coexistence with Reno a random number of rounds less.
        self.rounds_since_probe = self.random.below(2);
        self.probe_wait = Duration::from_secs(2) + Duration::from_secs_f64(self.random.share());
        self.model.start_round();
    }

    fn check_time_to_probe(&mut self, now: Duration) -> bool {
        let segments = self.inflight(1.0).min(self.window) / SEGMENT_BYTES as f64;
        let reno_probes = self.rounds_since_probe as f64 >= segments.min(MOST_RENO_ROUNDS);
        if now.saturating_sub(self.cycle_stamp) <= self.probe_wait && !reno_probes {
            return false;
        }
        self.phase = Phase::Refill;
        self.model.reset_lower_bounds();
        (self.up_rounds, self.up_acked) = (0, 0.0);
        self.model.start_round();
        true
    }

    /// Lets the queue drain for a moment every few seconds, to see the shortest round trip: draft, section 4.3.4.
    pub(super) fn check_probe_rtt(&mut self, ack: &Ack<'_>) {
        if let Phase::ProbeRtt { done } = self.phase {
            self.continue_probe_rtt(ack, done);
        } else if self.model.probe_rtt_expired {
            self.saved_window = self.window;
            self.phase = Phase::ProbeRtt { done: None };
        }
    }

    fn continue_probe_rtt(&mut self, ack: &Ack<'_>, done: Option<Duration>) {
        let Some(done) = done else {
            if ack.in_flight as f64 <= self.inflight(PROBE_RTT_WINDOW_GAIN) {
                self.phase = Phase::ProbeRtt { done: Some(ack.now + PROBE_RTT_DURATION) };
            }
            return;
        };
        if ack.now < done {
            return;
        }
        self.model.probed_rtt(ack.now);
        self.window = self.window.max(self.saved_window);
        self.model.reset_lower_bounds();
        self.phase = Phase::Startup;
        if self.full_reached {
            self.start_down(ack.now);
            self.phase = Phase::Cruise;
        }
    }
}
