//! Chicago: the congestion control of the reference (`curvecpmessage.c` of NaCl 20110221), for study.
//!
//! It has no window but the 128 blocks of the reference's buffer; it sets the time between two blocks. Arithmetic is the
//! reference's, in whole nanoseconds with truncating division. The reference waits with `poll()`, which wakes it up to a
//! millisecond late; [`Chicago::polled`] waits so, too, and [`Chicago::exact`] does not.

use std::time::Duration;

use super::{Ack, Controller, Loss, LossDetection, Pacing, SEGMENT_BYTES};
use crate::random::Random;
use crate::recovery::Rtt;

/// Blocks that the reference tracks.
const BLOCKS: usize = 128;
const SECOND: i64 = 1_000_000_000;
/// The reference's instants are those of the wall clock, so that instant 0 is long ago. Ours get this much added.
const LONG_AGO: i64 = 1_000_000_000 * SECOND;

/// Virtual time may bring an acknowledgment at the instant of sending; an interval of nothing would send for ever.
const SHORTEST_RTT: Duration = Duration::from_micros(1);

/// Chicago's state, in nanoseconds. Names are those of the reference where it has short ones.
#[derive(Clone, Debug)]
pub struct Chicago {
    ns_per_block: i64,
    average: i64,
    deviation: i64,
    low: i64,
    high: i64,
    timeout: i64,
    seen_recent_high: bool,
    seen_recent_low: bool,
    seen_older_high: bool,
    seen_older_low: bool,
    /// Whether the rate decreases: between an edge and the next low.
    phase: bool,
    last_speed_adjustment: i64,
    last_edge: i64,
    last_doubling: i64,
    last_panic: i64,
    random: Random,
    granularity: Duration,
}

impl Chicago {
    /// Chicago as the reference runs it, with timers of a millisecond.
    pub fn polled(seed: u64, now: Duration) -> Self {
        Self { granularity: Duration::from_millis(1), ..Self::exact(seed, now) }
    }

    /// Chicago with exact timers.
    pub fn exact(seed: u64, now: Duration) -> Self {
        Self {
            ns_per_block: SECOND,
            average: 0,
            deviation: 0,
            low: 0,
            high: 0,
            timeout: SECOND,
            seen_recent_high: false,
            seen_recent_low: false,
            seen_older_high: false,
            seen_older_low: false,
            phase: false,
            last_speed_adjustment: instant(now),
            last_edge: 0,
            last_doubling: 0,
            last_panic: 0,
            random: Random::new(seed),
            granularity: Duration::ZERO,
        }
    }

    fn sample(&mut self, now: i64, rtt: i64) {
        if self.average == 0 {
            self.ns_per_block = rtt;
            (self.average, self.deviation, self.high, self.low) = (rtt, rtt / 2, rtt, rtt);
        }
        // Jacobson's time-out, with an allowance for delayed acknowledgments.
        let delta = rtt - self.average;
        self.average += delta / 8;
        self.deviation += (delta.abs() - self.deviation) / 4;
        self.timeout = self.average + 4 * self.deviation + 8 * self.ns_per_block;
        // The top and the bottom of the congestion cycle.
        self.high += (rtt - self.high) / 1024;
        let delta = rtt - self.low;
        self.low += if delta > 0 { delta / 8192 } else { delta / 256 };
        if self.average > self.high + 5_000_000 {
            self.seen_recent_high = true;
        } else if self.average < self.low {
            self.seen_recent_low = true;
        }
        if now >= self.last_speed_adjustment + 16 * self.ns_per_block {
            self.adjust(now);
        }
        self.double(now);
    }

    fn adjust(&mut self, now: i64) {
        if now - self.last_speed_adjustment > 10 * SECOND {
            self.ns_per_block = SECOND + self.random_below(SECOND / 8);
        }
        self.last_speed_adjustment = now;
        if self.ns_per_block >= 131_072 {
            // Additive increase of the rate, by c per ns: N becomes N/(1 + cN^2), about N - cN^3.
            if self.ns_per_block < 16_777_216 {
                self.ns_per_block -= (self.ns_per_block / 131_072).pow(3);
            } else {
                let n = self.ns_per_block as f64;
                self.ns_per_block = (n / (1.0 + n * n / 2_251_799_813_685_248.0)) as i64;
            }
        }
        if !self.phase {
            if self.seen_older_high {
                self.phase = true;
                self.last_edge = now;
                self.ns_per_block += self.random_below(self.ns_per_block / 4);
            }
        } else if self.seen_older_low {
            self.phase = false;
        }
        (self.seen_older_high, self.seen_older_low) = (self.seen_recent_high, self.seen_recent_low);
        (self.seen_recent_high, self.seen_recent_low) = (false, false);
    }

