//! Spells in which a busy server is slower or faster than on average: other programs and the host of a virtual machine take its caches
//! and processors for moments that are too short to change the capacity, and long enough to let a queue grow.

use kendall_stats::random::{Rng, unit};

use crate::services::Services;

/// The speed is measured over windows of this length.
const WINDOW_S: f64 = 0.5;
/// It is drawn in contiguous runs of this many windows, so that spells of seconds stay together.
const RUN: usize = 4;
/// Fewer windows say nothing about how speeds differ.
const LEAST_WINDOWS: usize = 12;

/// The answers of busy servers, window by window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spells {
    /// The answers in each window, over their mean in the same load.
    shares: Vec<f64>,
    /// All answers in these windows.
    answers: f64,
}

impl Spells {
    /// Adds the answers of a load that kept the server busy, by the ascending times of their completion, in seconds.
    pub(crate) fn add(&mut self, completed_s: &[f64]) {
        let (Some(first), Some(last)) = (completed_s.first(), completed_s.last()) else { return };
        let windows = ((last - first) / WINDOW_S) as usize;
        let until = |window: usize| {
            let end_s = first + window as f64 * WINDOW_S;
            completed_s.partition_point(|at_s| *at_s < end_s)
        };
        let counts = (0..windows).map(|window| (until(window + 1) - until(window)) as f64);
        let mean = until(windows) as f64 / windows as f64;
        self.shares.extend(counts.map(|count| count / mean));
        self.answers += until(windows) as f64;
    }

    /// The speeds of the windows over their mean, drawn together to the spread that the service times themselves do not explain. Empty
    /// where they explain it all.
    pub(crate) fn speeds(&self, services: &Services) -> Vec<f64> {
        let windows = self.shares.len();
        if windows < LEAST_WINDOWS {
            return Vec::new();
        }
        let seen = kendall_stats::variance(&self.shares);
        let explained = services.scatter_of_mean(self.answers / windows as f64);
        // Two standard deviations of a variance of that many normal values.
        let noise = 2.0 * (2.0 / windows as f64).sqrt();
        if seen <= explained * (1.0 + noise) {
            return Vec::new();
        }
        let kept = (1.0 - explained / seen).sqrt();
        // A window without an answer is one of the slowest, but work goes on.
        self.shares.iter().map(|share| (1.0 + kept * (share - 1.0)).max(0.05)).collect()
    }
}

/// The speed of a server along a simulated run.
pub(crate) struct Course {
    windows: Vec<f64>,
}

impl Course {
    /// Draws the speeds of a run of this length.
    pub(crate) fn draw(speeds: &[f64], duration_s: f64, rng: &mut Rng) -> Self {
        let count = if speeds.is_empty() { 0 } else { (duration_s / WINDOW_S) as usize + 1 };
        let mut windows = Vec::with_capacity(count + RUN);
        while windows.len() < count {
            let start = (unit(rng) * speeds.len() as f64) as usize;
            windows.extend((0..RUN).map(|at| speeds[(start + at) % speeds.len()]));
        }
        Self { windows }
    }

    /// The speed at an instant of the run.
    pub(crate) fn at(&self, instant_s: f64) -> f64 {
        self.windows.get((instant_s / WINDOW_S) as usize).copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_stats::random::{Purpose, stream};

    /// Completions of a server for 60 s, whose speed is this at an instant.
    fn completed_s(services: &Services, speed: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut rng = stream(1, Purpose::Service, 0);
        let mut visits = vec![kendall_evidence::Visit { arrival_s: 0.0, service_s: 0.0, class: 0 }; 60_000];
        services.draw(1e-3, &mut rng, &mut visits);
        let mut now_s = 0.0;
        visits
            .iter()
            .map(|visit| {
                now_s += visit.service_s / speed(now_s);
                now_s
            })
            .collect()
    }

    fn exponential() -> Services {
        let mut rng = stream(2, Purpose::Service, 0);
        Services::alike((0..8_000).map(|_| -libm::log(1.0 - unit(&mut rng))).collect())
    }

    #[test]
    fn a_steady_server_has_no_spells_and_an_unsteady_one_has_its_own() {
        let services = exponential();
        let speeds = |speed: &dyn Fn(f64) -> f64| {
            let mut spells = Spells::default();
            spells.add(&completed_s(&services, speed));
            spells.speeds(&services)
        };
        assert!(speeds(&|_| 1.0).is_empty());
        let unsteady = speeds(&|now_s| if now_s % 6.0 < 3.0 { 0.85 } else { 1.15 });
        let sd = kendall_stats::variance(&unsteady).sqrt();
        assert!((sd - 0.15).abs() < 0.03, "{sd}");
        assert!((kendall_stats::mean(&unsteady) - 1.0).abs() < 0.01);
    }

    #[test]
    fn a_course_keeps_neighbours_together() {
        let mut rng = stream(3, Purpose::Sample, 0);
        let course = Course::draw(&[0.5, 0.6, 0.7, 0.8, 0.9], 100.0, &mut rng);
        for run in 0..50 {
            let at = |window: usize| course.at((run * RUN + window) as f64 * WINDOW_S);
            let steps = (1..RUN).map(|window| at(window) - at(window - 1));
            assert!(steps.into_iter().all(|step| (step - 0.1).abs() < 1e-9 || (step + 0.4).abs() < 1e-9));
        }
        let steady = Course::draw(&[], 100.0, &mut rng);
        assert!((steady.at(50.0) - 1.0).abs() < f64::EPSILON);
    }
}
