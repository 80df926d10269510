//! Any other station: the variance of its means from the batch means of a few simulations.

use kendall_station::{Answer, Arrivals, By, Estimate, Station};

use super::{Basis, Moments, NoPlan, Spread};
use kendall_simulation::{Fate, SimulationError, StopRule, Traced, simulate_traced};
use kendall_stats::{mean, variance};

/// The number of independent simulations.
const PILOTS: u64 = 10;
const CUSTOMERS: u64 = 150_000;
/// Batches of each. All their 200 means give the variance to about √(2/199) = 10 %, and a half-width to 5 %.
const BATCHES: usize = 20;

/// One simulation after its warm-up.
struct Pilot {
    answer: Answer,
    response_s: Vec<f64>,
    waiting_s: Vec<f64>,
}

impl Pilot {
    fn run(station: &Station, seed: u64) -> Result<Self, SimulationError> {
        let (mut response_s, mut waiting_s) = (Vec::new(), Vec::new());
        let mut keep = |customer: &Traced| {
            if customer.fate == Fate::Served {
                response_s.push(customer.response_s());
                waiting_s.push(customer.waiting_s);
            }
        };
        let answer = simulate_traced(station, StopRule::customers(CUSTOMERS), seed, &mut keep)?;
        if let By::Simulation { customers, .. } = answer.by {
            let warm_up = response_s.len().saturating_sub(customers as usize);
            response_s.drain(..warm_up);
            waiting_s.drain(..warm_up);
        }
        Ok(Self { answer, response_s, waiting_s })
    }
}

pub(super) fn spread(station: &Station) -> Result<Spread, NoPlan> {
    let pilot = |seed| match Pilot::run(station, seed) {
        Err(SimulationError::Unstable { rho, .. }) => Err(NoPlan::Unstable { rho }),
        other => other.map_err(NoPlan::from),
    };
    let pilots: Vec<Pilot> = (1..=PILOTS).map(pilot).collect::<Result<_, _>>()?;
    let of = |of: fn(&Answer) -> Estimate| {
        mean(&pilots.iter().map(|pilot| of(&pilot.answer).value).collect::<Vec<_>>())
    };
    let utilisation = of(|answer| answer.utilisation);
    let rate_per_s = of(|answer| answer.throughput_per_s);
    // As for M/G/1, with the work before a request for its waiting time; a population has no such rule.
    let comes_back = matches!(station.arrivals, Arrivals::Closed { .. } | Arrivals::Sessions(_));
    let open = !comes_back && station.capacity.is_none();
    let second = |pilot: &Pilot| {
        pilot.waiting_s.iter().map(|wait_s| wait_s * wait_s).sum::<f64>() / pilot.waiting_s.len() as f64
    };
    let second_s2 = mean(&pilots.iter().map(second).collect::<Vec<_>>());
    let deficit_s = open.then(|| rate_per_s * second_s2 / (2.0 * (1.0 - utilisation).max(1e-12)));
    Ok(Spread {
        basis: Basis::Pilot { customers: pilots.iter().map(|pilot| pilot.response_s.len() as u64).sum() },
        rate_per_s,
        utilisation,
        response: Moments { deficit_s, ..moments(&pilots, |pilot| &pilot.response_s) },
        waiting: Moments { deficit_s, ..moments(&pilots, |pilot| &pilot.waiting_s) },
    })
}

/// The mean of the pilots' means, and the variance of all batch means about it times the length of a batch. Being about
/// the mean of all, it keeps what differs between whole simulations; what remains correlated between batches makes
/// it low by a share of about the relaxation time over the length of a batch.
fn moments<'a>(pilots: &'a [Pilot], of: impl Fn(&'a Pilot) -> &'a Vec<f64>) -> Moments {
    let batch = pilots.iter().map(|pilot| of(pilot).len()).min().unwrap_or(0) / BATCHES;
    let batches: Vec<f64> = pilots
        .iter()
        .flat_map(|pilot| of(pilot).chunks_exact(batch.max(1)).take(BATCHES))
        .map(mean)
        .collect();
    Moments {
        mean_s: mean(&batches),
        asymptotic_variance_s2: variance(&batches) * batch as f64,
        deficit_s: None,
    }
}
