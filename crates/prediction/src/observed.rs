//! The data that a prediction starts from: the requests of one or more low loads, and the capacity where it was
//! measured.

use kendall_evidence::RowClass;
use kendall_station::{Discipline, Servers};

use crate::block::{Block, Request};

/// Requests of a level that fit and score use; of more, the blocks are cut to equal lengths.
const MOST_REQUESTS: usize = 60_000;
/// Requests of a full load that choose between stations.
const MOST_FULL: usize = 6_000;
/// Full loads whose response times choose between stations: the first ones that are given.
const FULL_LOADS: usize = 3;
/// Parts into which the requests of a level are divided, so that the bootstrap draws contiguous requests together.
const CHUNKS: usize = 40;
/// A closed population of more users takes long to simulate.
const MOST_USERS: u32 = 1_000;
/// A chunk has at least this many requests, so that most of the dependence between neighbours stays within chunks.
const LEAST_CHUNK: usize = 50;

/// All blocks that were measured at one rate.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// Requests sent per second.
    pub(crate) rate_per_s: f64,
    pub(crate) blocks: Vec<Block>,
    /// Contiguous counted requests: the block, and which of its counted requests.
    pub(crate) chunks: Vec<(usize, std::ops::Range<usize>)>,
}

impl Level {
    /// The blocks of one rate. `None` where fewer than 200 requests count.
    fn new(blocks: Vec<Block>) -> Option<Self> {
        let each = MOST_REQUESTS / blocks.len().max(1);
        let blocks: Vec<Block> = blocks.iter().map(|block| block.shortened(block.first + each)).collect();
        let counted: usize = blocks.iter().map(|block| block.counted().len()).sum();
        let (sent, span_s) = blocks.iter().filter_map(span).fold((0.0, 0.0), |(n, s), (m, t)| (n + m, s + t));
        if counted < 4 * LEAST_CHUNK || span_s <= 0.0 {
            return None;
        }
        let size = (counted / CHUNKS).max(LEAST_CHUNK);
        let chunks = blocks
            .iter()
            .enumerate()
            .flat_map(|(at, block)| parts(block.counted().len(), size).map(move |range| (at, range)));
        let chunks = chunks.filter(|(_, range)| !range.is_empty()).collect();
        Some(Self { rate_per_s: sent / span_s, chunks, blocks })
    }

    /// Mean response time since sending, in seconds.
    pub(crate) fn mean_response_s(&self) -> f64 {
        let responses: Vec<f64> =
            self.counted().map(|request| request.completed_s - request.sent_s).collect();
        kendall_stats::mean(&responses)
    }

    pub(crate) fn counted(&self) -> impl Iterator<Item = &Request> {
        self.blocks.iter().flat_map(Block::counted)
    }

    /// The mean send lag, in seconds.
    pub(crate) fn lag_s(&self) -> f64 {
        kendall_stats::mean(&self.blocks.iter().map(|block| block.lag_s).collect::<Vec<_>>())
    }
}

/// Divides `n` requests into equal parts of about that size.
fn parts(n: usize, size: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    let parts = (n / size).max(1);
    (0..parts).map(move |part| part * n / parts..(part + 1) * n / parts)
}

/// Gaps between the counted requests of a block, and the time that they take.
fn span(block: &Block) -> Option<(f64, f64)> {
    let counted = block.counted();
    let (first, last) = (counted.first()?, counted.last()?);
    Some((counted.len() as f64 - 1.0, last.sent_s - first.sent_s))
}

/// The highest throughput, as closed populations measured it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Requests per second: the mean of the measurements, in which each counts half as much as the next.
    pub per_s: f64,
    /// The standard deviation between measurements minutes apart, over the mean.
    pub relative_sd: f64,
    /// How many measurements the mean is of.
    pub blocks: u32,
    /// The answers that each of them counted.
    pub requests: f64,
}

