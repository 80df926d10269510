//! BBR, version 3: draft-ietf-ccwg-bbr (Cardwell, Swett, Beshay).
//!
//! It models the path by its bandwidth and its shortest round trip, paces by the first, and bounds what is in flight by
//! their product and by the loss it has met. Names of states and parameters are those of the draft. Left out: the
//! draft's packet conservation in the first round of a recovery (the short-term bounds act within the same round trip),
//! its restart from idle, and ECN, of which the protocol carries no marks.

mod model;
mod phases;

use std::time::Duration;

use super::{Ack, Controller, INITIAL_WINDOW, Loss, Pacing, SEGMENT_BYTES};
use crate::random::Random;
use crate::recovery::Rtt;
use model::Model;

const STARTUP_PACING_GAIN: f64 = 2.77;
const DRAIN_PACING_GAIN: f64 = 0.35;
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
const UP_PACING_GAIN: f64 = 1.25;
const DOWN_PACING_GAIN: f64 = 0.90;
const PROBE_RTT_WINDOW_GAIN: f64 = 0.5;
/// Paces slightly below the bandwidth, so that a queue does not build up by error.
const PACING_MARGIN: f64 = 0.99;
/// The share of lost bytes that a path is allowed.
const LOSS_THRESHOLD: f64 = 0.02;
/// The decrease of the bounds on loss.
const BETA: f64 = 0.7;
/// The share of the bound on what is in flight that is left to others.
const HEADROOM: f64 = 0.15;
const MIN_PIPE_WINDOW: f64 = (4 * SEGMENT_BYTES) as f64;
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(5);
const PROBE_RTT_DURATION: Duration = Duration::from_millis(200);
const MIN_RTT_WINDOW: Duration = Duration::from_secs(10);

/// The phase of BBR's cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt {
        /// The instant at which the phase may end, once little enough is in flight.
        done: Option<Duration>,
    },
}

/// The state of BBR.
#[derive(Clone, Debug)]
pub struct Bbr {
    model: Model,
    phase: Phase,
    window: f64,
    /// The window before the last probe of the round-trip time.
    saved_window: f64,
    random: Random,
    /// When the current phase of the probe of bandwidth began.
    cycle_stamp: Duration,
    /// How long until bandwidth is probed again, and after how many rounds in any case.
    probe_wait: Duration,
    rounds_since_probe: u64,
    /// Whether losses now show that the probe was too much.
    probe_samples: bool,
    /// Rounds of growth while probing, and bytes to the next step of it.
    up_rounds: u32,
    up_bytes_per_step: f64,
    up_acked: f64,
    full_bandwidth: f64,
    full_rounds: u32,
    /// The bandwidth stopped growing since it was last reset.
    full_now: bool,
    /// The pipe has been full once.
    full_reached: bool,
    loss_events_in_round: u32,
    pacing_rate: f64,
}

impl Bbr {
    /// BBR at its start; the seed spreads its probes.
    pub fn new(seed: u64, now: Duration) -> Self {
        let window = INITIAL_WINDOW as f64;
        Self {
            model: Model::new(now),
            phase: Phase::Startup,
            window,
            saved_window: 0.0,
            random: Random::new(seed),
            cycle_stamp: now,
            probe_wait: Duration::ZERO,
            rounds_since_probe: 0,
            probe_samples: false,
            up_rounds: 0,
            up_bytes_per_step: f64::INFINITY,
            up_acked: 0.0,
            full_bandwidth: 0.0,
            full_rounds: 0,
            full_now: false,
            full_reached: false,
            loss_events_in_round: 0,
            pacing_rate: 0.0,
        }
    }

    fn pacing_gain(&self) -> f64 {
        match self.phase {
            Phase::Startup => STARTUP_PACING_GAIN,
            Phase::Drain => DRAIN_PACING_GAIN,
            Phase::Down => DOWN_PACING_GAIN,
            Phase::Up => UP_PACING_GAIN,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt { .. } => 1.0,
        }
    }

    fn window_gain(&self) -> f64 {
        match self.phase {
            Phase::Up => UP_WINDOW_GAIN,
            Phase::ProbeRtt { .. } => PROBE_RTT_WINDOW_GAIN,
            _ => WINDOW_GAIN,
        }
    }

