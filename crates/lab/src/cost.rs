//! The cost of an experiment's combinations: how many requests each needs for a given precision, and how many are planned.

use std::time::Duration;

use kendall_evidence::streamed::Warmup;
use kendall_experiment::{Combination, Experiment, Load, Schedule};
use kendall_station::{Law, Station};
use kendall_system::StationShape;
use kendall_theory::plan;
use serde::Serialize;

/// The assumption behind [`costs`], as a sentence.
pub const COSTS_ASSUME: &str = "As if service times were exponential. Ones that vary less need fewer requests, and ones that \
                                vary more need more: kendall plan M/G/1 with --service-scv.";

/// The cost of one combination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The levels of the factors: "rate=80%, workers=2".
    pub place: String,
    /// The cost, or why it is unknown.
    pub needs: Result<Needs, String>,
}

/// Requests over all repeats, warm-ups excluded.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// The mean share of the servers that are busy.
    pub utilisation: f64,
    /// Requests for the wanted precision of the mean response time.
    pub needed: f64,
    /// The requests that the experiment plans; `None` where that depends on an unknown service time.
    pub planned: Option<f64>,
    /// The relative half-width that the planned requests give.
    pub relative_half_width: Option<f64>,
}

/// Computes the cost of each combination, in the order of the file. A rate that is a share of the capacity needs no service time;
/// for any other rate it is the mean `service_s`.
pub fn costs(experiment: &Experiment, precision: f64, service_s: Option<f64>) -> Vec<Cost> {
    let cost = |combination: &Combination| {
        let levels = combination.levels.iter().map(|(name, value)| format!("{name}={value}"));
        Cost {
            place: levels.collect::<Vec<_>>().join(", "),
            needs: needs(experiment, combination, precision, service_s),
        }
    };
    experiment.combinations().iter().map(cost).collect()
}

fn needs(
    experiment: &Experiment,
    combination: &Combination,
    precision: f64,
    service_s: Option<f64>,
) -> Result<Needs, String> {
    let load = experiment.load(combination).map_err(|(name, why)| format!("{name}: {why}"))?;
    let StationShape { servers, discipline, capacity } = (experiment.system.station)(&combination.server);
    // At a share of the capacity, utilisation is the same whatever the unit of time.
    let mean_s = match (service_s, &load.schedule) {
        (Some(service_s), _) => service_s,
        (None, Schedule::Share(..)) => 1.0,
        (None, _) => {
            return Err("how full it will be depends on the service time; give --service-time".into());
        }
    };
    let capacity_per_s = f64::from(servers.get()) / mean_s;
    let arrivals = load.arrivals(Some(capacity_per_s));
    let station =
        Station { discipline, capacity, ..Station::new(arrivals, Law::Exponential { mean_s }, servers) };
    let plan = plan(&station, precision).map_err(|why| why.to_string())?;
    let planned = planned(&load, plan.rate_per_s, service_s).map(|each| each * f64::from(experiment.repeats));
    Ok(Needs {
        utilisation: plan.utilisation,
        needed: plan.response.requests,
        planned,
        relative_half_width: planned.map(|planned| plan.response.relative_half_width(planned)),
    })
}

/// The requests of one trial that count.
fn planned(load: &Load, rate_per_s: f64, service_s: Option<f64>) -> Option<f64> {
    let during = |time: Duration| service_s.map(|_| time.as_secs_f64() * rate_per_s);
    let sent = match (load.requests.map(|requests| requests as f64), load.duration.map(during)) {
        (Some(requests), Some(Some(within))) => requests.min(within),
        (Some(requests), None) => requests,
        (None, Some(within)) => within?,
        // The service time decides which of the two limits ends a trial.
        (_, Some(None)) | (None, None) => return None,
    };
    let warmup = match load.warmup {
        // The length of the warm-up is not known yet; a good server has almost none.
        Warmup::Until(0) | Warmup::Auto => 0.0,
        Warmup::Until(until_ns) => during(Duration::from_nanos(until_ns.unsigned_abs()))?,
    };
    Some(sent - warmup).filter(|&counted| counted > 0.0)
}