impl Capacity {
    /// The capacity of another minute over that of these measurements, which is exceeded with probability 1 − `share`. Part of the
    /// spread of the measurements is that they counted few requests: the throughput of n services has a relative variance of scv/n, which
    /// is not the server's. And a few measurements may happen to agree. Therefore the usual drift counts as some more of them, and the law
    /// is Student's (Gelman and others 2013, section 3.2). `squared_weights` is the sum of the squared weights that the measurements have
    /// in their mean, whose variance is that of one measurement times this sum (Kish 1965).
    pub(crate) fn in_another_minute(&self, scv: f64, squared_weights: f64, share: f64) -> f64 {
        let counted = scv / self.requests.max(1.0);
        let seen = (self.relative_sd.powi(2) - counted).max(0.0);
        let compared = f64::from(self.blocks.max(1)) - 1.0;
        let freedom = USUAL_WEIGHT + compared;
        let drift = (USUAL_WEIGHT * USUAL_DRIFT.powi(2) + compared * seen) / freedom;
        let sd = (drift + (drift + counted) * squared_weights).sqrt();
        libm::exp(sd * kendall_stats::student_t(freedom, share))
    }
}

/// The sum of the squares of the weights ½, ¼, …, the smallest of them twice, that this many measurements have in a mean in which each
/// counts half as much as the next.
fn halved(measurements: u32) -> f64 {
    (1.0 + 2.0 * libm::pow(4.0, 1.0 - f64::from(measurements.max(1)))) / 3.0
}

/// The usual standard deviation of a server's capacity from one minute to the next, over its mean. Servers differ in it: the full loads of
/// most differed by less than 1.3 %, those of a few by 6 %.
const USUAL_DRIFT: f64 = 0.012;
/// It counts as much as this many comparisons of two measurements. With both numbers the law of Student gives the highest probability to
/// each full load of 131 validations on virtual machines with two processors, predicted from the full loads before it; 94 % of them lie
/// within its middle 95 %.
const USUAL_WEIGHT: f64 = 2.5;
/// The root of the mean square of the drifts of all those servers.
const DRIFT_OF_ALL: f64 = 0.02;

/// The station that a server was started as.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownStation {
    /// The station's servers.
    pub servers: Servers,
    /// The order in which they serve.
    pub discipline: Discipline,
    /// The classes of its requests by number, for their weights.
    pub classes: Vec<RowClass>,
}

/// What the orders of service refer to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Conditions<'a> {
    /// The classes by number.
    pub(crate) classes: &'a [RowClass],
    /// Closed populations: users and requests per second.
    pub(crate) closed: &'a [(u32, f64)],
}

/// Everything that is known of a server.
#[derive(Clone, Debug)]
pub struct Observed {
    /// Levels in ascending order of their rates; at least one.
    pub(crate) levels: Vec<Level>,
    /// The capacity, if it was measured.
    pub(crate) capacity: Option<Capacity>,
    /// The sum of the squared weights of its measurements in their mean.
    pub(crate) squared_weights: f64,
    /// The station of the server, if the record names it.
    pub(crate) known: Option<KnownStation>,
    /// Closed populations without think time: users and requests per second.
    pub(crate) closed: Vec<(u32, f64)>,
    /// The users of the full loads, which measured the capacity.
    pub(crate) full_users: Option<u32>,
    /// The response times of closed populations at full load.
    pub(crate) full: Vec<Full>,
    /// The mean time between two answers in each second of the full loads, the last of them first; infinite in a second without one.
    pub(crate) gaps_s: Vec<Vec<f64>>,
    /// The mean time of a fixed computation in each second of the same loads.
    pub(crate) computation_s: Vec<Vec<f64>>,
    /// Whether the machine is taken to have the same speed in every second.
    pub(crate) one_speed: bool,
    /// Closed populations larger than those of the full loads, ascending.
    pub(crate) queues: Vec<Queue>,
}

/// A closed population whose requests form a long queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Queue {
    pub(crate) users: u32,
    /// How many times as long service takes as in the full load just before, as a logarithm.
    longer: f64,
    /// How often that was measured.
    measured: f64,
    /// The answers that each measurement counted.
    requests: f64,
}

/// The relative noise of the throughput of a closed population, measured for seconds.
pub(crate) const POPULATION_SD: f64 = 0.05;
/// A fall of the throughput under a long queue, where there is one, is about as large as this, as a logarithm. Measured: 12 % to 20 %.
const USUAL_FALL: f64 = 0.15;
/// A rise that is smaller, as a logarithm, leaves the capacity that of the full load.
const LEAST_RISE: f64 = 0.1;