    fn double(&mut self, now: i64) {
        let pause = if now - self.last_edge < 60 * SECOND {
            4 * self.ns_per_block + 64 * self.timeout + 5 * SECOND
        } else {
            4 * self.ns_per_block + 2 * self.timeout
        };
        if now < self.last_doubling + pause || self.ns_per_block <= 65_535 {
            return;
        }
        self.ns_per_block /= 2;
        self.last_doubling = now;
        if self.last_edge != 0 {
            self.last_edge = now;
        }
    }

    fn random_below(&mut self, bound: i64) -> i64 {
        self.random.below(bound as u64) as i64
    }
}

fn instant(now: Duration) -> i64 {
    LONG_AGO + now.as_nanos() as i64
}

impl Controller for Chicago {
    fn on_ack(&mut self, ack: &Ack<'_>) {
        if let Some(sample) = ack.sample {
            self.sample(instant(ack.now), sample.max(SHORTEST_RTT).as_nanos() as i64);
        }
    }

    fn on_loss(&mut self, _loss: &Loss) {}

    /// The reference's panic: half the rate, at most once in four time-outs.
    fn on_timeout(&mut self, now: Duration) {
        let now = instant(now);
        if now > self.last_panic + 4 * self.timeout {
            self.ns_per_block *= 2;
            (self.last_panic, self.last_edge) = (now, now);
        }
    }

    fn window(&self) -> u64 {
        BLOCKS as u64 * SEGMENT_BYTES
    }

    fn max_units(&self) -> usize {
        BLOCKS
    }

    fn pacing(&self, _rtt: &Rtt) -> Pacing {
        let interval = Duration::from_nanos(self.ns_per_block as u64);
        Pacing::Interval { interval, granularity: self.granularity }
    }

    fn loss_detection(&self) -> LossDetection {
        LossDetection::Timeout(Duration::from_nanos(self.timeout as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn chicago() -> Chicago {
        Chicago::exact(1, Duration::ZERO)
    }

    #[test]
    fn the_first_sample_sets_everything() {
        let mut chicago = chicago();
        chicago.sample(LONG_AGO + 20 * MS, 20 * MS);
        // The first doubling follows at once: the last one is long ago. So N is half the sample.
        assert_eq!((chicago.ns_per_block, chicago.last_doubling), (10 * MS, LONG_AGO + 20 * MS));
        // The deviation: 10 ms, then a quarter of (0 - 10 ms) less.
        assert_eq!((chicago.average, chicago.deviation), (20 * MS, 7_500_000));
        assert_eq!(chicago.timeout, 20 * MS + 4 * 7_500_000 + 8 * 20 * MS);
    }

    #[test]
    fn a_script_of_acknowledgments_gives_the_reference_s_states() {
        let mut chicago = chicago();
        let mut states = vec![];
        for step in 1..=200_i64 {
            let rtt = 20 * MS + (step % 7) * MS;
            chicago.sample(LONG_AGO + step * 10 * MS, rtt);
            if step % 40 == 0 {
                states.push((
                    chicago.ns_per_block,
                    chicago.average,
                    chicago.deviation,
                    chicago.high,
                    chicago.low,
                ));
            }
        }
        assert_eq!(states, REFERENCE_STATES);
    }

    /// Printed by the reference's own lines, from its rule for the first sample to that for doublings, compiled alone and
    /// fed with this script.
    const REFERENCE_STATES: [(i64, i64, i64, i64, i64); 5] = [
        (4_888_475, 23_162_983, 1_599_970, 21_076_689, 20_990_896),
        (151_059, 22_756_488, 1_491_320, 21_147_503, 20_977_959),
        (37_763, 22_824_862, 2_252_608, 21_219_395, 20_965_840),
        (37_763, 23_526_350, 1_902_273, 21_292_482, 20_958_151),
        (37_763, 22_911_969, 1_429_353, 21_353_185, 20_945_881),
    ];

    #[test]
    fn a_timeout_halves_the_rate_once_in_four_timeouts() {
        let mut chicago = chicago();
        chicago.sample(LONG_AGO, 16 * MS);
        let (before, timeout) = (chicago.ns_per_block, Duration::from_nanos(chicago.timeout as u64));
        chicago.on_timeout(timeout);
        chicago.on_timeout(timeout * 5);
        assert_eq!(chicago.ns_per_block, 2 * before);
        chicago.on_timeout(timeout * 5 + Duration::from_nanos(1));
        assert_eq!(chicago.ns_per_block, 4 * before);
    }

    #[test]
    fn the_increase_of_the_rate_is_constant() {
        // 1/N grows by N/2^51 at each adjustment; below 2^24 the cube of N/2^17 is truncated to whole steps.
        for n in [1_000_000_i64, 10_000_000, 100_000_000] {
            let mut chicago = chicago();
            chicago.ns_per_block = n;
            chicago.adjust(LONG_AGO + 1);
            let gained = 1.0 / chicago.ns_per_block as f64 - 1.0 / n as f64;
            let expected = n as f64 / 2_f64.powi(51);
            assert!((gained / expected - 1.0).abs() < 0.25, "{n}: {gained} for {expected}");
        }
    }
}
