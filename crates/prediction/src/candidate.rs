//! Candidate stations, and the service law that each implies.

use kendall_evidence::{Rules, Visit, departures};
use kendall_station::{Discipline, Servers};
use kendall_stats::random::{Rng, unit};

use crate::implied::{in_order_s, in_turn_s, shared_s};
use crate::observed::{Block, Capacity, Conditions, KnownStation, Level, Observed};
use crate::order::{Order, Shared, Speed, departures_in_turn_s};

/// Service times are drawn in contiguous runs of at least this many, so that pauses stay together.
const SHORTEST_RUN: usize = 16;
/// And of at most this many: a level has only some thousands to draw from.
const LONGEST_RUN: usize = 256;
/// Service times further apart than the lag at which their correlation falls below this count as independent.
const UNCORRELATED: f64 = 0.1;

/// A station that may be the server: how many servers, in which order they serve, and the time that requests spend elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Candidate {
    pub(crate) order: Order,
    pub(crate) servers: u32,
    pub(crate) delay_s: f64,
}

/// The service times that a candidate implies at one level, as they came, divided into the level's chunks.
#[derive(Clone, Debug)]
pub(crate) struct LevelLaw {
    pub(crate) rate_per_s: f64,
    pub(crate) services_s: Vec<f64>,
    classes: Vec<u32>,
    /// The end of each chunk.
    ends: Vec<usize>,
}

impl LevelLaw {
    fn of(level: &Level, candidate: Candidate, observed: &Observed) -> Self {
        let is_stamped = observed.is_stamped();
        let of_block = |block: &Block| -> Vec<f64> {
            if is_stamped {
                return block.requests.iter().filter_map(|request| Some(request.stamp?.service_s)).collect();
            }
            candidate.implied_s(block, &observed.conditions())
        };
        let implied: Vec<Vec<f64>> = level.blocks.iter().map(of_block).collect();
        let (mut services_s, mut classes, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (at, range) in &level.chunks {
            let block = &level.blocks[*at];
            services_s.extend_from_slice(&implied[*at][block.first + range.start..block.first + range.end]);
            classes.extend(block.counted()[range.clone()].iter().map(|request| request.class));
            ends.push(services_s.len());
        }
        Self { rate_per_s: level.rate_per_s, services_s, classes, ends }
    }

    pub(crate) fn chunk(&self, at: usize) -> std::ops::Range<usize> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        start..self.ends[at]
    }

    /// The mean, with these weights of the chunks.
    pub(crate) fn mean_s(&self, weights: &[f64]) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (at, weight) in weights.iter().enumerate() {
            let range = self.chunk(at);
            count += weight * range.len() as f64;
            sum += weight * self.services_s[range].iter().sum::<f64>();
        }
        sum / count
    }
}

/// Service times of mean 1 to draw from, in contiguous runs.
#[derive(Clone, Debug)]
pub(crate) struct Services {
    scaled: Vec<f64>,
    classes: Vec<u32>,
    /// Chunks of these with their cumulative weights, the last of which is 1.
    chunks: Vec<(f64, std::ops::Range<usize>)>,
    /// The number of service times in a run.
    run: usize,
}

