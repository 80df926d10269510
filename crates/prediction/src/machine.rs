//! The speed of the machine in each second, as a fixed computation measured it, and how much service depends on it.

use crate::block::Block;
use crate::observed::Observed;

/// What the time of a fixed computation says of service.
struct Speed {
    /// Its logarithm in the full loads, in which each counts half as much as the next, as in the capacity.
    usual: f64,
    /// The elasticity of service.
    depends: f64,
}

impl Speed {
    /// How many times as long as in the full loads work takes.
    fn slower(&self, log_computation: f64) -> f64 {
        libm::exp(self.depends * (log_computation - self.usual))
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

    /// How many times as long as in the full loads work took in these requests, by the computations beside them; 1 where none was timed.
    pub(crate) fn slower_in(&self, block: &Block) -> f64 {
        let speed = self.speed().filter(|_| !block.computation_s.is_empty());
        speed.map_or(1.0, |speed| speed.slower(kendall_stats::mean(&logs(&block.computation_s))))
    }

    fn speed(&self) -> Option<Speed> {
        let timed = std::iter::zip(&self.computation_s, &self.gaps_s).rev();
        let timed: Vec<(Vec<f64>, Vec<f64>)> = timed
            .filter(|(computation_s, _)| !computation_s.is_empty())
            .map(|(computation_s, gaps_s)| (logs(computation_s), logs(gaps_s)))
            .collect();
        let usual =
            timed.iter().map(|(computation, _)| kendall_stats::mean(computation)).reduce(f64::midpoint)?;
        let seconds: Vec<(f64, f64)> =
            timed.into_iter().flat_map(|(computation, gaps)| std::iter::zip(computation, gaps)).collect();
        Some(Speed { usual, depends: dependence(&seconds) })
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
