//! Bounds of a closed network without a solution, and the laws that any measurement of one must obey.

use super::{ClosedError, ClosedNetwork};

/// Bounds on the throughput and the response time of a closed network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// Least and most requests per second, by asymptotic analysis (Denning and Buzen 1978; Lazowska et al. 1984, table
    /// 5.1).
    pub throughput_per_s: (f64, f64),
    /// Least and most mean response time, in seconds, by asymptotic analysis.
    pub response_s: (f64, f64),
    /// Tighter bounds on the throughput by comparing with networks of equal stations; also with think time (Zahorjan, Sevcik, Eager
    /// and Galler 1982; Lazowska et al. 1984, table 5.2). `None` with stations of several servers.
    pub balanced_throughput_per_s: Option<(f64, f64)>,
    /// The bounds of the mean response time, in seconds.
    pub balanced_response_s: Option<(f64, f64)>,
    /// N*, the number of users at which the two asymptotes of the throughput meet: from here on users queue at the bottleneck. Infinite
    /// if no request ever waits.
    pub saturation_users: f64,
}

impl ClosedNetwork {
    /// Bounds without a solution of the network, for any number of users.
    ///
    /// # Errors
    /// As [`validate`](Self::validate).
    pub fn bounds(&self) -> Result<Bounds, ClosedError> {
        self.validate()?;
        let users = self.users as f64;
        // A delay takes time but no request waits there, so it counts as think time except in the response time.
        let think_s = super::mva::delay_s(self);
        let queueing = || self.stations.iter().filter(|station| !station.is_delay());
        let demand_s: f64 = queueing().map(|station| station.demand_s).sum();
        let best_s = queueing().map(|station| station.demand_s / station.most_servers()).fold(0.0, f64::max);
        // A station with m servers is slowest with all users present, at worst one after the other.
        let worst_s: f64 = queueing().map(|station| station.demand_s / slowest(station)).sum();
        let fast_s: f64 = queueing().map(|station| station.demand_s / fastest(station)).sum();
        let throughput_per_s =
            (users / (users * worst_s + think_s), (users / (fast_s + think_s)).min(1.0 / best_s));
        let response = |throughput: f64| (users / throughput - self.think_s).max(0.0);
        let single = queueing().all(|station| station.is_single());
        let balanced_throughput_per_s = (single && demand_s > 0.0).then(|| {
            let mean_s = demand_s / queueing().count() as f64;
            let others = users - 1.0;
            let low = others * best_s / (1.0 + think_s / (users * demand_s));
            let high = others * mean_s / (1.0 + think_s / demand_s);
            let all_s = demand_s + think_s;
            (users / (all_s + low), (users / (all_s + high)).min(1.0 / best_s))
        });
        Ok(Bounds {
            throughput_per_s,
            response_s: (response(throughput_per_s.1), response(throughput_per_s.0)),
            balanced_throughput_per_s,
            balanced_response_s: balanced_throughput_per_s.map(|(low, high)| (response(high), response(low))),
            saturation_users: (demand_s + think_s) / best_s,
        })
    }
}

/// The least rate of a station, in servers.
fn slowest(station: &super::ClosedStation) -> f64 {
    match &station.serving {
        super::Serving::Rates(rates) => rates.iter().copied().fold(f64::INFINITY, f64::min),
        _ => 1.0,
    }
}

/// The highest speed for a single request, in servers.
fn fastest(station: &super::ClosedStation) -> f64 {
    match &station.serving {
        super::Serving::Rates(rates) => {
            let each = rates.iter().zip(1u32..).map(|(rate, n)| rate / f64::from(n));
            each.fold(0.0, f64::max)
        }
        _ => 1.0,
    }
}

/// The interactive response-time law, R = N/X − Z (Denning and Buzen 1978): the mean response time of `users` who think for
/// `think_s` and together send `throughput_per_s` requests.
pub fn interactive_response_s(users: f64, throughput_per_s: f64, think_s: f64) -> f64 {
    users / throughput_per_s - think_s
}

/// Little's law over a whole closed loop, N = X·(R + Z), applied to a measured row. It holds for any system, any discipline and any
/// law of service, so a row that violates it was not measured at one and the same load, or counts wrongly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InteractiveCheck {
    /// The number of users, according to the row.
    pub users: f64,
    /// X·(R + Z): the implied number of users.
    pub implied_users: f64,
}

impl InteractiveCheck {
    /// The relative difference of the implied number of users above which the row is doubted: rounding, and requests cut off at the
    /// ends of a run.
    pub const TOLERANCE: f64 = 0.02;

    /// Checks a row.
    pub fn new(users: f64, throughput_per_s: f64, response_s: f64, think_s: f64) -> Self {
        Self { users, implied_users: throughput_per_s * (response_s + think_s) }
    }

    /// X·(R + Z)/N, 1 where the law holds.
    pub fn ratio(&self) -> f64 {
        self.implied_users / self.users
    }

    /// Whether the row is consistent within [`TOLERANCE`](Self::TOLERANCE).
    pub fn holds(&self) -> bool {
        (self.ratio() - 1.0).abs() <= Self::TOLERANCE
    }
}