impl Services {
    /// The service times from levels with the weights of their chunks.
    pub(crate) fn of(levels: &[LevelLaw], weights: &[Vec<f64>]) -> Self {
        let (mut scaled, mut classes, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
        let mut sum = 0.0;
        for (level, weights) in levels.iter().zip(weights) {
            let mean_s = level.mean_s(weights);
            for (at, weight) in weights.iter().enumerate() {
                let range = level.chunk(at);
                sum += weight * range.len() as f64;
                let start = scaled.len();
                scaled.extend(level.services_s[range.clone()].iter().map(|service_s| service_s / mean_s));
                classes.extend_from_slice(&level.classes[range]);
                chunks.push((sum, start..scaled.len()));
            }
        }
        chunks.iter_mut().for_each(|chunk| chunk.0 /= sum);
        let run = levels.iter().map(|level| run_of(&level.services_s)).max().unwrap_or(SHORTEST_RUN);
        Self { scaled, classes, chunks, run }
    }

    /// The place of a request from which a run begins.
    fn start(&self, rng: &mut Rng) -> usize {
        let share = unit(rng);
        let at = self.chunks.partition_point(|chunk| chunk.0 < share).min(self.chunks.len() - 1);
        let range = &self.chunks[at].1;
        range.start + (unit(rng) * range.len() as f64) as usize
    }

    /// Draws service times and classes, with a mean of `mean_s`.
    pub(crate) fn draw(&self, mean_s: f64, rng: &mut Rng, visits: &mut [Visit]) {
        let n = self.scaled.len();
        for run in visits.chunks_mut(self.run) {
            let start = self.start(rng);
            for (at, visit) in run.iter_mut().enumerate() {
                let from = (start + at) % n;
                visit.service_s = self.scaled[from] * mean_s;
                visit.class = self.classes[from] as usize;
            }
        }
    }

    /// Draws likewise, but each request separately and of a class in these proportions.
    pub(crate) fn draw_mixed(&self, mean_s: f64, mix: &Mix, rng: &mut Rng, visits: &mut [Visit]) {
        for visit in visits {
            let class = mix.class(rng);
            let of_class = &mix.members[class];
            let from = of_class[(unit(rng) * of_class.len() as f64) as usize] as usize;
            visit.service_s = self.scaled[from] * mean_s;
            visit.class = class;
        }
    }
}

/// The number of service times after which they are as good as independent: twice the lag, in powers of two, at which they are hardly
/// correlated any more. The speed of a machine changes in spells of some tens of milliseconds, as caches and cores are taken by others.
fn run_of(services_s: &[f64]) -> usize {
    let (mean_s, variance) = (kendall_stats::mean(services_s), kendall_stats::variance(services_s));
    let correlation = |lag: usize| {
        let pairs = std::iter::zip(services_s, &services_s[lag..]);
        let products: f64 = pairs.map(|(a, b)| (a - mean_s) * (b - mean_s)).sum();
        products / (variance * services_s.len() as f64)
    };
    let mut run = SHORTEST_RUN;
    while run < LONGEST_RUN.min(services_s.len()) && correlation(run / 2) >= UNCORRELATED {
        run *= 2;
    }
    run
}

/// The classes of requests in other proportions than measured.
#[derive(Clone, Debug)]
pub(crate) struct Mix {
    /// Cumulative shares.
    shares: Vec<f64>,
    /// The measured requests of each class.
    members: Vec<Vec<u32>>,
    /// The mean service time of this mix over that of the measured one.
    pub(crate) longer: f64,
}

impl Mix {
    /// # Errors
    /// Names a class with a share that was never measured.
    pub(crate) fn of(services: &Services, shares: &[f64]) -> Result<Self, usize> {
        let mut members = vec![Vec::new(); shares.len()];
        for (at, class) in services.classes.iter().enumerate() {
            if let Some(of_class) = members.get_mut(*class as usize) {
                of_class.push(at as u32);
            }
        }
        let is_missing = |class: &usize| shares[*class] > 0.0 && members[*class].is_empty();
        if let Some(class) = (0..shares.len()).find(is_missing) {
            return Err(class);
        }
        let sum: f64 = shares.iter().sum();
        let mut so_far = 0.0;
        let cumulative = shares.iter().map(|share| {
            so_far += share / sum;
            so_far
        });
        let mean = |members: &[u32]| {
            members.iter().map(|&at| services.scaled[at as usize]).sum::<f64>() / members.len().max(1) as f64
        };
        let longer = shares.iter().zip(&members).map(|(share, members)| share / sum * mean(members)).sum();
        Ok(Self { shares: cumulative.collect(), longer, members })
    }

    fn class(&self, rng: &mut Rng) -> usize {
        let drawn = unit(rng);
        let at = self.shares.partition_point(|share| *share < drawn).min(self.shares.len() - 1);
        // A share of 0 has no members.
        (at..self.members.len()).chain(0..at).find(|&class| !self.members[class].is_empty()).unwrap_or(at)
    }
}

/// The mean service time as a function of utilisation: through the measured levels, and to m/C at saturation where the capacity C is
/// known.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    /// Throughput over capacity, and the mean service time in seconds; ascending.
    points: Vec<(f64, f64)>,
    pub(crate) capacity_per_s: f64,
}

