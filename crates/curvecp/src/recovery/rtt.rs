//! Round-trip time: RFC 9002, section 5.

use std::time::Duration;

/// The estimate before the first sample: RFC 9002, section 6.2.2.
pub const INITIAL_RTT: Duration = Duration::from_millis(333);
/// The shortest time that timers are trusted to resolve: RFC 9002, section 6.1.2.
pub const GRANULARITY: Duration = Duration::from_millis(1);

/// The estimate of the round-trip time.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variation: Duration,
    min: Option<Duration>,
}

impl Default for Rtt {
    fn default() -> Self {
        Self { latest: INITIAL_RTT, smoothed: INITIAL_RTT, variation: INITIAL_RTT / 2, min: None }
    }
}

impl Rtt {
    /// Takes a sample for which the peer reports that it delayed the acknowledgment by `delay`.
    pub fn update(&mut self, sample: Duration, delay: Duration) {
        self.latest = sample;
        let Some(min) = self.min else {
            (self.min, self.smoothed, self.variation) = (Some(sample), sample, sample / 2);
            return;
        };
        let min = min.min(sample);
        self.min = Some(min);
        let adjusted = if sample >= min + delay { sample - delay } else { sample };
        self.variation = (self.variation * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
    }

    /// Takes the round-trip time of a handshake in place of the initial estimate: RFC 9002, section 6.2.2. It is no
    /// sample, because a handshake takes longer than a message.
    pub fn assume(&mut self, handshake: Duration) {
        if self.min.is_none() {
            (self.latest, self.smoothed, self.variation) = (handshake, handshake, handshake / 2);
        }
    }

    /// The most recent sample.
    pub fn latest(&self) -> Duration {
        self.latest
    }

    /// The exponentially weighted mean, with weight 1/8.
    pub fn smoothed(&self) -> Duration {
        self.smoothed
    }

    /// The mean deviation, with weight 1/4.
    pub fn variation(&self) -> Duration {
        self.variation
    }

    /// The smallest sample so far; `None` before the first.
    pub fn min(&self) -> Option<Duration> {
        self.min
    }

    /// The probe time-out without back-off: RFC 9002, section 6.2.1.
    pub fn probe_timeout(&self, max_ack_delay: Duration) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY) + max_ack_delay
    }

    /// After this time behind a later message that arrived, a message is lost: 9/8 of the round-trip time.
    pub fn loss_delay(&self) -> Duration {
        (self.latest.max(self.smoothed) * 9 / 8).max(GRANULARITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn the_estimate_follows_rfc_9002() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.probe_timeout(Duration::ZERO), Duration::from_millis(999));
        rtt.assume(80 * MS);
        assert_eq!((rtt.probe_timeout(Duration::ZERO), rtt.min()), (240 * MS, None));
        rtt.update(100 * MS, 50 * MS);
        assert_eq!((rtt.smoothed(), rtt.variation(), rtt.min()), (100 * MS, 50 * MS, Some(100 * MS)));
        rtt.update(140 * MS, 20 * MS);
        // The delay counts: 120 ms. 3/4 · 50 + 1/4 · 20 = 42.5; 7/8 · 100 + 1/8 · 120 = 102.5.
        assert_eq!((rtt.smoothed(), rtt.variation()), (205 * MS / 2, 85 * MS / 2));
        rtt.update(104 * MS, 20 * MS);
        // The delay would put the sample below the minimum, so it does not count.
        assert_eq!(rtt.smoothed(), (205 * MS / 2 * 7 + 104 * MS) / 8);
        assert_eq!(rtt.loss_delay(), 104 * MS * 9 / 8);
    }
}
