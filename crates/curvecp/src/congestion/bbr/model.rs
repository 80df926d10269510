//! The path as BBR sees it: bandwidth, shortest round trip, aggregation of acknowledgments, bounds learned from losses.

use std::time::Duration;

use super::{BETA, MIN_RTT_WINDOW, PROBE_RTT_INTERVAL};
use crate::recovery::RateSample;

/// Rounds over which the aggregation of acknowledgments is remembered.
const EXTRA_ACKED_ROUNDS: usize = 10;

#[derive(Clone, Debug)]
pub(super) struct Model {
    /// The highest bandwidth of the last and of this cycle of probes, in bytes/s.
    bandwidths: [f64; 2],
    bandwidth_low: f64,
    /// The most in flight that the path takes without too many losses; learned over probes.
    pub(super) inflight_high: f64,
    /// The lower bound of the data in flight, for now; learned from the losses of the last round.
    pub(super) inflight_low: f64,
    bandwidth_latest: f64,
    inflight_latest: f64,
    pub(super) loss_in_round: bool,
    min_rtt: Option<Duration>,
    min_rtt_stamp: Duration,
    probe_rtt_min: Option<Duration>,
    probe_rtt_stamp: Duration,
    pub(super) probe_rtt_expired: bool,
    delivered: u64,
    next_round: u64,
    extra_acked: [f64; EXTRA_ACKED_ROUNDS],
    rounds: usize,
    epoch_start: Duration,
    epoch_acked: f64,
}

impl Model {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            bandwidths: [0.0; 2],
            bandwidth_low: f64::INFINITY,
            inflight_high: f64::INFINITY,
            inflight_low: f64::INFINITY,
            bandwidth_latest: 0.0,
            inflight_latest: 0.0,
            loss_in_round: false,
            min_rtt: None,
            min_rtt_stamp: now,
            probe_rtt_min: None,
            probe_rtt_stamp: now,
            probe_rtt_expired: false,
            delivered: 0,
            next_round: 0,
            extra_acked: [0.0; EXTRA_ACKED_ROUNDS],
            rounds: 0,
            epoch_start: now,
            epoch_acked: 0.0,
        }
    }

    /// Bandwidth by the filter over two cycles, in bytes/s.
    pub(super) fn max_bandwidth(&self) -> f64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    /// Bandwidth to pace by.
    pub(super) fn bandwidth(&self) -> f64 {
        self.max_bandwidth().min(self.bandwidth_low)
    }

    /// The product of bandwidth and shortest round trip, once both are known.
    pub(super) fn bdp(&self) -> Option<f64> {
        let rtt = self.min_rtt?;
        (self.max_bandwidth() > 0.0).then(|| self.bandwidth() * rtt.as_secs_f64())
    }

    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    pub(super) fn delivered(&self) -> f64 {
        self.delivered as f64
    }

    pub(super) fn extra_acked(&self) -> f64 {
        self.extra_acked.iter().copied().fold(0.0, f64::max)
    }

    /// Takes a rate sample; returns whether a round trip has passed.
    pub(super) fn on_rate(&mut self, rate: &RateSample, now: Duration, acked: u64, window: f64) -> bool {
        self.delivered = rate.delivered;
        let round = rate.prior_delivered >= self.next_round;
        if round {
            self.next_round = self.delivered;
            self.rounds += 1;
            self.extra_acked[self.rounds % EXTRA_ACKED_ROUNDS] = 0.0;
        }
        if rate.bytes_per_s >= self.max_bandwidth() || !rate.application_limited {
            self.bandwidths[1] = self.bandwidths[1].max(rate.bytes_per_s);
        }
        self.bandwidth_latest = self.bandwidth_latest.max(rate.bytes_per_s);
        self.inflight_latest = self.inflight_latest.max((rate.delivered - rate.prior_delivered) as f64);
        self.count_aggregation(now, acked as f64, window);
        round
    }

    /// Bytes acknowledged beyond what the bandwidth explains: draft, section 4.5.9.
    fn count_aggregation(&mut self, now: Duration, acked: f64, window: f64) {
        let expected = |since: Duration| self.bandwidth() * now.saturating_sub(since).as_secs_f64();
        let mut expected_bytes = expected(self.epoch_start);
        if self.epoch_acked <= expected_bytes {
            (self.epoch_acked, self.epoch_start, expected_bytes) = (0.0, now, 0.0);
        }
        self.epoch_acked += acked;
        let extra = (self.epoch_acked - expected_bytes).min(window);
        let slot = &mut self.extra_acked[self.rounds % EXTRA_ACKED_ROUNDS];
        *slot = slot.max(extra);
    }

    /// The cycle of probes is over: bandwidth of the one before is forgotten.
    pub(super) fn advance_bandwidth_filter(&mut self) {
        if self.bandwidths[1] > 0.0 {
            self.bandwidths = [self.bandwidths[1], 0.0];
        }
    }

    /// Lowers the short-term bounds after a round with losses: draft, section 4.5.10.3.
    pub(super) fn adapt_lower_bounds(&mut self, window: f64) {
        if self.bandwidth_low.is_infinite() {
            self.bandwidth_low = self.max_bandwidth();
        }
        if self.inflight_low.is_infinite() {
            self.inflight_low = window;
        }
        self.bandwidth_low = self.bandwidth_latest.max(BETA * self.bandwidth_low);
        self.inflight_low = self.inflight_latest.max(BETA * self.inflight_low);
    }

    pub(super) fn reset_lower_bounds(&mut self) {
        (self.bandwidth_low, self.inflight_low) = (f64::INFINITY, f64::INFINITY);
    }

    /// Begins to measure the next round.
    pub(super) fn reset_round(&mut self) {
        (self.bandwidth_latest, self.inflight_latest, self.loss_in_round) = (0.0, 0.0, false);
    }

    /// A new round begins here, for the start of a phase.
    pub(super) fn start_round(&mut self) {
        self.next_round = self.delivered;
    }

    /// Takes a sample of the round-trip time: draft, section 4.3.4.4.
    pub(super) fn on_min_rtt(&mut self, now: Duration, sample: Option<Duration>) {
        self.probe_rtt_expired = now > self.probe_rtt_stamp + PROBE_RTT_INTERVAL;
        if let Some(sample) = sample
            && (self.probe_rtt_min.is_none_or(|min| sample < min) || self.probe_rtt_expired)
        {
            (self.probe_rtt_min, self.probe_rtt_stamp) = (Some(sample), now);
        }
        let expired = now > self.min_rtt_stamp + MIN_RTT_WINDOW;
        if let Some(min) = self.probe_rtt_min
            && (self.min_rtt.is_none_or(|old| min < old) || expired)
        {
            (self.min_rtt, self.min_rtt_stamp) = (Some(min), self.probe_rtt_stamp);
        }
    }

    /// The probe of the round-trip time has been made.
    pub(super) fn probed_rtt(&mut self, now: Duration) {
        self.probe_rtt_stamp = now;
    }
}