impl Path {
    /// From measured levels, by the least-squares line through them, so that noise puts no kink into the path. Without a
    /// capacity, `growth` is the relative growth of the service time from the highest level to saturation.
    pub(crate) fn through(
        levels: &[(f64, f64)],
        servers: f64,
        capacity_per_s: Option<f64>,
        growth: f64,
    ) -> Self {
        let (low, high) = ends(levels);
        let capacity_per_s = capacity_per_s.unwrap_or_else(|| {
            // The rate at which m servers of that service time are busy: λ = m / s(1).
            servers / (high.1 * (1.0 + growth))
        });
        let full = (1.0, servers / capacity_per_s);
        let mut points = vec![(low.0 / capacity_per_s, low.1)];
        if high.0 > low.0 {
            points.push((high.0 / capacity_per_s, high.1));
        }
        points.retain(|point| point.0 < 0.98);
        points.push(full);
        Self { points, capacity_per_s }
    }

    /// The mean service time at a throughput, in seconds.
    pub(crate) fn service_s(&self, rate_per_s: f64) -> f64 {
        let at = rate_per_s / self.capacity_per_s;
        let after = self.points.partition_point(|point| point.0 < at);
        match (after.checked_sub(1).map(|before| self.points[before]), self.points.get(after)) {
            (Some(before), Some(after)) => {
                before.1 + (after.1 - before.1) * (at - before.0) / (after.0 - before.0)
            }
            (Some(end), None) | (None, Some(&end)) => end.1,
            (None, None) => f64::NAN,
        }
    }

    /// By how much the service time grows from the highest measured level to saturation, relative to its value there.
    pub(crate) fn growth(&self) -> f64 {
        let [.., before, full] = self.points[..] else { return 0.0 };
        full.1 / before.1 - 1.0
    }
}

/// The ends of the least-squares line through rates and times.
fn ends(levels: &[(f64, f64)]) -> ((f64, f64), (f64, f64)) {
    let n = levels.len() as f64;
    let (x, y) = levels.iter().fold((0.0, 0.0), |sum, level| (sum.0 + level.0 / n, sum.1 + level.1 / n));
    let spread: f64 = levels.iter().map(|level| (level.0 - x).powi(2)).sum();
    let slope = match spread {
        0.0 => 0.0,
        _ => levels.iter().map(|level| (level.0 - x) * (level.1 - y)).sum::<f64>() / spread,
    };
    let at = |rate: f64| (rate, y + slope * (rate - x));
    (at(levels[0].0), at(levels[levels.len() - 1].0))
}

/// A candidate with its service law at every level.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) candidate: Candidate,
    /// The most seconds of service per second.
    width: f64,
    pub(crate) levels: Vec<LevelLaw>,
}

impl Fitted {
    /// The squared coefficient of variation of the service times of the highest level.
    pub(crate) fn scv(&self) -> f64 {
        let services_s = self.levels.last().map_or(&[][..], |level| &level.services_s);
        kendall_stats::variance(services_s) / kendall_stats::mean(services_s).powi(2)
    }

    pub(crate) fn of(candidate: Candidate, observed: &Observed) -> Self {
        let width = candidate.width(&observed.conditions());
        let law = |level: &Level| LevelLaw::of(level, candidate, observed);
        Self { candidate, width, levels: observed.levels.iter().map(law).collect() }
    }

    /// The path of the mean service time through the first levels, with these weights of their chunks.
    pub(crate) fn path(&self, weights: &[Vec<f64>], capacity_per_s: Option<f64>, growth: f64) -> Path {
        self.slower_path(weights, 1.0, capacity_per_s, growth)
    }

    /// The same if the measured service times were this many times as long.
    pub(crate) fn slower_path(
        &self,
        weights: &[Vec<f64>],
        slower: f64,
        capacity_per_s: Option<f64>,
        growth: f64,
    ) -> Path {
        let levels = self.levels.iter().zip(weights);
        let means: Vec<(f64, f64)> =
            levels.map(|(level, weights)| (level.rate_per_s, slower * level.mean_s(weights))).collect();
        Path::through(&means, self.width, capacity_per_s, growth)
    }
}

