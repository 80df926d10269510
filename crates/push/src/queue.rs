//! The queue of samples, and the counts of sent and dropped ones.

use std::collections::VecDeque;
use std::time::SystemTime;

use kendall_archive::live::{FAILURES, Live};

/// The capacity of the queue; beyond it the oldest samples are dropped.
pub(crate) const MOST_WAITING: usize = 1_200;

/// The live state at one instant.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Stamped {
    /// Nanoseconds since 1970.
    pub(crate) at_ns: u64,
    pub(crate) sent_per_s: f64,
    pub(crate) answered_per_s: f64,
    pub(crate) in_flight: f64,
    pub(crate) waiting: f64,
    pub(crate) p50_s: Option<f64>,
    pub(crate) p90_s: Option<f64>,
    pub(crate) p99_s: Option<f64>,
    /// Totals since the start of the watch: wrong, refused, timed out, unanswered.
    pub(crate) failed: [u64; FAILURES],
    pub(crate) server_cores: Option<f64>,
    pub(crate) generator_cores: Option<f64>,
}

#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<Stamped>,
    /// The number of the next sample to add.
    next: u64,
    /// The start of the run, in nanoseconds since 1970, once it is known.
    began_ns: Option<u64>,
    failed: [u64; FAILURES],
    sent: u64,
    dropped: u64,
}

impl Queue {
    /// Adds the new samples.
    pub(crate) fn take_up(&mut self, live: &Live) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let elapsed_ns = (live.elapsed_s.max(0.0) * 1e9) as u64;
        let began_ns =
            *self.began_ns.get_or_insert_with(|| (now.as_nanos() as u64).saturating_sub(elapsed_ns));
        let samples = live.samples.since(self.next);
        // Samples that the file dropped before it was read.
        self.dropped += samples.first.saturating_sub(self.next);
        for at in 0..samples.len() {
            for (total, more) in self.failed.iter_mut().zip(samples.failed[at]) {
                *total = total.saturating_add(more);
            }
            self.waiting.push_back(Stamped {
                at_ns: began_ns.saturating_add((samples.at_s[at].max(0.0) * 1e9) as u64),
                sent_per_s: samples.sent_per_s[at],
                answered_per_s: samples.answered_per_s[at],
                in_flight: samples.in_flight[at] as f64,
                waiting: samples.waiting[at] as f64,
                p50_s: samples.p50_s[at],
                p90_s: samples.p90_s[at],
                p99_s: samples.p99_s[at],
                failed: self.failed,
                server_cores: samples.server_cores[at],
                generator_cores: samples.generator_cores[at],
            });
        }
        self.next = self.next.max(samples.end());
        let over = self.waiting.len().saturating_sub(MOST_WAITING);
        self.refused(over);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// The oldest queued samples.
    pub(crate) fn first(&self, most: usize) -> Vec<Stamped> {
        self.waiting.iter().take(most).cloned().collect()
    }

    pub(crate) fn began_ns(&self) -> u64 {
        self.began_ns.unwrap_or_default()
    }

    /// Counts the given number of the oldest as sent.
    pub(crate) fn taken(&mut self, count: usize) {
        self.sent += self.waiting.drain(..count).len() as u64;
    }

    /// Counts the given number of the oldest as dropped.
    pub(crate) fn refused(&mut self, count: usize) {
        self.dropped += self.waiting.drain(..count).len() as u64;
    }

    /// The numbers of sent and dropped samples; queued ones count as dropped.
    pub(crate) fn give_up(mut self) -> (u64, u64) {
        self.refused(self.waiting.len());
        (self.sent, self.dropped)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use kendall_archive::live::{LiveState, MOST_SAMPLES, Process, Sample, Samples};

    use super::*;

    fn live(samples: Samples) -> Live {
        Live {
            process: Process::here(),
            state: LiveState::Running,
            doing: String::new(),
            trials_planned: 0,
            trials_done: 0,
            left_s: None,
            elapsed_s: 0.0,
            trial: None,
            samples,
            trials: VecDeque::new(),
        }
    }

    /// However often the file is read, each sample is sent, dropped or queued exactly once.
    #[test]
    fn no_sample_is_lost_from_the_account() {
        let (mut queue, mut samples, mut said) = (Queue::default(), Samples::default(), 0u32);
        for burst in [3, 0, 40, MOST_SAMPLES + 17, 1, 5 * MOST_SAMPLES, 2] {
            for _ in 0..burst {
                samples.push(Sample { at_s: f64::from(said), ..Sample::default() });
                said += 1;
            }
            queue.take_up(&live(samples.clone()));
            assert!(queue.waiting.len() <= MOST_WAITING);
            let instants: Vec<u64> = queue.waiting.iter().map(|sample| sample.at_ns).collect();
            assert!(instants.windows(2).all(|pair| pair[0] < pair[1]));
            let some = queue.first(20).len();
            queue.taken(some);
        }
        let (sent, dropped) = queue.give_up();
        assert!(sent > 0 && dropped > 0);
        assert_eq!(sent + dropped, u64::from(said));
    }
}
