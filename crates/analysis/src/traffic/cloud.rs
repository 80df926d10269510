//! Delay against goodput as a cloud of points with its ellipse, as Winstein and Balakrishnan draw it ("TCP ex Machina:
//! Computer-Generated Congestion Control", SIGCOMM 2013): the one-sigma contour of the normal law of two dimensions that is the most
//! likely one to have made the points.

use kendall_flows::{About, ECHO_PORT, Traces};
use serde::Serialize;

use super::goodput::bytes_by;
use super::queue::{Cut, left};
use super::series::{seconds, window_s};

/// An ellipse of fewer points says nothing.
const FEWEST: usize = 3;

/// Queue delay and goodput of one kind, interval by interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cloud {
    /// The kind of flow.
    pub kind: String,
    /// Seconds in queues, and bytes per second.
    pub points: Vec<(f64, f64)>,
}

/// The one-sigma ellipse of a cloud.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ellipse {
    /// The ellipse's centre: mean delay and mean goodput.
    pub mean: (f64, f64),
    /// Standard deviations of both, by the number of points.
    pub deviation: (f64, f64),
    /// The correlation, between −1 and 1; 0 where one of them does not vary.
    pub correlation: f64,
}

impl Cloud {
    /// The cloud's ellipse; `None` of fewer than three points.
    pub fn ellipse(&self) -> Option<Ellipse> {
        let n = self.points.len();
        if n < FEWEST {
            return None;
        }
        let mean_of = |of: &dyn Fn(&(f64, f64)) -> f64| self.points.iter().map(of).sum::<f64>() / n as f64;
        let mean = (mean_of(&|point| point.0), mean_of(&|point| point.1));
        let variance =
            (mean_of(&|point| (point.0 - mean.0).powi(2)), mean_of(&|point| (point.1 - mean.1).powi(2)));
        let covariance = mean_of(&|point| (point.0 - mean.0) * (point.1 - mean.1));
        let deviation = (variance.0.sqrt(), variance.1.sqrt());
        let product = deviation.0 * deviation.1;
        let correlation = if product > 0.0 { (covariance / product).clamp(-1.0, 1.0) } else { 0.0 };
        Some(Ellipse { mean, deviation, correlation })
    }
}

/// The cloud of each kind in a span of a run: a point for each of its flows and each interval in which packets of the kind left
/// the queues on their way.
pub(super) fn of_flows(about: &About, traces: &Traces, (from_ns, to_ns): (i64, i64)) -> Vec<Cloud> {
    let of_log = |at_ns: i64| at_ns.saturating_sub(traces.start_ns);
    let cut = Cut::of(of_log(from_ns), of_log(to_ns), window_s(seconds(to_ns.saturating_sub(from_ns))));
    let mut clouds: Vec<Cloud> = Vec::new();
    for (number, flow) in about.flows.iter().enumerate() {
        let counts = |row: &kendall_flows::LinkRow<'_>| {
            row.direction == flow.way.name() && row.has_port(flow.port) && !row.has_port(ECHO_PORT)
        };
        let hops: Vec<_> = left(&traces.link, cut, counts).into_values().collect();
        let point = |at: usize| {
            // What waits at no hop has not come through.
            let delay_s: Option<f64> = hops.iter().map(|hop| hop[at].mean_s()).sum();
            let bytes =
                |edge| bytes_by(&traces.seen.ticks, number, from_ns.saturating_add(cut.edge_ns(edge)));
            Some((delay_s.filter(|_| !hops.is_empty())?, (bytes(at + 1)? - bytes(at)?) / cut.interval_s()))
        };
        let points = (0..cut.intervals).filter_map(point);
        match clouds.iter_mut().find(|cloud| cloud.kind == flow.kind()) {
            Some(cloud) => cloud.points.extend(points),
            None => clouds.push(Cloud { kind: flow.kind(), points: points.collect() }),
        }
    }
    clouds
}
