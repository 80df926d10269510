//! Delivery rate: draft-cheng-iccrg-delivery-rate-estimation, as part of draft-ietf-ccwg-bbr, section 4.1.

use std::time::Duration;

/// The data delivered over a time, as one acknowledgment shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateSample {
    /// Bytes of messages per second.
    pub bytes_per_s: f64,
    /// Bytes delivered when the newest message that arrived was sent.
    pub prior_delivered: u64,
    /// Bytes delivered now.
    pub delivered: u64,
    /// Bytes that were in flight when that message was sent, it among them.
    pub in_flight_at_send: u64,
    /// Bytes lost since it was sent.
    pub lost: u64,
    /// Whether the sender had nothing more to send when it was sent.
    pub application_limited: bool,
}

/// The estimator's state when a message was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Snapshot {
    delivered: u64,
    delivered_time: Duration,
    first_sent: Duration,
    lost: u64,
    pub(crate) in_flight: u64,
    pub(crate) application_limited: bool,
}

/// Counts deliveries.
#[derive(Debug, Default)]
pub(crate) struct RateEstimator {
    delivered: u64,
    delivered_time: Duration,
    first_sent: Duration,
    lost: u64,
    /// Until this much is delivered, samples are limited by the application.
    limited_until: u64,
}

impl RateEstimator {
    /// Begins anew with a message that is sent while nothing is in flight.
    pub(crate) fn restart(&mut self, now: Duration) {
        (self.first_sent, self.delivered_time) = (now, now);
    }

    pub(crate) fn snapshot(&self, in_flight: u64) -> Snapshot {
        Snapshot {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight,
            application_limited: self.limited_until > self.delivered,
        }
    }

    pub(crate) fn delivered(&mut self, now: Duration, bytes: u64) {
        self.delivered += bytes;
        self.delivered_time = now;
    }

    pub(crate) fn lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    pub(crate) fn lost_since(&self, snapshot: &Snapshot) -> u64 {
        self.lost - snapshot.lost
    }

    pub(crate) fn application_limited(&mut self, in_flight: u64) {
        self.limited_until = (self.delivered + in_flight).max(1);
    }

    /// The rate that the arrival of a message shows: over the longer of the time it took to send and to acknowledge.
    /// An interval below the shortest round trip is not a measurement.
    pub(crate) fn sample(
        &mut self,
        now: Duration,
        sent: Duration,
        at: &Snapshot,
        round_trip: Duration,
    ) -> Option<RateSample> {
        let send_time = sent.saturating_sub(at.first_sent);
        let ack_time = now.saturating_sub(at.delivered_time);
        self.first_sent = sent;
        let interval = send_time.max(ack_time);
        if interval.is_zero() || interval < round_trip {
            return None;
        }
        Some(RateSample {
            bytes_per_s: (self.delivered - at.delivered) as f64 / interval.as_secs_f64(),
            prior_delivered: at.delivered,
            delivered: self.delivered,
            in_flight_at_send: at.in_flight,
            lost: self.lost - at.lost,
            application_limited: at.application_limited,
        })
    }
}
