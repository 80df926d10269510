//! The service law that a candidate implies at every measured level, and how its mean depends on the load.

use crate::block::{Block, Request};
use crate::candidate::Candidate;
use crate::machine::Slower;
use crate::observed::{Level, Observed};
use crate::points::interpolated;
use crate::spells::slowness;

/// As many requests are present at saturation, in the populations that measure the capacity.
const MOST_PRESENT: f64 = 64.0;
/// Steps that find a utilisation to nine decimals.
const BISECTIONS: u32 = 30;

/// What the service times that a candidate implies at one level say of their law, without the times: there are many candidates. They are
/// those at the speed that the machine had in the full loads, where that is known.
#[derive(Clone, Debug)]
pub(crate) struct LevelLaw {
    pub(crate) rate_per_s: f64,
    /// The squared coefficient of variation.
    scv: f64,
    chunks: Vec<ChunkLaw>,
    /// How many times as long as usual service took in each second of each block.
    pub(crate) slowness: Vec<Vec<f64>>,
}

/// The service times of one chunk of a level, in seconds.
#[derive(Clone, Copy, Debug)]
struct ChunkLaw {
    count: usize,
    sum_s: f64,
    /// Of the service times without slow spells.
    steady_sum_s: f64,
}

impl LevelLaw {
    /// The law with the service times as they would have been without slow spells, in the order of the level's chunks.
    fn of(level: &Level, candidate: Candidate, observed: &Observed) -> (Self, Vec<f64>) {
        let is_stamped = observed.is_stamped();
        let of_block = |block: &Block| -> Vec<f64> {
            if is_stamped {
                // Requests of the warm-up may lack a stamp, and their service does not count.
                let service_s = |request: &Request| request.stamp.map_or(f64::NAN, |stamp| stamp.service_s);
                return block.requests.iter().map(service_s).collect();
            }
            candidate.implied_s(block, &observed.conditions())
        };
        let implied: Vec<Vec<f64>> = level.blocks.iter().map(of_block).collect();
        let slower: Vec<Slower> = level.blocks.iter().map(|block| observed.slower_in(block)).collect();
        let times_s = std::iter::zip(&level.blocks, &implied).enumerate();
        let times_s: Vec<Vec<f64>> = times_s
            .map(|(at, (block, implied))| {
                let means_s = block.means_by_second(&implied[block.first..]).into_iter().enumerate();
                means_s.map(|(second, mean_s)| mean_s / slower[at].at(second)).collect()
            })
            .collect();
        let all: Vec<f64> = std::iter::zip(&level.blocks, &implied)
            .flat_map(|(block, implied)| implied[block.first..].to_vec())
            .collect();
        let seconds = times_s.iter().flatten().filter(|time_s| !time_s.is_nan()).count() as f64;
        let slowness = slowness(&times_s, (squared_variation(&all) * seconds / all.len() as f64).sqrt());
        let (mut services_s, mut steady_s, mut chunks) = (Vec::new(), Vec::new(), Vec::new());
        for (at, range) in &level.chunks {
            let block = &level.blocks[*at];
            let requests = &block.counted()[range.clone()];
            for (request, service_s) in std::iter::zip(requests, &implied[*at][block.first + range.start..]) {
                let second = block.second(request);
                let service_s = service_s / slower[*at].at(second);
                services_s.push(service_s);
                steady_s.push(service_s / slowness[*at].get(second).unwrap_or(&1.0));
            }
            let counted = services_s.len() - range.len()..;
            let (sum_s, steady_sum_s) =
                (services_s[counted.clone()].iter().sum(), steady_s[counted].iter().sum());
            chunks.push(ChunkLaw { count: range.len(), sum_s, steady_sum_s });
        }
        let scv = squared_variation(&services_s);
        (Self { rate_per_s: level.rate_per_s, scv, chunks, slowness }, steady_s)
    }

