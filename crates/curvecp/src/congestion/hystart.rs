//! HyStart++ (RFC 9406): leaves slow start when the round-trip time begins to rise, before packets are lost.

use std::time::Duration;

const MIN_RTT_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_RTT_THRESHOLD: Duration = Duration::from_millis(16);
const RTT_DIVISOR: u32 = 8;
const SAMPLES: u32 = 8;
const CONSERVATIVE_DIVISOR: f64 = 4.0;
const CONSERVATIVE_ROUNDS: u32 = 5;

/// The rise of the round-trip time above the shortest that shows a queue.
pub(super) fn rtt_threshold(shortest: Duration) -> Duration {
    (shortest / RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD)
}

/// Conservative slow start: growth at a quarter of the pace, to see whether the rise of the round-trip time was real.
#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
}

/// The state of one slow start.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    /// The round ends when a message from this number on is acknowledged.
    round_end: u64,
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
}

impl HyStart {
    pub(super) fn new() -> Self {
        Self { round_end: 0, last_min: None, current_min: None, samples: 0, conservative: None }
    }

    /// Takes an acknowledgment: the share of the acknowledged bytes by which the window may grow, or `None` if slow
    /// start is over. `largest` is the highest message acknowledged, `next` the number of the next message.
    pub(super) fn growth(&mut self, sample: Option<Duration>, largest: u64, next: u64) -> Option<f64> {
        if let Some(sample) = sample {
            self.current_min = Some(self.current_min.map_or(sample, |min| min.min(sample)));
            self.samples += 1;
        }
        if self.samples >= SAMPLES {
            self.compare();
        }
        if largest >= self.round_end && self.end_round(next) {
            return None;
        }
        Some(if self.conservative.is_some() { 1.0 / CONSERVATIVE_DIVISOR } else { 1.0 })
    }

    fn compare(&mut self) {
        let (Some(current), Some(last)) = (self.current_min, self.last_min) else { return };
        match self.conservative {
            None => {
                if current >= last + rtt_threshold(last) {
                    self.conservative = Some(Conservative { baseline: current, rounds: 0 });
                }
            }
            Some(Conservative { baseline, .. }) if current < baseline => self.conservative = None,
            Some(_) => {}
        }
    }

    /// Begins the next round; returns whether slow start is over.
    fn end_round(&mut self, next: u64) -> bool {
        self.round_end = next;
        self.last_min = self.current_min.or(self.last_min);
        (self.current_min, self.samples) = (None, 0);
        let Some(conservative) = &mut self.conservative else { return false };
        conservative.rounds += 1;
        conservative.rounds >= CONSERVATIVE_ROUNDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of ten messages with this round-trip time in ms: the growth at its end, `None` if slow start ended.
    fn round(hystart: &mut HyStart, first: u64, ms: f64) -> Option<f64> {
        let sample = Some(Duration::from_secs_f64(ms / 1e3));
        let growths: Option<Vec<f64>> =
            (first..first + 10).map(|number| hystart.growth(sample, number, number + 10)).collect();
        growths?.last().copied()
    }

    #[test]
    fn a_rise_of_an_eighth_slows_growth_and_ends_slow_start_after_five_rounds() {
        let mut hystart = HyStart::new();
        assert_eq!(round(&mut hystart, 0, 80.0), Some(1.0));
        assert_eq!(round(&mut hystart, 10, 89.0), Some(1.0), "less than 1/8");
        assert_eq!(round(&mut hystart, 20, 101.0), Some(0.25));
        let rest: Vec<_> = (3..8).map(|i| round(&mut hystart, i * 10, 101.0)).collect();
        // The round in which the rise was seen counts as the first of the five.
        assert_eq!(rest.iter().position(Option::is_none), Some(4), "{rest:?}");
    }

    #[test]
    fn a_rise_that_goes_away_lets_slow_start_go_on() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 0, 20.0);
        assert_eq!(round(&mut hystart, 10, 25.0), Some(0.25), "4 ms at least");
        assert_eq!(round(&mut hystart, 20, 21.0), Some(1.0));
    }
}
