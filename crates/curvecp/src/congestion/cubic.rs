//! CUBIC: RFC 9438, with HyStart++ (RFC 9406) at the start and proportional rate reduction (RFC 6937) after a loss.

use std::time::Duration;

use super::hystart::{self, HyStart};
use super::prr::Prr;
use super::{Ack, Controller, INITIAL_WINDOW, Loss, MIN_WINDOW, Pacing, SEGMENT_BYTES, Sent};
use crate::recovery::Rtt;

/// The constant C, in segments per second cubed: RFC 9438, section 5.1.
const C: f64 = 0.4;
/// The multiplicative decrease: RFC 9438, section 4.6.
const BETA: f64 = 0.7;
/// Segments per window by which an AIMD with this decrease is as aggressive as Reno: RFC 9438, section 4.3.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The segment by which the window grows where losses come with a queue, in bytes: the reference's longest message.
const SEGMENT: f64 = SEGMENT_BYTES as f64;
/// The bytes of a TCP segment on Ethernet.
const TCP_SEGMENT: f64 = 1448.0;

/// A stretch of congestion avoidance.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Duration,
    /// Seconds until the curve is back at the old window.
    k: f64,
    /// The window that Reno would have.
    reno: f64,
}

/// The segment of the Reno-friendly region where losses are independent of the queue, so random for each packet, in bytes.
/// It gives the throughput of a TCP flow at the same probability of loss per packet: a Reno window is proportional to
/// the root of (growth per round trip · data per packet). The aim is that of TFRC-SP, RFC 4828, for small packets.
fn segment_under_random_loss(most_data: f64) -> f64 {
    TCP_SEGMENT * TCP_SEGMENT / most_data
}

/// The segment of the Reno-friendly region: HyStart++'s rule for the end of slow start decides whether a queue stands.
fn reno_segment(rtt: &Rtt, most_data: f64) -> f64 {
    let shortest = rtt.min().unwrap_or_default();
    let queued = rtt.smoothed() > shortest + hystart::rtt_threshold(shortest);
    if queued { SEGMENT } else { segment_under_random_loss(most_data) }
}

/// What a congestion event changes. Windows are in bytes.
#[derive(Clone, Copy, Debug)]
struct Curve {
    window: f64,
    threshold: f64,
    w_max: f64,
    /// The window before the last event.
    prior: f64,
    epoch: Option<Epoch>,
}

impl Curve {
    /// The window that the cubic function gives after a time in an epoch: RFC 9438, section 4.2.
    fn at(&self, epoch: &Epoch, seconds: f64) -> f64 {
        C * SEGMENT * (seconds - epoch.k).powi(3) + self.w_max
    }

    /// Grows by an acknowledgment in congestion avoidance.
    fn grow(&mut self, ack: &Ack<'_>) {
        let (now, rtt, bytes) = (ack.now, ack.rtt, ack.bytes as f64);
        let mut epoch = self.epoch.unwrap_or_else(|| {
            self.w_max = self.w_max.max(self.window);
            let k = ((self.w_max - self.window) / (C * SEGMENT)).cbrt();
            Epoch { start: now, k, reno: self.window }
        });
        let alpha = if epoch.reno >= self.prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * reno_segment(rtt, ack.most_data as f64) * bytes / self.window;
        let seconds = now.saturating_sub(epoch.start).as_secs_f64();
        if self.at(&epoch, seconds) < epoch.reno {
            self.window = self.window.max(epoch.reno);
        } else {
            let target =
                self.at(&epoch, seconds + rtt.smoothed().as_secs_f64()).clamp(self.window, 1.5 * self.window);
            self.window += (target - self.window) / self.window * bytes;
        }
        self.epoch = Some(epoch);
    }

    /// Reduces the window: RFC 9438, sections 4.6 and 4.7.
    fn reduce(&mut self) {
        self.w_max = if self.window < self.w_max { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.prior = self.window;
        self.window = (self.window * BETA).max(MIN_WINDOW as f64);
        self.threshold = self.window;
        self.epoch = None;
    }
}

/// The state of CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    curve: Curve,
    /// The curve before the last event, in case it was none.
    before: Option<Curve>,
    slow_start: HyStart,
    recovery: Option<Prr>,
    last_ack: Duration,
}

