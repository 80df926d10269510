//! The service time from each source, the best source first.

use super::line::Line;
use serde::Serialize;
use statrs::distribution::{ContinuousCDF as _, StudentsT};

use super::observation::{Load, Observation, Stamped, short};
use super::sample::Prior;
use kendall_stats::{student_t, t_interval};

/// A source of the service time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The server stamped the start and the end of each service.
    Stamps,
    /// The slope of the busy processors over the rate, by the utilisation law.
    Utilisation,
    /// The response time at the lowest load, the delay taken off.
    LowLoad,
    /// The curve of the response times itself, by the model that predicts best.
    Curve,
}

/// The service time from one source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServiceTime {
    /// The source.
    pub source: Source,
    /// The mean service time.
    pub mean_s: f64,
    /// The service time's 95 % interval, where the source has one.
    pub interval_s: Option<(f64, f64)>,
    /// Whether the models are fitted with this service time.
    pub used: bool,
    /// The reservation about the service time, as a sentence.
    pub doubt: Option<String>,
}

/// Service times that differ by more than this between loads are said to depend on load.
const DEPENDS: f64 = 1.15;

/// The mean over the points of what the server stamped, weighted by how many requests each had. The interval is from the
/// spread between the points, which holds what differs from load to load; from the spread within where there is one point.
pub(super) fn stamps(points: &[Observation]) -> Option<(ServiceTime, Option<f64>)> {
    let stamped: Vec<Stamped> = points.iter().filter_map(|point| point.service).collect();
    let weights: Vec<f64> = stamped.iter().map(|stamped| stamped.n.unwrap_or(1.0)).collect();
    let total: f64 = weights.iter().sum();
    let weighted = |of: fn(&Stamped) -> Option<f64>| -> Option<f64> {
        let values: Option<Vec<f64>> = stamped.iter().map(of).collect();
        Some(values?.iter().zip(&weights).map(|(value, weight)| value * weight).sum::<f64>() / total)
    };
    if stamped.is_empty() {
        return None;
    }
    let mean_s = weighted(|stamped| Some(stamped.mean_s))?;
    let scv = weighted(|stamped| stamped.scv);
    let means: Vec<f64> = stamped.iter().map(|stamped| stamped.mean_s).collect();
    let between = t_interval(&means).map(|(_, half)| half);
    let counted = stamped.iter().all(|stamped| stamped.n.is_some());
    let within = scv.filter(|_| counted).map(|scv| 1.96 * mean_s * (scv / total).sqrt());
    let half = between
        .into_iter()
        .chain(within)
        .fold(None, |most: Option<f64>, half| Some(most.map_or(half, |most| most.max(half))));
    let (first, last) = (means[0], means[means.len() - 1]);
    let doubt = (last / first > DEPENDS || first / last > DEPENDS).then(|| {
        format!(
            "it changes with the load by a factor of {}, so one mean does not hold for all loads",
            short(last / first)
        )
    });
    let interval_s = half.map(|half| ((mean_s - half).max(0.0), mean_s + half));
    Some((ServiceTime { source: Source::Stamps, mean_s, interval_s, used: true, doubt }, scv))
}

/// The utilisation law U = U₀ + λ·D/m (Denning and Buzen 1978, section 3) by least squares on the busy processors, with
/// U₀ ≥ 0 for what the machine does besides. A bend that a square term shows (t-test at 5 %, and 10 % of the slope) is
/// demand that depends on load.
pub(super) fn utilisation(points: &[Observation], servers: Option<u32>) -> Option<ServiceTime> {
    let busy = |point: &Observation| {
        let Load::Open { rate_per_s } = point.load else { return None };
        let told =
            point.cpu_cores.or_else(|| Some(point.utilisation? * f64::from(point.servers.or(servers)?)));
        Some((rate_per_s, told?))
    };
    let points: Vec<(f64, f64)> = points.iter().filter_map(busy).collect();
    if points.len() < 3 {
        return None;
    }
    let line =
        Line::of(&points).filter(|line| line.level >= 0.0).unwrap_or_else(|| Line::through_zero(&points));
    if line.slope <= 0.0 || !line.slope.is_finite() {
        return None;
    }
    let half = student_t(line.freedom, 0.975) * line.slope_error;
    let doubt = bend(&points).map(|ratio| {
        format!(
            "it grows with the load: at the highest it costs {} times what it costs at the lowest",
            short(ratio)
        )
    });
    Some(ServiceTime {
        source: Source::Utilisation,
        mean_s: line.slope,
        interval_s: Some(((line.slope - half).max(0.0), line.slope + half)),
        used: doubt.is_none(),
        doubt,
    })
}

