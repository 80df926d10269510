//! The calibration of a server that does not stamp, which runs before the trials, so that models have a service time.
//!
//! At full load the servers of a station are never idle, so c servers that answer X requests per second take S = c/X for each.
//! What a request takes beyond S where it meets no other is delay outside the station. That much is arithmetic; how service
//! times vary is read off the same lone requests, and so blurred by how the delay varies.

use kendall_archive::read_json;
use kendall_evidence::Calibrated;
use kendall_experiment::{Combination, RunFolder, settings};
use kendall_record::RecordError;
use kendall_station::Servers;
use serde::{Deserialize, Serialize};

use crate::thin::thinned;

/// Lone requests that are kept.
const KEPT: usize = 500;
/// The file in the folder of a run that keeps what calibration measured.
pub const CALIBRATION_FILE: &str = "beforehand.json";

/// The calibration of a server without stamps, for one combination of server and workload settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerCalibration {
    /// The settings of server and workload.
    pub settings: String,
    /// The result of the calibration.
    pub found: Unstamped,
}

impl ServerCalibration {
    /// All that calibration measured in a run.
    ///
    /// # Errors
    /// Fails where its file cannot be read.
    pub fn read(run: &RunFolder) -> Result<Vec<Self>, RecordError> {
        let file = run.folder().join(CALIBRATION_FILE);
        if file.exists() { read_json(&file) } else { Ok(Vec::new()) }
    }

    /// The calibration of the server of a combination in a run, if it does not stamp.
    ///
    /// # Errors
    /// Fails where the file cannot be read.
    pub fn found(run: &RunFolder, combination: &Combination) -> Result<Option<Unstamped>, RecordError> {
        Ok(Self::of(combination, &Self::read(run)?).cloned())
    }

    /// The calibration of the server of a combination, if there is one.
    pub fn of<'k>(combination: &Combination, known: &'k [Self]) -> Option<&'k Unstamped> {
        let settings = settings(combination);
        known.iter().find(|known| known.settings == settings).map(|known| &known.found)
    }
}

/// The result of calibrating a server without stamps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Unstamped {
    /// Service times, ascending: the times of lone requests, moved and scaled to the mean service time.
    pub services_s: Vec<f64>,
    /// The time of a lone request beyond its service.
    pub delay_s: f64,
    /// The capacity of the servers, where it is known; without it all the time of a lone request counts as service.
    pub full_per_s: Option<f64>,
}

impl Unstamped {
    /// Calibrates from the times of lone requests, ascending, and the capacity of the servers.
    pub fn new(lone_s: &[f64], full_per_s: Option<f64>, servers: Servers) -> Self {
        let mean = |times_s: &[f64]| times_s.iter().sum::<f64>() / times_s.len() as f64;
        let unloaded_s = mean(lone_s);
        let service_s = full_per_s.map_or(unloaded_s, |per_s| f64::from(servers.get()) / per_s);
        // Where lone requests are faster than the servers are at full load, no delay can be distinguished.
        let delay_s = (unloaded_s - service_s).max(0.0);
        let least_s = 0.05 * service_s;
        let moved: Vec<f64> =
            thinned(lone_s, KEPT).iter().map(|time_s| (time_s - delay_s).max(least_s)).collect();
        let scale = service_s / mean(&moved);
        let services_s = moved.iter().map(|time_s| time_s * scale).collect();
        Self { services_s, delay_s, full_per_s }
    }

    /// The service time and the delay that follow from the calibration.
    pub fn calibrated(&self) -> Calibrated {
        let service_s = self.services_s.iter().sum::<f64>() / self.services_s.len() as f64;
        Calibrated { service_s, delay_s: self.delay_s }
    }

    /// Where the service times of a report come from.
    pub fn note(&self, servers: Servers) -> String {
        let Calibrated { service_s, delay_s } = self.calibrated();
        let (service_ms, delay_ms) = (service_s * 1e3, delay_s * 1e3);
        match self.full_per_s {
            Some(per_s) => format!(
                "The server sends no timestamps, so its service time comes from calibration: {servers} servers that answer {per_s:.0} \
                 requests per second at full load take {service_ms:.3} ms for each. A single request on an idle server takes \
                 {delay_ms:.3} ms more; this counts as delay outside the station. Waiting times and utilisation follow from these two \
                 numbers, and no request can be replayed.",
                servers = servers.get(),
            ),
            None => format!(
                "The server sends no timestamps and was not calibrated at full load, so its service time comes from single requests on \
                 an idle server: {service_ms:.3} ms, network delay included. To separate the two, set `capacity` in [load], or give \
                 the rate in per cent. No request can be replayed."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(times_s: &[f64]) -> f64 {
        times_s.iter().sum::<f64>() / times_s.len() as f64
    }

    #[test]
    fn capacity_gives_the_service_time_and_lone_requests_the_delay_and_the_variation() {
        let lone_s: Vec<f64> = (0..1000).map(|i| 0.0115 + 1e-6 * f64::from(i)).collect();
        let found = Unstamped::new(&lone_s, Some(200.0), Servers::new(2).unwrap());
        let Calibrated { service_s, delay_s } = found.calibrated();
        assert!((service_s - 0.01).abs() < 1e-12 && (delay_s - (mean(&lone_s) - 0.01)).abs() < 1e-12);
        let spread = found.services_s[KEPT - 1] - found.services_s[0];
        assert!((spread - 0.999e-3).abs() < 1e-5, "{spread}");
        assert!(found.note(Servers::MIN).contains("10.000 ms"));
    }

    #[test]
    fn without_a_capacity_all_of_a_lone_request_is_service() {
        let found = Unstamped::new(&[0.001, 0.002, 0.006], None, Servers::MIN);
        let Calibrated { service_s, delay_s } = found.calibrated();
        assert!((service_s - 0.003).abs() < 1e-12 && delay_s == 0.0);
    }

    #[test]
    fn a_server_that_is_slower_under_load_has_no_delay_and_no_service_below_nothing() {
        let found = Unstamped::new(&[0.001, 0.001, 0.009], Some(100.0), Servers::MIN);
        assert_eq!(found.delay_s, 0.0);
        assert!(found.services_s.iter().all(|&s| s > 0.0) && (mean(&found.services_s) - 0.01).abs() < 1e-12);
        let quick = Unstamped::new(&[0.001, 0.001, 0.009], Some(10_000.0), Servers::MIN);
        assert!(quick.delay_s > 0.0 && (mean(&quick.services_s) - 1e-4).abs() < 1e-12);
    }
}
