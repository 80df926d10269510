//! How much the system bears: the knee of a model, and the scalability law through closed populations.

use kendall_report::{Curve, Knee, Scaling, UslSeen};
use kendall_station::Arrivals;
use kendall_theory::scalability::{PeakSeen, Point, fit_usl};

use super::Measurement;
use crate::axis::Axis;
use crate::experiment::Combination;

/// Places on the line of a law.
const STEPS: u32 = 100;
/// The line goes on beyond the largest population by this factor.
const BEYOND: f64 = 1.3;

/// The later factors' values, and the points that have them.
type Group<'a> = (Vec<(String, String)>, Vec<&'a Measurement>);

/// What can be fitted to each group of points that differ in the first factor only.
pub(super) fn scalings(
    axis: &Axis,
    curves: &[Curve],
    measured: &[(&Combination, Measurement)],
) -> Vec<Scaling> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for (combination, measurement) in measured {
        let group: Vec<(String, String)> = axis.settings(combination).into_iter().skip(1).collect();
        match groups.iter_mut().find(|(known, _)| *known == group) {
            Some((_, points)) => points.push(measurement),
            None => groups.push((group, vec![measurement])),
        }
    }
    let scaling = |(group, points): Group<'_>| {
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

/// Where a formula's curve has the most throughput for its response time. In an open system that is not overloaded, all that
/// comes is served. `None` where the curve ends before it.
fn knee(curve: &Curve) -> Option<Knee> {
    let power = |&(rate_per_s, response_s): &(f64, f64)| rate_per_s / response_s;
    let line = &curve.mean_response_s;
    let best = (0..line.len()).max_by(|&a, &b| power(&line[a]).total_cmp(&power(&line[b])))?;
    let (throughput_per_s, response_s) = line[best];
    let knee = Knee { notation: curve.notation.clone(), throughput_per_s, response_s };
    (best + 1 < line.len()).then_some(knee)
}

/// The universal scalability law through the points of closed populations; `None` where they are others, or too few.
fn usl(points: &[&Measurement]) -> Option<UslSeen> {
    let point = |measurement: &&Measurement| match measurement.arrivals {
        Arrivals::Closed { population, .. } => {
            Some(Point::new(f64::from(population), measurement.answer.throughput_per_s.value))
        }
        _ => None,
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

    /// Of M/M/1 the power is largest at half of what it bears (Kleinrock 1979).
    #[test]
    fn the_knee_of_one_server_is_at_half_of_its_capacity() {
        let line =
            |most: u32| (1..most).map(|rate| (f64::from(rate), 1.0 / (100.0 - f64::from(rate)))).collect();
        let curve = |most| Curve {
            notation: "M/M/1".into(),
            group: vec![],
            mean_response_s: line(most),
            mean_waiting_s: vec![],
        };
        let found = knee(&curve(100)).unwrap();
        assert_eq!((found.throughput_per_s, found.response_s), (50.0, 0.02));
        assert_eq!(knee(&curve(40)), None, "the knee lies beyond the curve");
    }
}
