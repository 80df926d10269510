//! The workers that are known, their speeds, and what follows for the size of chunks.
//!
//! The queue is the same for all workers, so a chunk is what the slowest tests in a second, and a faster worker takes several at
//! a time ([`batch`]). With speeds that differ by more than that allows, chunks are larger, and the slowest need longer. Chunks wait in the queue for two seconds at most, so that urgent ones need not wait long and few are lost
//! with the queue.

use std::collections::HashMap;
use std::time::Duration;

use crate::protocol::{BeatMessage, WorkerId};
use crate::spec::SearchKind;

/// How long the chunks that a worker takes at a time should last.
pub const CHUNK: Duration = Duration::from_secs(1);
/// How long the chunks in the queue last, all workers together; those that workers are testing are included.
const AHEAD: Duration = Duration::from_secs(2);
/// A worker that was not heard for this long is gone. Workers beat once a second.
pub const SILENT: Duration = Duration::from_secs(5);
/// The most chunks that a worker takes at a time.
pub const MOST_BATCH: u64 = 256;
/// How long the speed of the fleet is used before it is computed again from those of thousands of workers.
const RECENT: Duration = Duration::from_millis(200);
/// The most chunks a second of all workers together: the queue, and the coordinator, handle many times as many.
const MOST_PER_S: u64 = 10_000;
/// The fewest candidates of a chunk: even a slow processor tests these within milliseconds.
const LEAST_CHUNK: u64 = 1 << 16;
/// The most workers that are known; further ones work, but do not count for sizes.
const MOST_WORKERS: usize = 10_000;
/// No device is faster; a beat that says so would make chunks endless.
const MOST_SPEED: u64 = 1 << 44;
/// Towards the end of a job, chunks become as small as this part of a second of the slowest worker.
const LEAST_PARTS: u64 = 16;

/// The workers that are known.
#[derive(Debug, Default)]
pub struct Fleet {
    workers: HashMap<WorkerId, Worker>,
    /// For each kind, as of `computed`.
    speeds: [Option<FleetSpeed>; SearchKind::ALL.len()],
    computed: Duration,
}

#[derive(Debug)]
struct Worker {
    speeds: [u64; SearchKind::ALL.len()],
    heard: Duration,
}

/// What a fleet can do for one kind of search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FleetSpeed {
    /// The number of workers.
    pub workers: u64,
    /// Candidates a second of all workers together.
    pub total: u64,
    /// Candidates a second of the slowest worker.
    pub slowest: u64,
    /// Candidates of a chunk.
    pub chunk: u64,
}

impl Fleet {
    /// Notes a beat.
    pub fn beat(&mut self, beat: &BeatMessage, now: Duration) {
        if beat.is_leaving {
            self.workers.remove(&beat.worker);
            return self.compute(now);
        }
        if self.workers.len() >= MOST_WORKERS && !self.workers.contains_key(&beat.worker) {
            return;
        }
        let speeds = beat.speeds.map(|speed| speed.min(MOST_SPEED));
        let is_new = self.workers.insert(beat.worker, Worker { speeds, heard: now }).is_none();
        if is_new || now.saturating_sub(self.computed) >= RECENT {
            self.compute(now);
        }
    }

    fn compute(&mut self, now: Duration) {
        self.computed = now;
        self.speeds = SearchKind::ALL.map(|kind| self.speed_of(kind));
    }

    /// Forgets the workers that were not heard for a while.
    pub fn forget_silent(&mut self, now: Duration) {
        let before = self.workers.len();
        self.workers.retain(|_, worker| now.saturating_sub(worker.heard) < SILENT);
        if self.workers.len() != before {
            self.compute(now);
        }
    }

    /// The number of workers.
    pub fn len(&self) -> usize {
        self.workers.len()
    }

    /// Whether there is no worker.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// The speed for a kind of search; `None` if there is no worker for it.
    pub fn speed(&self, kind: SearchKind) -> Option<FleetSpeed> {
        self.speeds[kind.index()]
    }

    fn speed_of(&self, kind: SearchKind) -> Option<FleetSpeed> {
        let speeds =
            || self.workers.values().map(|worker| worker.speeds[kind.index()]).filter(|&speed| speed > 0);
        let (slowest, fastest) = (speeds().min()?, speeds().max()?);
        let total: u64 = speeds().sum();
        let least = in_time(fastest, CHUNK) / MOST_BATCH;
        let chunk = in_time(slowest, CHUNK).max(least).max(total / MOST_PER_S).max(LEAST_CHUNK);
        Some(FleetSpeed { workers: speeds().count() as u64, total, slowest, chunk })
    }
}