impl Cubic {
    /// CUBIC in slow start with a window of ten messages.
    pub fn new() -> Self {
        let window = INITIAL_WINDOW as f64;
        let curve = Curve { window, threshold: f64::INFINITY, w_max: 0.0, prior: window, epoch: None };
        Self { curve, before: None, slow_start: HyStart::new(), recovery: None, last_ack: Duration::ZERO }
    }
}

impl Default for Cubic {
    fn default() -> Self {
        Self::new()
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &Sent) {
        if let Some(recovery) = &mut self.recovery {
            recovery.on_sent(sent.bytes);
        }
    }

    fn on_ack(&mut self, ack: &Ack<'_>) {
        let since_last = ack.now.saturating_sub(std::mem::replace(&mut self.last_ack, ack.now));
        if ack.in_recovery {
            if let Some(recovery) = &mut self.recovery {
                recovery.on_ack(ack.bytes, ack.in_flight);
            }
            return;
        }
        self.recovery = None;
        let bytes = ack.bytes as f64;
        if self.curve.window < self.curve.threshold {
            match self.slow_start.growth(ack.sample, ack.largest, ack.next) {
                Some(share) if ack.window_limited => self.curve.window += share * bytes,
                Some(_) => {}
                None => self.curve.threshold = self.curve.window,
            }
        } else if ack.window_limited {
            self.curve.grow(ack);
        } else if let Some(epoch) = &mut self.curve.epoch {
            // Time in which the application sends little does not count: RFC 9438, section 5.8.
            epoch.start += since_last;
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        if !loss.begins_event {
            return;
        }
        self.before = Some(self.curve);
        self.curve.reduce();
        let target = self.curve.window as u64;
        self.recovery = Some(Prr::new(target, loss.in_flight + loss.bytes, loss.in_flight));
    }

    fn on_persistent_congestion(&mut self, _now: Duration) {
        (self.before, self.recovery) = (None, None);
        self.curve.epoch = None;
        self.curve.window = MIN_WINDOW as f64;
        self.slow_start = HyStart::new();
    }

    fn on_spurious_event(&mut self, _now: Duration) {
        if let Some(before) = self.before.take().filter(|before| before.window > self.curve.window) {
            (self.curve, self.recovery) = (before, None);
        }
    }

    fn window(&self) -> u64 {
        let window = self.curve.window as u64;
        self.recovery.as_ref().map_or(window, Prr::window)
    }

    fn pacing(&self, rtt: &Rtt) -> Pacing {
        if rtt.min().is_none() || rtt.smoothed().is_zero() {
            return Pacing::Unpaced;
        }
        // Above the rate of the window, so that the window and not the pace is the limit: RFC 9002, section 7.7.
        let gain = if self.curve.window < self.curve.threshold { 2.0 } else { 1.25 };
        Pacing::Rate(gain * self.curve.window / rtt.smoothed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    /// The segment under random loss with the reference's messages.
    const RANDOM: f64 = TCP_SEGMENT * TCP_SEGMENT / 1024.0;

    fn loss(begins_event: bool) -> Loss {
        Loss {
            now: MS,
            bytes: SEGMENT_BYTES,
            in_flight: 99 * SEGMENT_BYTES,
            in_flight_at_send: 100 * SEGMENT_BYTES,
            lost_since_send: SEGMENT_BYTES,
            application_limited: false,
            begins_event,
            next: 0,
        }
    }

    fn ack<'a>(now: Duration, rtt: &'a Rtt, bytes: u64, window_limited: bool) -> Ack<'a> {
        Ack {
            now,
            bytes,
            in_flight_before: bytes,
            in_flight: 0,
            sample: None,
            rtt,
            rate: None,
            largest: 0,
            next: 1,
            window_limited,
            most_data: 1024,
            in_recovery: false,
        }
    }

    fn rtt(sample: Duration) -> Rtt {
        let mut rtt = Rtt::default();
        rtt.update(sample, Duration::ZERO);
        rtt
    }

    /// CUBIC with this window in bytes, in congestion avoidance after a loss at 1/0.7 of it.
    fn after_loss_at(window: f64) -> Cubic {
        let mut cubic = Cubic::new();
        cubic.curve.window = window;
        cubic.curve.threshold = window;
        cubic.on_loss(&loss(true));
        cubic.recovery = None;
        cubic
    }

    #[test]
    fn the_window_follows_the_cubic_function() {
        // 2,000 segments at 100 ms: far from Reno's region. K = cbrt(600/0.4) = 11.4 s.
        let mut cubic = after_loss_at(2000.0 * SEGMENT);
        let rtt = rtt(100 * MS);
        let k = (2000.0 * (1.0 - BETA) / C).cbrt();
        let mut now = Duration::ZERO;
        while now < Duration::from_secs(15) {
            let share = cubic.window() / 10;
            cubic.on_ack(&ack(now, &rtt, share, true));
            let expected = C * (now.as_secs_f64() - k).powi(3) + 2000.0;
            let window = cubic.window() as f64 / SEGMENT;
            assert!((window - expected).abs() < 0.02 * expected, "{window} for {expected} at {now:?}");
            now += 10 * MS;
        }
    }

    #[test]
    fn short_round_trips_follow_reno() {
        // 20 segments at 5 ms: W_est grows by 0.529 segments a round trip, the cubic function far slower.
        let mut cubic = after_loss_at(20.0 * RANDOM);
        let rtt = rtt(5 * MS);
        for round in 0..10 {
            for part in 0..14 {
                let now = MS * (5 * round) + MS * 5 * part / 14;
                cubic.on_ack(&ack(now, &rtt, (cubic.curve.window / 14.0) as u64, true));
            }
        }
        let expected = 14.0 + 10.0 * ALPHA;
        let window = cubic.curve.window / RANDOM;
        assert!((window - expected).abs() < 0.1, "{window} for {expected}");
    }

    #[test]
    fn where_a_queue_stands_the_window_grows_by_our_own_segments() {
        let grown = |queue: Duration| {
            let mut cubic = after_loss_at(20.0 * SEGMENT);
            let mut rtt = rtt(20 * MS);
            (0..50).for_each(|_| rtt.update(20 * MS + queue, Duration::ZERO));
            let before = cubic.curve.window;
            cubic.on_ack(&ack(MS, &rtt, before as u64, true));
            (cubic.curve.window - before) / ALPHA
        };
        assert!((grown(3 * MS) / RANDOM - 1.0).abs() < 0.01, "{}", grown(3 * MS));
        assert!((grown(10 * MS) / SEGMENT - 1.0).abs() < 0.01, "{}", grown(10 * MS));
    }

    #[test]
    fn an_event_reduces_once_and_a_second_below_the_maximum_converges_fast() {
        let mut cubic = after_loss_at(100_000.0);
        assert_eq!((cubic.curve.window, cubic.curve.w_max), (70_000.0, 100_000.0));
        cubic.on_loss(&loss(false));
        assert_eq!(cubic.curve.window, 70_000.0);
        cubic.on_loss(&loss(true));
        assert!((cubic.curve.w_max - 70_000.0 * 0.85).abs() < 1e-6);
    }

    #[test]
    fn a_spurious_event_restores_the_window() {
        let mut cubic = after_loss_at(100_000.0);
        cubic.on_spurious_event(MS);
        assert_eq!((cubic.curve.window, cubic.window()), (100_000.0, 100_000));
    }

    #[test]
    fn slow_start_doubles_and_an_application_that_sends_little_gains_nothing() {
        let mut cubic = Cubic::new();
        let rtt = rtt(50 * MS);
        cubic.on_ack(&ack(MS, &rtt, INITIAL_WINDOW, false));
        assert!(cubic.window().abs_diff(INITIAL_WINDOW) <= 1);
        cubic.on_ack(&ack(MS, &rtt, INITIAL_WINDOW, true));
        assert!(cubic.window().abs_diff(2 * INITIAL_WINDOW) <= 1);
        cubic.on_persistent_congestion(MS);
        assert!(cubic.window().abs_diff(MIN_WINDOW) <= 1);
    }
}
