//! The capacity of the system: the knee of a model, and the scalability law through closed populations.

use kendall_theory::scalability::{PeakSeen, Point, fit_usl};

use crate::report::point::Curve;
use crate::report::scaling::{Knee, Scaling, UslSeen};

/// Places on the line of a law.
const STEPS: u32 = 100;
/// The line goes on beyond the largest population by this factor.
const BEYOND: f64 = 1.3;

/// Populations and the throughput that was measured with each, per second, of the points of a group; `None` at one whose load is
/// not a closed population.
pub type Populations = Vec<Option<(u32, f64)>>;

/// The scaling of each group of points: its settings, and its populations. The curves are those of all groups.
pub fn scalings(curves: &[Curve], groups: Vec<(Vec<(String, String)>, Populations)>) -> Vec<Scaling> {
    let scaling = |(group, points): (Vec<(String, String)>, Populations)| {
        // The first model is the one that the experiment names first.
        let knee = curves.iter().find(|curve| curve.group == group).and_then(knee);
        Scaling { knee, usl: usl(&points), group }
    };
    groups
        .into_iter()
        .map(scaling)
        .filter(|scaling| scaling.knee.is_some() || scaling.usl.is_some())
        .collect()
}

/// Where a formula's curve has the most throughput for its response time; `None` where the curve ends before it.
fn knee(curve: &Curve) -> Option<Knee> {
    let power = |&(throughput_per_s, response_s): &(f64, f64)| throughput_per_s / response_s;
    let line = curve.by_throughput();
    let best = (0..line.len()).max_by(|&a, &b| power(&line[a]).total_cmp(&power(&line[b])))?;
    let (throughput_per_s, response_s) = line[best];
    let knee = Knee { notation: curve.notation.clone(), throughput_per_s, response_s };
    (best + 1 < line.len()).then_some(knee)
}

/// The universal scalability law through the points of closed populations; `None` where they are others, or too few.
fn usl(points: &[Option<(u32, f64)>]) -> Option<UslSeen> {
    let point = |point: &Option<(u32, f64)>| {
        let (population, per_s) = (*point)?;
        Some(Point::new(f64::from(population), per_s))
    };
    let points: Vec<Point> = points.iter().map(point).collect::<Option<_>>()?;
    let usl = fit_usl(&points).ok()?;
    let most = points.iter().map(|point| point.users).fold(1.0, f64::max);
    let seen = (usl.peak.seen == PeakSeen::Within).then_some((usl.peak.users, usl.peak.throughput_per_s));
    let at = |step: u32| {
        let users = BEYOND * most * f64::from(step) / f64::from(STEPS);
        (users, usl.predict(users))
    };
    Some(UslSeen { words: usl.to_string(), line: (1..=STEPS).map(at).collect(), peak: seen })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The power of M/M/1 is largest at half of its capacity (Kleinrock 1979).
    #[test]
    fn the_knee_of_one_server_is_at_half_of_its_capacity() {
        let line =
            |most: u32| (1..most).map(|rate| (f64::from(rate), 1.0 / (100.0 - f64::from(rate)))).collect();
        let curve = |most| Curve {
            notation: "M/M/1".into(),
            group: vec![],
            mean_response_s: line(most),
            mean_waiting_s: vec![],
            throughput_per_s: vec![],
        };
        let found = knee(&curve(100)).unwrap();
        assert_eq!((found.throughput_per_s, found.response_s), (50.0, 0.02));
        assert_eq!(knee(&curve(40)), None, "the knee lies beyond the curve");
    }
}