/// The candidates that can be: service times no longer than responses, and capacity as measured. All with several delays, if the
/// server's timestamps do not report it.
pub(crate) fn candidates(observed: &Observed) -> Vec<Candidate> {
    const SERVERS: [u32; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64];
    /// A candidate whose mean service time is this many times the lowest level's mean response is impossible.
    const LONGER: f64 = 1.25;
    if observed.is_stamped()
        && let Some(KnownStation { servers, discipline, .. }) = &observed.known
    {
        let outside = observed.levels.iter().flat_map(Level::counted).filter_map(|request| request.stamp);
        let outside_s: Vec<f64> = outside.map(|stamp| stamp.outside_s).collect();
        let delay_s = kendall_stats::mean(&outside_s);
        return vec![Candidate { order: Order::OneQueue(*discipline), servers: servers.get(), delay_s }];
    }
    let mean_s = observed.lowest().mean_response_s();
    let can_be = |servers: &u32| match observed.capacity {
        Some(Capacity { per_s, .. }) => f64::from(*servers) / per_s <= LONGER * mean_s,
        // The highest level is below saturation.
        None => {
            f64::from(*servers)
                > observed.highest().rate_per_s * 0.5 * (mean_s - observed.shortest_s()).max(0.0)
        }
    };
    let mut counts: Vec<u32> = match &observed.known {
        Some(known) => vec![known.servers.get()],
        None => SERVERS.into_iter().filter(can_be).collect(),
    };
    if counts.is_empty() {
        counts.push(1);
    }
    let stations = counts.into_iter().flat_map(|servers| {
        [Discipline::Fifo, Discipline::ProcessorSharing].into_iter().map(move |discipline| Candidate {
            order: Order::OneQueue(discipline),
            servers,
            delay_s: 0.0,
        })
    });
    let step_s = observed.delay_step_s();
    stations
        .flat_map(|station| (0..=DELAYS).map(move |part| station.delayed(f64::from(part) * step_s)))
        .collect()
}

/// Delays that are tried at first, from none to the shortest response times.
const DELAYS: u32 = 8;

/// Orders of several queues are tried with at most this many servers.
const MOST_QUEUES: u32 = 8;
/// A speed that depends on the number of requests present is tried where throughput falls by more than this, and twice the drift.
const LEAST_FALL: f64 = 0.15;
/// Limits that are tried, in times of the servers.
const LIMITS: [u32; 3] = [2, 4, 8];

impl Candidate {
    /// Other orders that the same data may have, with the same delay: several queues, a limit on the requests in service, a speed that
    /// depends on their number.
    pub(crate) fn variants(self, observed: &Observed) -> Vec<Self> {
        if observed.known.is_some() {
            return Vec::new();
        }
        let with = |order, servers| Self { order, servers, ..self };
        let mut variants = Vec::new();
        if (2..=MOST_QUEUES).contains(&self.servers) {
            variants.extend(
                [Order::Turns, Order::Scattered, Order::ScatteredFifo].map(|order| with(order, self.servers)),
            );
        }
        variants.extend(LIMITS.map(|times| with(Order::AtMost(times * self.servers), self.servers)));
        // Noise of a curve would be taken for a fall that no server has.
        let falls = observed.fall() > LEAST_FALL.max(2.0 * observed.drift());
        if falls && Speed::of_populations(&observed.closed, self.delay_s).is_some() {
            variants.extend([Order::SharedSpeed, Order::SerialSpeed].map(|order| with(order, 1)));
        }
        variants
    }

    /// The order with another number of servers, each of which has as many threads as before.
    pub(crate) fn order_with(self, servers: u32) -> Order {
        match self.order {
            Order::AtMost(limit) => Order::AtMost((limit / self.servers).saturating_mul(servers)),
            order => order,
        }
    }

    /// The most seconds of service per second.
    fn width(self, conditions: &Conditions<'_>) -> f64 {
        match self.shared(conditions) {
            Some(shared) => shared.speed.full(),
            None => f64::from(self.servers),
        }
    }