    /// The numbers of requests in each chunk.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = usize> {
        self.chunks.iter().map(|chunk| chunk.count)
    }

    /// The mean, with these weights of the chunks.
    pub(crate) fn mean_s(&self, weights: &[f64]) -> f64 {
        self.mean_of(|chunk| chunk.sum_s, weights)
    }

    /// The mean without slow spells.
    pub(crate) fn steady_mean_s(&self, weights: &[f64]) -> f64 {
        self.mean_of(|chunk| chunk.steady_sum_s, weights)
    }

    fn mean_of(&self, sum_s: fn(&ChunkLaw) -> f64, weights: &[f64]) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (chunk, weight) in self.chunks.iter().zip(weights) {
            count += weight * chunk.count as f64;
            sum += weight * sum_s(chunk);
        }
        sum / count
    }
}

/// The squared coefficient of variation.
fn squared_variation(values: &[f64]) -> f64 {
    kendall_stats::variance(values) / kendall_stats::mean(values).powi(2)
}

/// The mean service time as a function of utilisation: through the measured levels, and to m/C at saturation where the capacity C is
/// known. Requests that disturb each other lengthen it in proportion to the servers that are busy. Work that is done once for all that
/// wait shortens it by the same share each time that the number present doubles.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Path {
    /// Throughput over capacity, and the mean service time in seconds; ascending.
    points: Vec<(f64, f64)>,
    servers: f64,
    pub(crate) capacity_per_s: f64,
}

/// Service times that shorten with the number of requests present at each server.
struct Shortening {
    /// Of a request that finds no other, in seconds.
    alone_s: f64,
    /// By how much it is shorter each time that one more than the number present is multiplied by e, in seconds.
    by_s: f64,
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
        Self { points, servers, capacity_per_s }
    }

    /// The mean service time at a throughput, in seconds.
    pub(crate) fn service_s(&self, rate_per_s: f64) -> f64 {
        let (before, after) = self.around(rate_per_s);
        if let Some(shortening) = self.shortening(before, after) {
            let busy = |rho: f64| rate_per_s * shortening.service_s(rho) / self.servers;
            // Service shortens until the servers are busy for no longer than there is time.
            let (mut low, mut high) = (0.0, 1.0);
            for _ in 0..BISECTIONS {
                let middle = f64::midpoint(low, high);
                if busy(middle) > middle { low = middle } else { high = middle }
            }
            return shortening.service_s(high);
        }
        interpolated(&[before, after], rate_per_s / self.capacity_per_s)
    }

    /// The service time of a request that finds no other, in seconds, and how many times as long it is by the number present, beyond the
    /// measured levels. `None` where service does not shorten there.
    pub(crate) fn by_present(&self, rate_per_s: f64, servers: f64) -> Option<(f64, Vec<(f64, f64)>)> {
        let (before, after) = self.around(rate_per_s);
        let shortening = self.shortening(before, after).filter(|_| after.0 >= 1.0)?;
        let present = (0..).map(|power| f64::from(1_u32 << power)).take_while(|more| *more <= MOST_PRESENT);
        let times = present.map(|more| {
            let times = 1.0 - shortening.by_s * more.ln() / shortening.alone_s;
            (servers * (more - 1.0), times)
        });
        Some((shortening.alone_s, times.collect()))
    }

    /// The points next to a throughput; outside all of them, the nearest twice.
    fn around(&self, rate_per_s: f64) -> ((f64, f64), (f64, f64)) {
        let after = self.points.partition_point(|point| point.0 < rate_per_s / self.capacity_per_s);
        let last = self.points.len() - 1;
        (self.points[after.saturating_sub(1)], self.points[after.min(last)])
    }

    /// How service shortens from one point to another. `None` where it does not.
    fn shortening(&self, before: (f64, f64), after: (f64, f64)) -> Option<Shortening> {
        let doublings = |point: (f64, f64)| doublings(point.0 * self.capacity_per_s * point.1 / self.servers);
        let (from, to) = (doublings(before), doublings(after));
        let by_s = (before.1 - after.1) / (to - from);
        (after.1 < before.1 && from < to).then_some(Shortening { alone_s: before.1 + by_s * from, by_s })
    }

    /// By how much the service time grows from the highest measured level to saturation, relative to its value there.
    pub(crate) fn growth(&self) -> f64 {
        let [.., before, full] = self.points[..] else { return 0.0 };
        full.1 / before.1 - 1.0
    }
}

