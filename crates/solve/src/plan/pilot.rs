//! Any other station: the variance of its means from the batch means of a few simulations.

use kendall_station::{Answer, Arrivals, By, Estimate, Station, Summary};

use super::{Basis, Moments, NoPlan, Spread};
use crate::statistics::{mean, student_t};
use crate::{SimulationError, StopRule, simulate};

/// Independent simulations, and the customers of each. Each tells the variance to about 35 % by its batches, so all
/// together to about 11 %, and a half-width to 6 %.
const PILOTS: u64 = 10;
const CUSTOMERS: u64 = 150_000;
/// The batches of a simulation's interval are between 10 and 30; Student's t differs little between them.
const BATCHES: f64 = 16.0;

pub(super) fn spread(station: &Station) -> Result<Spread, NoPlan> {
    let pilot = |seed| match simulate(station, StopRule::customers(CUSTOMERS), seed) {
        Err(SimulationError::Unstable { rho, .. }) => Err(NoPlan::Unstable { rho }),
        other => other.map_err(NoPlan::from),
    };
    let answers: Vec<Answer> = (1..=PILOTS).map(pilot).collect::<Result<_, _>>()?;
    let of = |of: fn(&Answer) -> Estimate| {
        mean(&answers.iter().map(|answer| of(answer).value).collect::<Vec<_>>())
    };
    let utilisation = of(|answer| answer.utilisation);
    let rate_per_s = of(|answer| answer.throughput_per_s);
    let waiting = moments(&answers, |answer| &answer.waiting);
    // As for M/G/1, with the work before a request for its waiting time; a population has no such rule.
    let open = !matches!(station.arrivals, Arrivals::Closed { .. }) && station.capacity.is_none();
    let second = |answer: &Answer| {
        let Summary { mean_s, variance_s2, .. } = &answer.waiting;
        variance_s2.unwrap_or(0.0) + mean_s.value * mean_s.value
    };
    let second_s2 = mean(&answers.iter().map(second).collect::<Vec<_>>());
    let deficit_s = open.then(|| rate_per_s * second_s2 / (2.0 * (1.0 - utilisation).max(1e-12)));
    Ok(Spread {
        basis: Basis::Pilot { customers: answers.iter().map(customers).sum() },
        rate_per_s,
        utilisation,
        response: Moments { deficit_s, ..moments(&answers, |answer| &answer.response) },
        waiting: Moments { deficit_s, ..waiting },
    })
}

fn customers(answer: &Answer) -> u64 {
    match answer.by {
        By::Simulation { customers, .. } => customers,
        By::Formula { .. } | By::Measurement { .. } => 0,
    }
}

fn moments(answers: &[Answer], of: impl Fn(&Answer) -> &Summary) -> Moments {
    let t = student_t(BATCHES - 1.0, 0.975);
    let variance = |answer: &Answer| {
        let error_s = of(answer).mean_s.half_width() / t;
        error_s * error_s * customers(answer) as f64
    };
    Moments {
        mean_s: mean(&answers.iter().map(|answer| of(answer).mean_s.value).collect::<Vec<_>>()),
        asymptotic_variance_s2: mean(&answers.iter().map(variance).collect::<Vec<_>>()),
        deficit_s: None,
    }
}
