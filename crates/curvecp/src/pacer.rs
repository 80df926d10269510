//! The pacer: spreads messages over time so that queues stay short, yet lets small bursts out together.

use std::time::Duration;

use crate::congestion::{Pacing, SEGMENT_BYTES};

/// A burst lasts at most this long at the rate.
const BURST: Duration = Duration::from_millis(2);
/// A burst that is always allowed: timers cost more than four messages.
const MIN_BURST_BYTES: f64 = (4 * SEGMENT_BYTES) as f64;

/// A token bucket in bytes, or an interval between messages.
#[derive(Debug)]
pub(crate) struct Pacer {
    tokens: f64,
    /// The instant at which the tokens were last counted.
    counted: Duration,
    /// When the last message was sent, for an interval.
    last_sent: Option<Duration>,
    max_burst_bytes: f64,
}

impl Pacer {
    /// A pacer whose bucket is full. No burst is longer than `max_burst` messages.
    pub(crate) fn new(max_burst: u32) -> Self {
        let max_burst_bytes = f64::from(max_burst) * SEGMENT_BYTES as f64;
        Self { tokens: max_burst_bytes, counted: Duration::ZERO, last_sent: None, max_burst_bytes }
    }

    /// Limits bursts to this many messages.
    pub(crate) fn set_max_burst(&mut self, max_burst: u32) {
        self.max_burst_bytes = f64::from(max_burst) * SEGMENT_BYTES as f64;
    }

    /// When the next message may leave: `None` if now.
    pub(crate) fn wait(&mut self, now: Duration, pacing: Pacing) -> Option<Duration> {
        match pacing {
            Pacing::Unpaced => None,
            Pacing::Rate(rate) => self.wait_for_tokens(now, rate),
            Pacing::Interval { interval, granularity } => {
                let due = self.last_sent? + interval;
                let wait = due.checked_sub(now).filter(|wait| !wait.is_zero())?;
                if granularity.is_zero() {
                    return Some(due);
                }
                let ticks = wait.as_nanos() / granularity.as_nanos() + 1;
                Some(now + granularity * ticks as u32)
            }
        }
    }

    fn wait_for_tokens(&mut self, now: Duration, rate: f64) -> Option<Duration> {
        let burst = (rate * BURST.as_secs_f64()).clamp(MIN_BURST_BYTES, self.max_burst_bytes);
        let elapsed = now.saturating_sub(self.counted);
        self.tokens = (self.tokens + rate * elapsed.as_secs_f64()).min(burst);
        self.counted = self.counted.max(now);
        if self.tokens > 0.0 {
            return None;
        }
        // Wait for half a burst, so that a timer releases several messages; a slow pace waits for one.
        let wanted = (burst / 2.0).min(rate * GOOD_WAIT.as_secs_f64()).max(1.0) - self.tokens;
        Some(now + Duration::from_secs_f64(wanted / rate))
    }

    /// Notes that a message left.
    pub(crate) fn sent(&mut self, now: Duration, bytes: u64) {
        self.tokens -= bytes as f64;
        self.last_sent = Some(now);
    }
}

/// A wait worth a timer.
const GOOD_WAIT: Duration = Duration::from_micros(500);

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn messages_leave_at_the_rate_in_bursts_of_two_milliseconds_at_most() {
        for rate in [1e5, 1e6, 1e7, 1e8] {
            let mut pacer = Pacer::new(54);
            let (mut now, mut sent) = (MS, 0_u64);
            let mut worst: f64 = 0.0;
            while now < 1000 * MS {
                let mut burst = 0;
                while pacer.wait(now, Pacing::Rate(rate)).is_none() {
                    pacer.sent(now, SEGMENT_BYTES);
                    burst += SEGMENT_BYTES;
                }
                if now > MS {
                    worst = worst.max(burst as f64);
                }
                sent += burst;
                now = pacer.wait(now, Pacing::Rate(rate)).unwrap();
            }
            let limit = (rate * 0.002).clamp(MIN_BURST_BYTES, 54.0 * 1088.0) + 1088.0;
            assert!(worst <= limit, "a burst of {worst} bytes at {rate}/s");
            assert!((sent as f64 - rate).abs() < 0.02 * rate + 5.0 * 1088.0, "{sent} bytes at {rate}/s");
        }
    }

    #[test]
    fn an_interval_is_exact_or_as_coarse_as_poll() {
        let mut pacer = Pacer::new(54);
        let pace = |granularity| Pacing::Interval { interval: 5 * MS / 2, granularity };
        assert_eq!(pacer.wait(MS, pace(MS)), None);
        pacer.sent(MS, 1088);
        assert_eq!(pacer.wait(MS, pace(Duration::ZERO)), Some(7 * MS / 2));
        // 2.5 ms to go: poll(2 + 1).
        assert_eq!(pacer.wait(MS, pace(MS)), Some(4 * MS));
        assert_eq!(pacer.wait(4 * MS, pace(MS)), None);
    }
}