impl Shortening {
    /// The mean at a utilisation, in seconds.
    fn service_s(&self, rho: f64) -> f64 {
        self.alone_s - self.by_s * doublings(rho)
    }
}

/// The mean of ln(1 + N) over the number of requests present at M/M/1, N, which counts as [`MOST_PRESENT`] − 1 at most: the sum of
/// P(N ≥ n) ln((n + 1)/n) with P(N ≥ n) = ρⁿ.
fn doublings(rho: f64) -> f64 {
    let (mut at_least, mut sum) = (1.0, 0.0);
    let mut n = 1.0;
    while n < MOST_PRESENT {
        at_least *= rho.min(1.0);
        sum += at_least * libm::log1p(1.0 / n);
        n += 1.0;
    }
    sum
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

/// The service times of each level as they would have been without slow spells, in the order of its chunks.
pub(crate) type SteadyServices = Vec<Vec<f64>>;

/// A candidate with its service law at every level.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    pub(crate) candidate: Candidate,
    /// The most seconds of service per second.
    pub(crate) width: f64,
    pub(crate) levels: Vec<LevelLaw>,
}

impl Fitted {
    /// The squared coefficient of variation of the service times at the highest level.
    pub(crate) fn scv(&self) -> f64 {
        self.levels.last().map_or(f64::NAN, |level| level.scv)
    }

    pub(crate) fn of(candidate: Candidate, observed: &Observed) -> (Self, SteadyServices) {
        let width = candidate.width(&observed.conditions());
        let law = |level: &Level| LevelLaw::of(level, candidate, observed);
        let (levels, steady) = observed.levels.iter().map(law).unzip();
        (Self { candidate, width, levels }, steady)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_shortens_with_the_number_present_and_lengthens_with_the_busy_share() {
        let path =
            |capacity_per_s| Path::through(&[(20.0, 0.01), (50.0, 0.01)], 1.0, Some(capacity_per_s), 0.0);
        // One server for 125/s takes 8 ms at saturation, with 63 present or more. At a utilisation of 0.5 the mean of ln(1 + N) is 0.5078, at
        // 0.9 it is 1.8645, and ln 64 is 4.1589: at 0.9 service takes 9.2568 ms, as 97.225/s do.
        let shortens = path(125.0);
        let service_s = shortens.service_s(97.225_436);
        assert!((service_s - 0.009_256_837).abs() < 1e-8, "{service_s}");
        assert!((shortens.service_s(125.0) - 0.008).abs() < 1e-6);
        assert!((shortens.service_s(50.0) - 0.01).abs() < 1e-6);
        let (alone_s, times) = shortens.by_present(100.0, 1.0).unwrap();
        assert!((alone_s - (0.01 + 0.002 * 0.5078 / (4.1589 - 0.5078))).abs() < 1e-6, "{alone_s}");
        assert_eq!(times[0], (0.0, 1.0));
        let full = times.last().unwrap();
        assert!(full.0 == 63.0 && (full.1 * alone_s - 0.008).abs() < 1e-9, "{full:?}");
        assert!(shortens.by_present(30.0, 1.0).is_none(), "between measured levels");
        // One for 80/s takes 12.5 ms, of which half is reached in the middle between 50/s and 80/s.
        let lengthens = path(80.0);
        assert!((lengthens.service_s(65.0) - 0.011_25).abs() < 1e-6, "{}", lengthens.service_s(65.0));
        assert!(lengthens.by_present(65.0, 1.0).is_none());
    }
}
