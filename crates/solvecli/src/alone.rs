//! One station by formula and by simulation, side by side.

use std::process::ExitCode;

use anyhow::Context;
use kendall_analysis::Modelling;
use kendall_report::picture;
use kendall_simulation::{NetworkAnswer, SimulationError};
use kendall_station::{Answer, Arrivals, Conditions, Interrupted, Network, Station};
use kendall_stats::number::{significant, time};
use kendall_theory::closed::Bounds;
use kendall_theory::{Line, NoFormula, closed_network, formula, sweep};

use crate::ask::{AnswerMethod, Solve};
use crate::run::{RunOptions, is_plain};
use crate::shown::{answer_json, status};
use crate::{approximation, scenario, table};

/// Answers a station.
///
/// # Errors
/// Fails where a figure or a trace cannot be written, and on bounds of an open station.
pub(crate) fn solve(station: &Station, options: &Solve) -> anyhow::Result<ExitCode> {
    let delay_s = options.delay.unwrap_or(0.0);
    let behind = Station { arrivals: station.arrivals.behind(delay_s), ..station.clone() };
    let delayed = |answer: Answer| answer.delayed(delay_s, station.mean_weight());
    let by_formula = options.asks(AnswerMethod::Formula).then(|| formula(&behind).map(delayed));
    let simulated =
        options.asks(AnswerMethod::Simulation).then(|| Simulated::of(&behind, &options.run)).transpose()?;
    let unstable =
        matches!(by_formula, Some(Err(NoFormula::Unstable { .. } | NoFormula::UnstableClasses { .. })))
            || matches!(simulated, Some(Simulated { overall: Err(SimulationError::Unstable { .. }), .. }));
    let (by_simulation, events) =
        simulated.map_or((None, None), |it| (Some(it.overall.map(delayed)), it.events));
    let shortfall = by_simulation.iter().flatten().find_map(|answer| options.run.shortfall(answer));
    let approximations =
        options.approximations.then(|| kendall_theory::approximations(station)).transpose()?;
    let bounds = options.bounds.then(|| bounds(station)).transpose()?;
    let (by_formula, by_simulation) = (by_formula.map(Modelling::from), by_simulation.map(Modelling::from));
    options.figure.draw(|| {
        let [formula, simulation] = [&by_formula, &by_simulation].map(|way| way.as_ref()?.answer());
        let line = sweep(&behind).map(|line| Line {
            points: line.points.into_iter().map(|(load, answer)| (load, delayed(answer))).collect(),
            ..line
        });
        picture::station(station.to_string(), line.as_ref(), formula, simulation)
    })?;
    if options.json {
        kendall_stdio::json(&serde_json::json!({
            "station": station,
            "notation": station.to_string(),
            "delay_s": options.delay,
            "offered_utilisation": station.offered_utilisation(),
            "stable_below_per_s": stable_below_per_s(station),
            "formula": by_formula.as_ref().map(|way| answer_json(station, way)),
            "simulation": by_simulation.as_ref().map(|way| answer_json(station, way)),
            "conditions": events,
            "approximations": approximations,
            "bounds": bounds.as_ref().map(scenario::bounds_json),
        }))?;
    } else {
        let mut lines = table::station(station, by_formula.as_ref(), by_simulation.as_ref());
        if let Some(delay_s) = options.delay {
            lines.insert(1, format!("delay outside {}", time(delay_s)));
        }
        lines.extend(events.iter().flat_map(table::events));
        lines.extend(stable_below(station).filter(|_| unstable));
        lines.push(String::new());
        if let Some(all) = &approximations {
            let simulated =
                by_simulation.as_ref().and_then(Modelling::answer).map(|answer| answer.waiting.mean_s);
            lines.extend(approximation::rows(all, simulated));
            lines.push(String::new());
        }
        if let Some(bounds) = &bounds {
            lines.extend(table::bounds(bounds));
            lines.push(String::new());
        }
        lines.extend(table::sources(by_formula.as_ref(), by_simulation.as_ref()));
        kendall_stdio::out(&(lines.join("\n") + "\n"))?;
    }
    if let Some(shortfall) = shortfall {
        kendall_stdio::note(&format!("kendall: {shortfall}"));
    }
    Ok(status(unstable))
}

/// The arrival rate at which utilisation reaches 100 %, repairs included, for an open station that takes in and serves all that come.
fn stable_below_per_s(station: &Station) -> Option<f64> {
    let Conditions { patience, breakdown, .. } = &station.conditions;
    let open = station.capacity.is_none() && !matches!(station.arrivals, Arrivals::Closed { .. });
    let stretch = match breakdown {
        None => 1.0,
        Some(breakdown) if breakdown.then == Interrupted::Resume => breakdown.stretch(),
        // The work of an interrupted service is lost, or its customer is.
        Some(_) => return None,
    };
    let (rate_per_s, utilisation) = (station.arrivals.rate_per_s()?, station.offered_utilisation()?);
    Some(rate_per_s / (utilisation * stretch)).filter(|rate| open && patience.is_none() && rate.is_finite())
}

fn stable_below(station: &Station) -> Option<String> {
    let most = significant(stable_below_per_s(station)?, 4);
    Some(format!("unstable at this rate; stable below {most}/s, where utilisation reaches 100 %"))
}

/// What the simulation says of a station, and what happened to its customers and servers where there are conditions.
struct Simulated {
    overall: Result<Answer, SimulationError>,
    events: Option<NetworkAnswer>,
}

impl Simulated {
    fn of(station: &Station, run: &RunOptions) -> anyhow::Result<Self> {
        if is_plain(station) {
            return Ok(Self { overall: run.simulate(station)?, events: None });
        }
        Ok(match run.simulate_network(&Network::from(station))? {
            Ok(answer) => Self { overall: Ok(answer.overall.clone()), events: Some(answer) },
            Err(why) => Self { overall: Err(why), events: None },
        })
    }
}

/// What holds of a closed population without solving it.
fn bounds(station: &Station) -> anyhow::Result<Bounds> {
    let users = closed_network(&Network::from(station))
        .context("--bounds needs a closed population, as in M/M/4/∞/20")?;
    Ok(users.bounds()?)
}

#[cfg(test)]
mod tests {
    use kendall_station::{Breakdown, Clock, Law, Servers};

    use super::*;

    #[test]
    fn the_limit_of_stability_counts_repairs_and_is_absent_where_customers_are_lost() {
        let limit_per_s = |conditions| {
            let law = Law::Exponential { mean_s: 0.1 };
            stable_below_per_s(&Station {
                conditions,
                ..Station::new(Arrivals::poisson(8.0), law, Servers::MIN)
            })
        };
        let breaking = |then| Conditions {
            breakdown: Some(Breakdown {
                up: Law::Exponential { mean_s: 1.0 },
                repair: Law::Exponential { mean_s: 1.0 },
                then,
                clock: Clock::Operating,
            }),
            ..Conditions::default()
        };
        let impatient = Conditions { patience: Some(Law::Constant { mean_s: 1.0 }), ..Conditions::default() };
        let close = |limit: Option<f64>, to: f64| limit.is_some_and(|limit| (limit - to).abs() < 1e-9);
        assert!(close(limit_per_s(Conditions::default()), 10.0));
        assert!(close(limit_per_s(breaking(Interrupted::Resume)), 5.0));
        let without = [breaking(Interrupted::Restart), breaking(Interrupted::Lose), impatient];
        assert_eq!(without.map(limit_per_s), [None; 3]);
    }
}
