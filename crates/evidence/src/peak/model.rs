//! The model that gives the next rate to probe.

use serde::Serialize;

use super::{Probe, Sighting};
use crate::fit::{Family, Load, Model, Served, Slo, SloMeasure, highest_rate, meets};

/// How fast the weight of a probe falls with the distance of what it saw from the limit: at twice the limit to an eighth.
const NEARNESS: f64 = 3.0;
/// The distance used for overload, where no distance can be measured.
const OVERLOADED: f64 = 2.0;

/// A station as a model of the system: m servers under Poisson arrivals. It is corrected by every probe.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Curve {
    served: Served,
}

/// The load at which the system is used best: the most throughput for its response time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Knee {
    /// Requests per second.
    pub rate_per_s: f64,
    /// The mean response time there, in seconds.
    pub response_s: f64,
}

impl Curve {
    /// A station with `servers`, whose requests take the given time in service and the given delay outside.
    pub fn new(servers: u32, service_s: f64, delay_s: f64) -> Self {
        let served = Served {
            family: Family::Exponential,
            servers: servers.max(1),
            service_s,
            scv: 1.0,
            delay_s,
            serial_s: 0.0,
            capacity: None,
        };
        Self { served }
    }

    /// The highest rate that meets an objective by this model; `None` where none does.
    pub fn highest_per_s(&self, slo: Slo) -> Option<f64> {
        highest_rate(&Model::Served(self.served), slo)
            .ok()
            .filter(|&rate_per_s| rate_per_s > 0.0 && rate_per_s.is_finite())
    }

    /// The curve's capacity in requests per second.
    pub fn capacity_per_s(&self) -> f64 {
        f64::from(self.served.servers) / self.served.service_s
    }

    /// Changes the service time so that the model says what was seen: of each probe the service time with which it does, and
    /// of these the geometric mean, in which long probes near the limit weigh most.
    pub(super) fn correct(&mut self, probes: &[Probe], slo: Slo) {
        let (mut sum, mut weights) = (0.0, 0.0);
        for Probe { ask, sighting, .. } in probes.iter().filter(|probe| probe.is_believed()) {
            let Some((service_s, distance)) = self.implied(ask.rate_per_s, sighting, slo) else { continue };
            let weight = f64::from(ask.length) * libm::exp(-NEARNESS * distance);
            sum += weight * libm::log(service_s);
            weights += weight;
        }
        if weights > 0.0 {
            self.served.service_s = libm::exp(sum / weights);
        }
    }

    /// The highest rate by a probe alone, by the model that says what it saw, and how far that is from the limit, as the logarithm of
    /// their ratio.
    pub(super) fn highest_by(&self, probe: &Probe, slo: Slo) -> Option<(f64, f64)> {
        let (service_s, distance) = self.implied(probe.ask.rate_per_s, &probe.sighting, slo)?;
        let alone = Self { served: Served { service_s, ..self.served } };
        Some((alone.highest_per_s(slo)?, distance))
    }

    /// The service time with which the model says at a rate what was seen there, and how far that is from the limit, as the
    /// logarithm of their ratio.
    fn implied(&self, rate_per_s: f64, seen: &Sighting, slo: Slo) -> Option<(f64, f64)> {
        let servers = f64::from(self.served.servers);
        if seen.is_overloaded() {
            // What it achieved is its capacity.
            let achieved_per_s = seen.achieved_share * rate_per_s;
            return (achieved_per_s > 0.0).then_some((servers / achieved_per_s, OVERLOADED));
        }
        // No service takes zero time: a measurement below the delay carries no information.
        let value_s = seen.value_s?.value;
        if !value_s.is_finite() || value_s <= self.served.delay_s {
            return None;
        }
        let limit = Slo { at_most_s: value_s, ..slo };
        let says_less = |service_s: f64| {
            let model = Model::Served(Served { service_s, ..self.served });
            meets(&model, &Load::Open { rate_per_s }, limit).unwrap_or(false)
        };
        // Beyond saturation no service time can lie, for the probe was not overloaded.
        let (mut low, mut high) = (0.0, servers / rate_per_s);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if says_less(middle) { low = middle } else { high = middle }
        }
        (low > 0.0).then(|| (low, libm::log(value_s / slo.at_most_s).abs()))
    }

    /// The maximum of throughput over mean response time (Kleinrock 1979: power).
    pub fn knee(&self) -> Option<Knee> {
        let model = Model::Served(self.served);
        let response_s = |rate_per_s: f64| model.response_s(&Load::Open { rate_per_s });
        let capacity = self.capacity_per_s();
        // One maximum: power rises from 0 and falls to 0 at saturation.
        let power = |share: f64| response_s(share * capacity).map_or(0.0, |response| share / response);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..80 {
            let (a, b) = (low + (high - low) / 3.0, high - (high - low) / 3.0);
            if power(a) < power(b) { low = a } else { high = b }
        }
        let rate_per_s = f64::midpoint(low, high) * capacity;
        Some(Knee { rate_per_s, response_s: response_s(rate_per_s)? })
    }

    /// The value of the objective by this model on an idle system. No rate passes an objective below it.
    pub fn is_within_reach(&self, slo: Slo) -> bool {
        match slo.measure {
            SloMeasure::Mean => self.served.service_s + self.served.delay_s < slo.at_most_s,
            SloMeasure::Quantile(_) => self.highest_per_s(slo).is_some(),
        }
    }
}
