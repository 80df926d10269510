//! The speed of the machine in each second, as a fixed computation measured it, and how much service depends on it.

use crate::block::Block;
use crate::observed::{Capacity, Observed};

/// What the time of a fixed computation says of service.
struct Speed {
    /// The elasticity of service.
    depends: f64,
    /// The logarithm of a computation in each second of the full loads, and that of the time between two answers, less what the elasticity
    /// explains.
    seconds: Vec<(f64, f64)>,
    /// What the logarithm of service would be in the full loads, in which each counts half as much as the next, as in the capacity.
    usual: f64,
}

impl Speed {
    /// From the logarithms of the computations and of the times between two answers in each second of each full load, in the order of
    /// measuring.
    fn of(loads: &[(Vec<f64>, Vec<f64>)]) -> Option<Self> {
        let seconds = loads.iter().flat_map(|(computation, gaps)| std::iter::zip(computation, gaps));
        let seconds = seconds.map(|(computation, gap)| (*computation, *gap));
        // A second without an answer is a pause, which no speed of the processors explains.
        let seconds: Vec<(f64, f64)> = seconds.filter(|(_, gap)| gap.is_finite()).collect();
        let depends = dependence(&seconds);
        let left: Vec<f64> = seconds.iter().map(|(computation, gap)| gap - depends * computation).collect();
        let mean_left = if left.is_empty() { 0.0 } else { kendall_stats::mean(&left) };
        let seconds =
            std::iter::zip(seconds, left).map(|(second, left)| (second.0, left - mean_left)).collect();
        let speed = Self { depends, seconds, usual: 0.0 };
        let of_load = |computation: &Vec<f64>| {
            kendall_stats::mean(&computation.iter().map(|log| speed.service(*log)).collect::<Vec<_>>())
        };
        let usual = loads.iter().map(|(computation, _)| of_load(computation)).reduce(f64::midpoint)?;
        Some(Self { usual, ..speed })
    }

    /// The logarithm of service for that of a computation: what the elasticity says, and by how much the seconds of about that speed differ
    /// from it on average.
    fn service(&self, log_computation: f64) -> f64 {
        /// Seconds whose computations differ by this share are of about the same speed.
        const ALIKE: f64 = 0.03;
        /// The elasticity counts as much as this many seconds of the same speed.
        const BELIEVED: f64 = 3.0;
        let (mut sum, mut count) = (0.0, BELIEVED);
        for (computation, left) in &self.seconds {
            let weight = libm::exp(-0.5 * ((computation - log_computation) / ALIKE).powi(2));
            sum += weight * left;
            count += weight;
        }
        self.depends * log_computation + sum / count
    }

    /// How many times as long as in the full loads work takes.
    fn slower(&self, log_computation: f64) -> f64 {
        libm::exp(self.service(log_computation) - self.usual)
    }
}

/// How many times as long as in the full loads work took in each second of a load.
pub(crate) struct Slower(Vec<f64>);

impl Slower {
    /// The end of a load, which is no whole second, is as the second before.
    pub(crate) fn at(&self, second: usize) -> f64 {
        self.0.get(second).or_else(|| self.0.last()).copied().unwrap_or(1.0)
    }
}

impl Observed {
    /// How many times as long as in the full loads work takes in each second of another load, by the processor time of a fixed
    /// computation in it. How much service depends on that speed is fitted to the answers of the full loads. `None` where nothing was
    /// timed.
    pub fn slower(&self, computation_s: &[f64]) -> Option<Vec<f64>> {
        let speed = self.speed().filter(|_| !computation_s.is_empty())?;
        Some(logs(computation_s).into_iter().map(|log| speed.slower(log)).collect())
    }

    /// How many times as long as in the full loads work took in each second of these requests, by the computations beside them: in all of
    /// them the same, if the machine may change its speed; as long as in the full loads where none was timed.
    pub(crate) fn slower_in(&self, block: &Block) -> Slower {
        let Some(slower) = self.slower(&block.computation_s) else { return Slower(Vec::new()) };
        let whole = libm::exp(kendall_stats::mean(&logs(&slower)));
        Slower(if self.one_speed { slower } else { vec![whole; slower.len()] })
    }

    /// The server on a machine that has the same speed in every second, that of the full loads: what the computations say of the speed is
    /// taken out of the measurements. `None` where nothing was timed.
    #[must_use]
    pub fn at_one_speed(&self) -> Option<Self> {
        self.speed()?;
        let steady = Self { one_speed: true, ..self.clone() };
        let gaps_s = steady.full_gaps_s();
        let per_s: Vec<f64> = gaps_s
            .iter()
            .filter(|gaps_s| !gaps_s.is_empty())
            // Each second counts as much, however many answers it had.
            .map(|gaps_s| gaps_s.iter().map(|gap_s| gap_s.recip()).sum::<f64>() / gaps_s.len() as f64)
            .collect();
        let mean_per_s = kendall_stats::mean(&per_s);
        let relative_sd = kendall_stats::variance(&per_s).sqrt() / mean_per_s;
        let capacity = self.capacity.map(|capacity| match per_s.len() {
            0 | 1 => capacity,
            n => Capacity { per_s: mean_per_s, relative_sd, blocks: n as u32, ..capacity },
        });
        // At one speed there is no drift that makes the last loads the likest to what comes.
        let squared_weights =
            if per_s.len() < 2 { self.squared_weights } else { (per_s.len() as f64).recip() };
        Some(Self { capacity, squared_weights, ..steady })
    }

    /// The mean time between two answers in each second of the full loads, the last of them first, and infinite in a second without one: at
    /// one speed, if the machine is taken to have one.
    pub(crate) fn full_gaps_s(&self) -> Vec<Vec<f64>> {
        let Some(speed) = self.speed().filter(|_| self.one_speed) else { return self.gaps_s.clone() };
        let steady = |(gaps_s, computation_s): (&Vec<f64>, &Vec<f64>)| {
            let slower = logs(computation_s).into_iter().map(|log| speed.slower(log));
            let slower = slower.chain(std::iter::repeat(1.0));
            std::iter::zip(gaps_s, slower).map(|(gap_s, slower)| gap_s / slower).collect()
        };
        std::iter::zip(&self.gaps_s, &self.computation_s).map(steady).collect()
    }

    fn speed(&self) -> Option<Speed> {
        let timed = std::iter::zip(&self.computation_s, &self.gaps_s).rev();
        let timed: Vec<(Vec<f64>, Vec<f64>)> = timed
            .filter(|(computation_s, _)| !computation_s.is_empty())
            .map(|(computation_s, gaps_s)| (logs(computation_s), logs(gaps_s)))
            .collect();
        Speed::of(&timed)
    }
}

fn logs(times_s: &[f64]) -> Vec<f64> {
    times_s.iter().map(|time_s| libm::log(*time_s)).collect()
}

/// The slope of the least-squares line through the logarithms of two times in each of some seconds. With little variation in them it is near
/// 1: what takes one of them longer takes the other as much longer.
fn dependence(seconds: &[(f64, f64)]) -> f64 {
    /// As many squared deviations count for a slope of 1: those of twenty seconds that differ by 3 %.
    const BELIEVED: f64 = 0.018;
    let (x, y): (Vec<f64>, Vec<f64>) = seconds.iter().copied().unzip();
    let (mean_x, mean_y) = (kendall_stats::mean(&x), kendall_stats::mean(&y));
    let spread: f64 = x.iter().map(|x| (x - mean_x).powi(2)).sum();
    let along: f64 = seconds.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    ((along + BELIEVED) / (spread + BELIEVED)).clamp(0.0, 2.0)
}