/// By what factor the slope at the highest load exceeds that at the lowest, where a square term is there. It is the part
/// of the square that a line does not explain, against which what is left of the busy processors is fitted.
fn bend(points: &[(f64, f64)]) -> Option<f64> {
    let freedom = points.len() as f64 - 3.0;
    let line = Line::of(points).filter(|_| freedom >= 1.0)?;
    let squares: Vec<(f64, f64)> = points.iter().map(|point| (point.0, point.0 * point.0)).collect();
    let square = Line::of(&squares)?;
    let left = |point: &(f64, f64), line: &Line| point.1 - line.level - line.slope * point.0;
    let pairs: Vec<(f64, f64)> =
        points.iter().zip(&squares).map(|(p, s)| (left(s, &square), left(p, &line))).collect();
    let size: f64 = pairs.iter().map(|pair| pair.0 * pair.0).sum();
    let curve = pairs.iter().map(|pair| pair.0 * pair.1).sum::<f64>() / size;
    let rest: f64 = pairs.iter().map(|pair| (pair.1 - curve * pair.0).powi(2)).sum();
    let t = curve / (rest / freedom / size).sqrt();
    let p = 2.0 * StudentsT::new(0.0, 1.0, freedom).ok()?.sf(t.abs());
    let ends = points
        .iter()
        .fold((f64::INFINITY, 0.0f64), |(low, high), point| (low.min(point.0), high.max(point.0)));
    let slope_at = |rate: f64| line.slope + curve * (2.0 * rate - square.slope);
    let ratio = slope_at(ends.1) / slope_at(ends.0);
    (p < 0.05 && ratio > 1.1).then_some(ratio)
}

/// The response time at the lowest load without the delay: what is left is service, and little waiting.
pub(super) fn low_load(points: &[Observation], delay_s: Option<f64>) -> Option<ServiceTime> {
    let point = points.iter().min_by(|a, b| a.load.size().total_cmp(&b.load.size()))?;
    let (response_s, delay_s) = (point.response_s?, delay_s.unwrap_or(0.0));
    let mean_s = Some(response_s - delay_s).filter(|mean_s| *mean_s > 0.0)?;
    let half = point.response_half_width_s;
    Some(ServiceTime {
        source: Source::LowLoad,
        mean_s,
        interval_s: half.map(|half| ((mean_s - half).max(0.0), mean_s + half)),
        used: false,
        doubt: None,
    })
}

impl ServiceTime {
    /// The prior that the models are fitted with in addition to the response times.
    pub(super) fn prior(&self) -> Option<Prior> {
        let (low, high) = self.interval_s?;
        let relative_error = ((high - low) / 2.0 / 1.96 / self.mean_s).max(1e-3);
        Some(Prior { service_s: self.mean_s, relative_error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy(rate_per_s: f64, cpu_cores: f64) -> Observation {
        Observation { cpu_cores: Some(cpu_cores), ..Observation::at("", Load::Open { rate_per_s }) }
    }

    #[test]
    fn the_slope_of_busy_processors_is_the_service_time() {
        let noise = [1e-3, -1e-3, 5e-4, -1e-3, 8e-4];
        let points: Vec<Observation> =
            (1..6).map(|i| busy(100.0 * f64::from(i), 0.05 + f64::from(i) + noise[i as usize - 1])).collect();
        let found = utilisation(&points, None).unwrap();
        let (low, high) = found.interval_s.unwrap();
        assert!(low < 0.01 && 0.01 < high && high - low < 1e-4 && found.used, "{found:?}");
        let falling: Vec<Observation> = (1..6).map(|i| busy(f64::from(i), 1.0 / f64::from(i))).collect();
        assert!(utilisation(&falling, None).is_none_or(|found| found.mean_s > 0.0));
        assert_eq!(utilisation(&points[..2], None), None);
    }

    #[test]
    fn demand_that_grows_with_load_is_told() {
        let points: Vec<Observation> = (1..8)
            .map(|i| {
                busy(f64::from(i), 0.1 * f64::from(i) + 0.02 * f64::from(i * i) + 1e-4 * f64::from(i % 2))
            })
            .collect();
        let found = utilisation(&points, None).unwrap();
        assert!(!found.used && found.doubt.unwrap().contains("grows with the load"));
    }

    #[test]
    fn stamps_that_change_with_load_are_told() {
        let stamped = |rate_per_s, mean_s| Observation {
            service: Some(Stamped { mean_s, scv: Some(1.0), n: Some(1000.0) }),
            ..Observation::at("", Load::Open { rate_per_s })
        };
        let (found, scv) = stamps(&[stamped(1.0, 0.1), stamped(2.0, 0.11)]).unwrap();
        assert!(found.doubt.is_none() && scv == Some(1.0) && (found.mean_s - 0.105).abs() < 1e-12);
        let (found, _) = stamps(&[stamped(1.0, 0.1), stamped(2.0, 0.15)]).unwrap();
        assert!(found.doubt.unwrap().contains("changes with the load"));
    }
}
