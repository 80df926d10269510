//! What an experiment's combinations cost: how many requests a precision needs at each, beside those that are planned.

use std::time::Duration;

use kendall_evidence::streamed::Warmup;
use kendall_experiment::{Combination, Experiment, Load, Schedule};
use kendall_station::{Law, Station};
use kendall_theory::plan;
use serde::Serialize;

/// What [`costs`] takes for granted, as a sentence.
pub const COSTS_ASSUME: &str = "As if service times were exponential. Ones that vary less need fewer requests, and ones that \
                                vary more need more: kendall plan M/G/1 with --service-scv.";

/// What one combination costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// The levels of the factors: "rate=80%, workers=2".
    pub place: String,
    /// What is known of it, or why nothing is.
    pub needs: Result<Needs, String>,
}

/// Requests, after the warm-ups, over all repeats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Needs {
    /// The mean share of the servers that will be busy.
    pub utilisation: f64,
    /// Requests for the wanted precision of the mean response time.
    pub needed: f64,
    /// Those that the experiment plans; `None` where that depends on a service time that is not known.
    pub planned: Option<f64>,
    /// The half-width that these give, as a share of the mean.
    pub relative_half_width: Option<f64>,
}

/// What each combination costs, in the order of the file. At a share of the capacity that needs no service time; at a rate
/// it is the mean `service_s`.
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
    let (servers, discipline) = (experiment.system.station)(&combination.server);
    // A share of the capacity is the same utilisation whatever the unit of time is.
    let mean_s = match (service_s, &load.schedule) {
        (Some(service_s), _) => service_s,
        (None, Schedule::Share(..)) => 1.0,
        (None, _) => {
            return Err("how full it will be depends on the service time; give --service-time".into());
        }
    };
    let capacity_per_s = f64::from(servers.get()) / mean_s;
    let arrivals = load.arrivals(Some(capacity_per_s));
    let station = Station { discipline, ..Station::new(arrivals, Law::Exponential { mean_s }, servers) };
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
        // Which of the two ends a trial depends on the service time.
        (_, Some(None)) | (None, None) => return None,
    };
    let warmup = match load.warmup {
        // How much is left out will be found; a good server has next to no warm-up.
        Warmup::Until(0) | Warmup::Auto => 0.0,
        Warmup::Until(until_ns) => during(Duration::from_nanos(until_ns.unsigned_abs()))?,
    };
    Some(sent - warmup).filter(|&counted| counted > 0.0)
}