    /// The station, where requests share its servers.
    fn shared(self, conditions: &Conditions<'_>) -> Option<Shared> {
        let of_servers = || Speed::of_servers(f64::from(self.servers));
        let measured = || {
            let speed = Speed::of_populations(conditions.closed, self.delay_s);
            speed.map_or_else(of_servers, |speed| speed.times(self.servers))
        };
        match self.order {
            Order::OneQueue(discipline) if discipline.shares() => {
                Some(Shared { limit: usize::MAX, speed: of_servers() })
            }
            Order::OneQueue(_) | Order::Turns => None,
            Order::AtMost(limit) => Some(Shared { limit: limit as usize, speed: of_servers() }),
            Order::Scattered => Some(Shared { limit: usize::MAX, speed: Speed::of_scattered(self.servers) }),
            Order::ScatteredFifo => {
                Some(Shared { limit: self.servers as usize, speed: Speed::of_scattered(self.servers) })
            }
            Order::SharedSpeed => Some(Shared { limit: usize::MAX, speed: measured() }),
            Order::SerialSpeed => Some(Shared { limit: self.servers as usize, speed: measured() }),
        }
    }

    /// The service times that this station implies, of all requests of a block in the order of sending; exact for every order but those
    /// that weigh requests, which count as first come first served.
    pub(crate) fn implied_s(self, block: &Block, conditions: &Conditions<'_>) -> Vec<f64> {
        match self.shared(conditions) {
            Some(shared) => shared_s(block, &shared, self.delay_s),
            None if self.order == Order::Turns => in_turn_s(block, self.servers as usize, self.delay_s),
            None => in_order_s(block, self.servers as usize, self.delay_s),
        }
    }

    /// The response times since sending of visits, delay included.
    pub(crate) fn responses_s(self, visits: &[Visit], conditions: &Conditions<'_>) -> Vec<f64> {
        let ends_s = match (self.shared(conditions), self.order) {
            (Some(shared), _) => shared.departures_s(visits),
            (None, Order::OneQueue(discipline)) => {
                let servers = Servers::new(self.servers).unwrap_or(Servers::MIN);
                let ends_s = departures(visits, &Rules::new(servers, discipline, conditions.classes));
                ends_s.into_iter().map(|end_s| end_s.unwrap_or(f64::INFINITY)).collect()
            }
            (None, _) => departures_in_turn_s(visits, self.servers as usize),
        };
        std::iter::zip(ends_s, visits).map(|(end_s, visit)| end_s - visit.arrival_s + self.delay_s).collect()
    }

    fn delayed(self, delay_s: f64) -> Self {
        Self { delay_s, ..self }
    }

    /// The candidates with delays between those tried at first.
    pub(crate) fn neighbours(self, observed: &Observed) -> impl Iterator<Item = Self> {
        let step_s = observed.delay_step_s();
        let most_s = step_s * f64::from(DELAYS);
        [-0.75, -0.5, -0.25, 0.25, 0.5, 0.75]
            .into_iter()
            .map(move |part| self.delay_s + part * step_s)
            .filter(move |delay_s| *delay_s > 0.0 && *delay_s < most_s)
            .map(move |delay_s| self.delayed(delay_s))
    }
}

impl Observed {
    /// A response time that hardly any request undercuts, in seconds.
    fn shortest_s(&self) -> f64 {
        let lowest = self.lowest().counted().map(|request| request.completed_s - request.sent_s);
        let mut responses_s: Vec<f64> = lowest.collect();
        responses_s.sort_by(f64::total_cmp);
        responses_s[responses_s.len() / 50]
    }

    fn delay_step_s(&self) -> f64 {
        0.995 * self.shortest_s() / f64::from(DELAYS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_as_long_as_the_spells_of_the_machine() {
        let rng = &mut kendall_stats::random::stream(1, kendall_stats::random::Purpose::Sample, 0);
        let mut services_in_spells_of = |length: usize| -> Vec<f64> {
            let mut slower = 0.0;
            let mut service_s = |at: usize| {
                if at.is_multiple_of(length) {
                    slower = unit(rng);
                }
                1.0 + slower + unit(rng)
            };
            (0..16_384).map(&mut service_s).collect()
        };
        assert_eq!(run_of(&services_in_spells_of(1)), SHORTEST_RUN);
        let run = run_of(&services_in_spells_of(40));
        assert!((32..=128).contains(&run), "{run}");
        assert_eq!(run_of(&services_in_spells_of(2_000)), LONGEST_RUN);
        assert_eq!(run_of(&[1.0; 100]), SHORTEST_RUN, "no variance has no correlation");
    }
}