impl Queue {
    /// How many times as long service takes, for service times of this squared coefficient of variation. A server has such a change or has
    /// none, with even odds before the measurement; `share` draws which, and `noise` is a standard normal value.
    pub(crate) fn longer(&self, scv: f64, share: f64, noise: f64) -> f64 {
        // Each measurement is the ratio of two throughputs some seconds apart, which counted answers.
        let variance = (DRIFT_OF_ALL.powi(2) + 2.0 * scv / self.requests.max(1.0)) / self.measured;
        let with_fall = variance + USUAL_FALL.powi(2);
        let log_density = |variance: f64| -0.5 * (self.longer.powi(2) / variance + libm::log(variance));
        let falls = 1.0 / (1.0 + libm::exp(log_density(variance) - log_density(with_fall)));
        let rises = self.longer < -LEAST_RISE;
        if share > falls || self.longer <= 0.0 && !rises {
            return 1.0;
        }
        let known = USUAL_FALL.powi(2) / with_fall;
        let longer = libm::exp(known * self.longer + noise * (known * variance).sqrt());
        if rises { longer.min(1.0) } else { longer.max(1.0) }
    }
}

/// The response times of a closed population without think time at full load.
#[derive(Clone, Debug)]
pub(crate) struct Full {
    pub(crate) users: u32,
    /// Logarithms of the response times over their mean, in the order of sending.
    pub(crate) logs: Vec<f64>,
    /// Contiguous ones.
    pub(crate) chunks: Vec<std::ops::Range<usize>>,
}

/// The reason why there is nothing to predict from.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NothingObserved {
    #[error(
        "no load has 200 answered requests after its warm-up; measure at two or three rates between 20 % and 60 % of the capacity, each \
         for a minute"
    )]
    TooFew,
    #[error("{0:.1} % of the requests had no right answer; measure at loads that the server answers rightly")]
    Lost(f64),
}

impl Observed {
    /// Builds the observation from blocks of requests and their nominal rates; blocks of one nominal rate are one
    /// level.
    ///
    /// # Errors
    /// Fails where no level has enough requests, and where more than 1 % of the requests were lost.
    pub fn new(
        blocks: Vec<(f64, Block)>,
        capacity: Option<Capacity>,
        known: Option<KnownStation>,
    ) -> Result<Self, NothingObserved> {
        let requests: usize = blocks.iter().map(|(_, block)| block.sent).sum();
        let lost: usize = blocks.iter().map(|(_, block)| block.lost).sum();
        if lost * 100 > requests {
            return Err(NothingObserved::Lost(100.0 * lost as f64 / requests as f64));
        }
        let mut blocks = blocks;
        blocks.sort_by(|a, b| a.0.total_cmp(&b.0));
        let of_one_rate = blocks.chunk_by(|a, b| b.0 <= a.0 * 1.05);
        let mut levels: Vec<Level> = of_one_rate
            .filter_map(|same| Level::new(same.iter().map(|(_, block)| block.clone()).collect()))
            .collect();
        levels.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
        if levels.is_empty() {
            Err(NothingObserved::TooFew)
        } else {
            let (closed, full_users, full) = (Vec::new(), None, Vec::new());
            let (gaps_s, computation_s, queues) = (Vec::new(), Vec::new(), Vec::new());
            Ok(Self {
                levels,
                capacity,
                squared_weights: capacity.map_or(1.0, |capacity| halved(capacity.blocks)),
                known,
                closed,
                full_users,
                full,
                gaps_s,
                computation_s,
                one_speed: false,
                queues,
            })
        }
    }

    /// Adds the throughput of closed populations without think time: users and requests per second. It says how the speed of the server
    /// depends on the number of requests present.
    #[must_use]
    pub fn with_populations(mut self, closed: &[(u32, f64)]) -> Self {
        self.closed.extend(closed.iter().filter(|population| population.1 > 0.0));
        self.closed.sort_by_key(|population| population.0);
        // The mean of those of one size.
        let same = self.closed.chunk_by(|a, b| a.0 == b.0);
        self.closed = same
            .map(|same| {
                let throughputs: Vec<f64> = same.iter().map(|population| population.1).collect();
                (same[0].0, kendall_stats::mean(&throughputs))
            })
            .collect();
        self
    }

