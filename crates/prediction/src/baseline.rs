//! The predictions of common practice on the same data: the yardstick for every prediction.

use kendall_station::{Arrivals, Law, Servers, Station};
use kendall_theory::formula;
use kendall_theory::scalability::{Point, fit_usl};
use serde::{Deserialize, Serialize};

use crate::observed::Observed;

/// A simple way to predict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Baseline {
    /// The response time stays as at the highest measured load.
    Same,
    /// A straight line over the utilisation.
    Line,
    /// Least squares on 1/(1 − ρ), with the capacity known: the strongest.
    Hyperbola,
    /// M/M/m with the mean service time of the lowest load.
    Exponential,
    /// The universal scalability law through closed populations.
    Scalability,
}

impl Baseline {
    /// Every baseline.
    pub const ALL: [Self; 5] =
        [Self::Same, Self::Line, Self::Hyperbola, Self::Exponential, Self::Scalability];

    /// The name of the baseline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "stays the same",
            Self::Line => "straight line",
            Self::Hyperbola => "a + b/(1 − ρ)",
            Self::Exponential => "M/M/m",
            Self::Scalability => "USL",
        }
    }
}

/// A baseline's predictions of the mean and of p99, in seconds; `None` where it has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BaselinePrediction {
    /// The baseline.
    pub baseline: Baseline,
    /// The mean response time.
    pub mean_s: Option<f64>,
    /// The quantile 0.99.
    pub p99_s: Option<f64>,
}

impl Observed {
    /// What the baselines predict at a rate, given the capacity and what closed populations got (users and requests per second).
    pub fn baselines(
        &self,
        rate_per_s: f64,
        capacity_per_s: f64,
        closed: &[(u32, f64)],
    ) -> Vec<BaselinePrediction> {
        let levels: Vec<Measured> = self
            .levels
            .iter()
            .map(|level| {
                let mut responses_s: Vec<f64> = level
                    .counted()
                    .map(|request| request.completed_s - request.sent_s + level.lag_s())
                    .collect();
                responses_s.sort_by(f64::total_cmp);
                let p99_s = responses_s[(responses_s.len() * 99).div_ceil(100) - 1];
                Measured {
                    rho: level.rate_per_s / capacity_per_s,
                    mean_s: kendall_stats::mean(&responses_s),
                    p99_s,
                }
            })
            .collect();
        let rho = rate_per_s / capacity_per_s;
        let of = |baseline| {
            let (mean_s, p99_s) = match baseline {
                Baseline::Same => {
                    let last = levels.last().expect("there is a level");
                    (Some(last.mean_s), Some(last.p99_s))
                }
                Baseline::Line => both(&levels, rho, |rho| rho),
                Baseline::Hyperbola => both(&levels, rho, |rho| 1.0 / (1.0 - rho)),
                Baseline::Exponential => exponential(levels[0].mean_s, rate_per_s, capacity_per_s),
                Baseline::Scalability => (by_scalability(closed, rate_per_s), None),
            };
            BaselinePrediction { baseline, mean_s, p99_s }
        };
        Baseline::ALL.into_iter().map(of).collect()
    }
}

/// The mean and a quantile of a level.
struct Measured {
    rho: f64,
    mean_s: f64,
    p99_s: f64,
}

/// Least squares on a function of the utilisation, of the mean and of p99; `None` for a single level.
fn both(levels: &[Measured], rho: f64, of: fn(f64) -> f64) -> (Option<f64>, Option<f64>) {
    let line = |value: fn(&Measured) -> f64| {
        let n = levels.len() as f64;
        let x = levels.iter().map(|level| of(level.rho)).sum::<f64>() / n;
        let y = levels.iter().map(value).sum::<f64>() / n;
        let spread: f64 = levels.iter().map(|level| (of(level.rho) - x).powi(2)).sum();
        let along: f64 = levels.iter().map(|level| (of(level.rho) - x) * (value(level) - y)).sum();
        (spread > 0.0).then(|| y + along / spread * (of(rho) - x))
    };
    (line(|level| level.mean_s), line(|level| level.p99_s))
}

/// M/M/m of the mean service time that the lowest load suggests, with as many servers as the capacity then needs.
fn exponential(lowest_s: f64, rate_per_s: f64, capacity_per_s: f64) -> (Option<f64>, Option<f64>) {
    let servers = (capacity_per_s * lowest_s).round().clamp(1.0, 100_000.0);
    let Some(servers) = Servers::new(servers as u32) else { return (None, None) };
    let service = Law::Exponential { mean_s: f64::from(servers.get()) / capacity_per_s };
    let answer = formula(&Station::new(Arrivals::poisson(rate_per_s), service, servers)).ok();
    let p99_s = answer.as_ref().and_then(|answer| Some(answer.response.quantile(0.99)?.value));
    (answer.map(|answer| answer.response.mean_s.value), p99_s)
}

/// The universal scalability law: the number of users that get this throughput, over it.
fn by_scalability(closed: &[(u32, f64)], rate_per_s: f64) -> Option<f64> {
    let points: Vec<Point> =
        closed.iter().map(|&(users, per_s)| Point::new(f64::from(users), per_s)).collect();
    let usl = fit_usl(&points).ok()?;
    let (mut low, mut high) = (0.0, if usl.peak.users.is_finite() { usl.peak.users } else { 1e6 });
    if usl.predict(high) < rate_per_s {
        return None;
    }
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if usl.predict(middle) < rate_per_s { low = middle } else { high = middle }
    }
    Some(high / rate_per_s)
}