    /// Bytes in flight at a gain over the product of bandwidth and round-trip time.
    fn inflight(&self, gain: f64) -> f64 {
        self.model.bdp().map_or(INITIAL_WINDOW as f64, |bdp| (bdp * gain).max(MIN_PIPE_WINDOW))
    }

    /// The bound from losses, less what is left to others.
    fn inflight_with_headroom(&self) -> f64 {
        let high = self.model.inflight_high;
        if high.is_infinite() {
            return high;
        }
        let headroom = (HEADROOM * high).max(SEGMENT_BYTES as f64);
        (high - headroom).max(MIN_PIPE_WINDOW)
    }

    fn set_pacing_rate(&mut self, rtt: &Rtt) {
        let gain = self.pacing_gain();
        let bandwidth = self.model.bandwidth();
        if bandwidth == 0.0 {
            let seconds = rtt.min().unwrap_or(Duration::from_millis(1)).as_secs_f64().max(1e-6);
            self.pacing_rate = STARTUP_PACING_GAIN * self.window / seconds;
            return;
        }
        let rate = PACING_MARGIN * gain * bandwidth;
        if self.full_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_window(&mut self, acked: f64) {
        let most = self.inflight(self.window_gain()) + self.model.extra_acked();
        // A margin for pacing in bursts: draft, section 4.6.4.2.
        let most = most + 3.0 * SEGMENT_BYTES as f64;
        if self.full_reached {
            self.window = (self.window + acked).min(most);
        } else if self.window < most || self.model.delivered() < INITIAL_WINDOW as f64 {
            self.window += acked;
        }
        self.window = self.window.max(MIN_PIPE_WINDOW);
        let cap = match self.phase {
            Phase::ProbeRtt { .. } => self.inflight_with_headroom().min(self.inflight(PROBE_RTT_WINDOW_GAIN)),
            Phase::Cruise => self.inflight_with_headroom(),
            Phase::Down | Phase::Refill | Phase::Up => self.model.inflight_high,
            Phase::Startup | Phase::Drain => f64::INFINITY,
        };
        self.window = self.window.min(cap.min(self.model.inflight_low).max(MIN_PIPE_WINDOW));
    }
}

impl Controller for Bbr {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(rate) = &ack.rate {
            let round = self.model.on_rate(rate, ack.now, ack.bytes, self.window);
            if round {
                self.rounds_since_probe += 1;
                self.on_round(rate);
            }
            self.check_full_pipe(rate, round);
            self.adapt_upper_bound(rate, ack);
            self.advance_phase(ack, round);
        }
        self.model.on_min_rtt(ack.now, ack.sample);
        self.check_probe_rtt(ack);
        self.set_pacing_rate(ack.rtt);
        self.set_window(ack.bytes as f64);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.model.loss_in_round = true;
        self.loss_events_in_round += 1;
        let too_many = loss.lost_since_send as f64 > loss.in_flight_at_send as f64 * LOSS_THRESHOLD;
        if self.probe_samples && too_many {
            // What was in flight when the share of losses passed the threshold: draft, section 4.5.10.3.
            let before_this = (loss.in_flight_at_send.saturating_sub(loss.bytes)) as f64;
            let lost_before = loss.lost_since_send.saturating_sub(loss.bytes) as f64;
            let prefix = ((LOSS_THRESHOLD * before_this - lost_before) / (1.0 - LOSS_THRESHOLD)).max(0.0);
            self.inflight_too_high(loss.now, before_this + prefix, loss.application_limited);
        }
    }

    fn on_persistent_congestion(&mut self, _now: Duration) {
        self.window = MIN_PIPE_WINDOW;
    }

    fn on_spurious_event(&mut self, _now: Duration) {
        self.model.reset_lower_bounds();
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn pacing(&self, _rtt: &Rtt) -> Pacing {
        if self.pacing_rate > 0.0 { Pacing::Rate(self.pacing_rate) } else { Pacing::Unpaced }
    }
}

#[cfg(test)]
mod tests;