impl FleetSpeed {
    /// The candidates of the next chunk of a job that has this many left to hand over; `None` while enough are handed over.
    pub fn next_chunk(&self, left: u64, handed: u64, chunks: usize) -> Option<u64> {
        // What is left is kept for this machine, too; otherwise it would wait for the workers at the end.
        let most = in_time(self.total, AHEAD).min(left);
        let is_enough = handed >= most && chunks as u64 >= 2 * self.workers;
        if left == 0 || is_enough {
            return None;
        }
        // Towards the end chunks become smaller, so that the slowest worker ends with the others.
        let time_left_s = left as f64 / self.total.max(1) as f64;
        let fitting = (self.slowest as f64 * time_left_s / 2.0) as u64;
        let least = (self.slowest / LEAST_PARTS).max(self.total / (2 * MOST_PER_S));
        let size = fitting.max(least).min(self.chunk);
        Some(size.max(LEAST_CHUNK).min(left))
    }
}

/// The number of chunks of this size that a worker of this speed takes at a time.
pub fn batch(speed: u64, chunk: u64) -> usize {
    (in_time(speed, CHUNK) / chunk.max(1)).clamp(1, MOST_BATCH) as usize
}

fn in_time(per_s: u64, time: Duration) -> u64 {
    per_s.saturating_mul(time.as_millis() as u64) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beat(worker: u64, speed: u64) -> BeatMessage {
        BeatMessage { worker: WorkerId(worker), is_leaving: false, tested: 0, speeds: [speed; 4] }
    }

    fn fleet(speeds: &[u64]) -> Fleet {
        let mut fleet = Fleet::default();
        (0..).zip(speeds).for_each(|(worker, speed)| fleet.beat(&beat(worker, *speed), Duration::ZERO));
        fleet
    }

    #[test]
    fn every_worker_takes_about_a_second_at_a_time() {
        let speeds = [30_000_000, 45_000_000, 600_000_000, 7_000_000_000];
        let speed = fleet(&speeds).speed(SearchKind::Integer).unwrap();
        assert_eq!(speed.chunk, 30_000_000);
        for each in speeds {
            let takes = batch(each, speed.chunk) as f64 * speed.chunk as f64 / each as f64;
            assert!((0.5..=1.0).contains(&takes), "{each}: {takes} s");
        }
    }

    #[test]
    fn chunks_of_a_fleet_with_a_card_stay_countable() {
        let speeds = [5_000_000, 50_000_000_000];
        let speed = fleet(&speeds).speed(SearchKind::Integer).unwrap();
        assert_eq!(speed.chunk, 50_000_000_000 / MOST_BATCH);
        assert_eq!(batch(speeds[1], speed.chunk), 256);
        assert_eq!(batch(speeds[0], speed.chunk), 1);
    }

    #[test]
    fn the_queue_holds_two_seconds_of_work() {
        let speed = fleet(&[100_000_000, 100_000_000]).speed(SearchKind::Md5).unwrap();
        assert_eq!(speed.next_chunk(u64::MAX, 0, 0), Some(100_000_000));
        assert_eq!(speed.next_chunk(u64::MAX, 399_999_999, 4), Some(100_000_000));
        assert_eq!(speed.next_chunk(u64::MAX, 400_000_000, 4), None);
        assert_eq!(speed.next_chunk(0, 0, 0), None);
        assert_eq!(speed.next_chunk(200_000_000, 0, 0), Some(50_000_000), "smaller chunks at the end");
        assert_eq!(speed.next_chunk(200_000_000, 200_000_000, 4), None, "the rest is for this machine");
        assert_eq!(speed.next_chunk(1_000, 1_000, 3), Some(1_000), "but no worker waits");
    }

    #[test]
    fn silent_and_leaving_workers_do_not_count() {
        let mut fleet = fleet(&[10, 20, 30]);
        fleet.beat(&BeatMessage { is_leaving: true, ..beat(2, 30) }, Duration::ZERO);
        fleet.beat(&beat(1, 25), Duration::from_secs(4));
        fleet.forget_silent(Duration::from_secs(6));
        assert_eq!(fleet.speed(SearchKind::Sha1).map(|speed| (speed.workers, speed.total)), Some((1, 25)));
        fleet.forget_silent(Duration::from_secs(10));
        assert!(fleet.is_empty() && fleet.speed(SearchKind::Sha1).is_none());
    }

    #[test]
    fn absurd_speeds_are_bounded() {
        let speed = fleet(&[u64::MAX, u64::MAX, 0]).speed(SearchKind::Integer).unwrap();
        assert_eq!((speed.workers, speed.total), (2, 2 << 44));
        assert!(speed.next_chunk(u64::MAX, u64::MAX - 1, 3).is_some());
    }
}