    /// Adds the requests of a closed population without think time that kept the server busy, the last measured first. How far their response times spread says
    /// what low loads hardly say: how many are served at a time, and in which order. Its seconds show the slow spells of the machine.
    #[must_use]
    pub fn with_full_load(mut self, users: u32, block: &Block) -> Self {
        self.full_users = Some(users);
        self.gaps_s.push(block.gaps_by_second());
        self.computation_s.push(block.computation_s.clone());
        let counted = block.counted();
        let counted = &counted[..counted.len().min(MOST_FULL)];
        let responses_s: Vec<f64> =
            counted.iter().map(|request| request.completed_s - request.sent_s).collect();
        let mean_s = kendall_stats::mean(&responses_s);
        let chunks: Vec<_> =
            parts(responses_s.len(), (responses_s.len() / CHUNKS).max(LEAST_CHUNK)).collect();
        if self.full.len() < FULL_LOADS
            && (2..=MOST_USERS).contains(&users)
            && chunks.len() >= 4
            && mean_s > 0.0
        {
            let logs =
                responses_s.iter().map(|response_s| libm::log((response_s / mean_s).max(1e-9))).collect();
            self.full.push(Full { users, logs, chunks });
        }
        self
    }

    /// Adds a closed population larger than those of the full loads: how many times as long service took in it as in the full load just
    /// before, each time that it was measured, and the answers that each measurement counted.
    #[must_use]
    pub fn with_queue(mut self, users: u32, longer: &[f64], requests: f64) -> Self {
        let logs: Vec<f64> = longer.iter().map(|longer| libm::log(*longer)).collect();
        let measured = logs.len() as f64;
        self.queues.push(Queue { users, longer: kendall_stats::mean(&logs), measured, requests });
        self.queues.sort_by_key(|queue| queue.users);
        self
    }

    /// The throughput of a closed population of this many users.
    pub(crate) fn throughput_per_s(&self, users: u32) -> Option<f64> {
        self.closed.iter().find(|population| population.0 == users).map(|population| population.1)
    }

    /// The relative standard deviation between measurements of the capacity.
    pub(crate) fn capacity_sd(&self) -> f64 {
        self.capacity.map_or(0.0, |capacity| capacity.relative_sd)
    }

    /// By how much throughput falls as users are added, up to those of the full loads, as a difference of logarithms.
    pub(crate) fn fall(&self) -> f64 {
        let mut most_per_s: f64 = 0.0;
        let up_to_full =
            self.closed.iter().filter(|population| population.0 <= self.full_users.unwrap_or(u32::MAX));
        let falls = up_to_full.map(|&(_, per_s)| {
            most_per_s = most_per_s.max(per_s);
            libm::log(most_per_s / per_s)
        });
        falls.fold(0.0, f64::max)
    }

    /// Whether the server's timestamps report the service time of every request, of a station that is known.
    pub(crate) fn is_stamped(&self) -> bool {
        self.known.is_some()
            && self.levels.iter().flat_map(Level::counted).all(|request| request.stamp.is_some())
    }

    /// The capacity, if it was measured.
    pub fn capacity(&self) -> Option<Capacity> {
        self.capacity
    }

    pub(crate) fn classes(&self) -> &[RowClass] {
        self.known.as_ref().map_or(&[], |known| &known.classes)
    }

    pub(crate) fn conditions(&self) -> Conditions<'_> {
        Conditions { classes: self.classes(), closed: &self.closed }
    }

    pub(crate) fn highest(&self) -> &Level {
        self.levels.last().expect("there is a level")
    }

    pub(crate) fn lowest(&self) -> &Level {
        self.levels.first().expect("there is a level")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_of_the_last_measurements_is_as_uncertain_as_that_of_three() {
        let weights = |n: i32| (1..n).map(|at| 0.5_f64.powi(at)).chain([0.5_f64.powi(n - 1)]);
        for n in 1..9 {
            let squares: f64 = weights(n).map(|weight| weight * weight).sum();
            assert!((halved(n as u32) - squares).abs() < 1e-12, "{n}: {squares}");
        }
        let capacity = Capacity { per_s: 100.0, relative_sd: 0.02, blocks: 40, requests: f64::INFINITY };
        let upper = |squared_weights| libm::log(capacity.in_another_minute(1.0, squared_weights, 0.975));
        let ratio = upper(halved(40)) / upper(1.0 / 40.0);
        assert!((ratio - ((1.0_f64 + 1.0 / 3.0) / (1.0 + 1.0 / 40.0)).sqrt()).abs() < 1e-9, "{ratio}");
    }
}
