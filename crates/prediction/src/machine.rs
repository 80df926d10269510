//! The speed of the machine in each second, as a fixed computation measured it, and how much service depends on it.

use crate::observed::Observed;

impl Observed {
    /// How many times as long as in the full loads work takes in each second of another load, by the processor time of a fixed
    /// computation: its mean in each counted second of the full loads, in the order of measuring, and in each second of that load. How
    /// much service depends on that speed is fitted to the answers of the full loads. `None` where nothing was timed.
    pub fn slower(&self, full_s: &[Vec<f64>], load_s: &[f64]) -> Option<Vec<f64>> {
        let logs = |times_s: &[f64]| times_s.iter().map(|time_s| libm::log(*time_s)).collect::<Vec<f64>>();
        let full: Vec<Vec<f64>> = full_s.iter().map(|times_s| logs(times_s)).collect();
        let full = full.iter().filter(|times| !times.is_empty());
        let levels: Vec<f64> = full.clone().map(|times| kendall_stats::mean(times)).collect();
        let usual = levels.into_iter().reduce(f64::midpoint).filter(|_| !load_s.is_empty())?;
        // The full loads were added in the reverse order.
        let seconds = std::iter::zip(full, self.gaps_s.iter().rev());
        let seconds: Vec<(f64, f64)> =
            seconds.flat_map(|(times, gaps_s)| std::iter::zip(times.clone(), logs(gaps_s))).collect();
        let depends = dependence(&seconds);
        Some(logs(load_s).into_iter().map(|time| libm::exp(depends * (time - usual))).collect())
    }
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
