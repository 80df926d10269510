//! `kendall solve FILE.toml`: a network of stations, described in a file.

use std::fmt;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use kendall_report::picture;
use kendall_simulation::{NetworkAnswer, SimulationError};
use kendall_station::Network;
use kendall_stats::number;
use kendall_theory::closed::{Bounds, ClosedNetwork};
use kendall_theory::{
    NetworkFormula, NoFormula, NoNetworkFormula, closed_network, network_formula, sweep_network,
};
use serde_json::{Value, json};

use crate::ask::{AnswerMethod, Solve};
use crate::shown::by;
use crate::{UNSTABLE, station_keys, table};

/// Reads a network, and answers it.
///
/// # Errors
/// Fails where the file cannot be read, with the line and what is wrong there, or where no such network can be.
pub(crate) fn solve(path: &Path, options: &Solve) -> anyhow::Result<ExitCode> {
    answer(&path.display().to_string(), &read(path)?, options)
}

/// Answers a network that is called so.
///
/// # Errors
/// Fails where a figure cannot be drawn.
pub(crate) fn answer(title: &str, network: &Network, options: &Solve) -> anyhow::Result<ExitCode> {
    let formula = options.asks(AnswerMethod::Formula).then(|| network_formula(network));
    let simulation =
        options.asks(AnswerMethod::Simulation).then(|| options.run.simulate_network(network)).transpose()?;
    let users = closed_network(network);
    let bounds = users.as_ref().and_then(|users| users.bounds().ok());
    let unstable = matches!(&formula, Some(Err(why)) if is_unstable(why))
        || matches!(simulation, Some(Err(SimulationError::Unstable { .. })));
    if options.figure.is_asked() {
        let line = sweep_network(network).filter(|line| !line.points.is_empty());
        let line = line.context("there is no formula to draw this network by; leave out --figure")?;
        let simulation = simulation.iter().flatten().next().map(|answer| &answer.overall);
        options.figure.draw(|| picture::network(title.to_owned(), &line, simulation))?;
    }
    if options.json {
        kendall_stdio::json(&json!({
            "network": network,
            "formula": formula.as_ref().map(said),
            "simulation": simulation.as_ref().map(said),
            "bounds": bounds.as_ref().map(bounds_json),
        }))?;
    } else {
        let lines =
            text(title, network, formula.as_ref(), simulation.as_ref(), bounds.as_ref(), users.as_ref());
        kendall_stdio::out(&(lines.join("\n") + "\n"))?;
    }
    let simulated = simulation.iter().flatten().map(|answer| &answer.overall);
    for shortfall in simulated.filter_map(|answer| options.run.shortfall(answer)) {
        kendall_stdio::note(&format!("kendall: {shortfall}"));
    }
    Ok(if unstable { UNSTABLE.into() } else { ExitCode::SUCCESS })
}

fn read(path: &Path) -> anyhow::Result<Network> {
    let text = kendall_stdio::read(path)?;
    let wrong = |error: toml::de::Error| anyhow!("{}: {error}", path.display());
    let mut table: toml::Table = toml::from_str(&text).map_err(wrong)?;
    let network: Network =
        if station_keys::write_out(&mut table).with_context(|| path.display().to_string())? {
            table.try_into().map_err(wrong)?
        } else {
            // The error of the parser shows the line itself, and where in it.
            toml::from_str(&text).map_err(wrong)?
        };
    network.validate().with_context(|| path.display().to_string())?;
    Ok(network)
}

fn is_unstable(why: &NoNetworkFormula) -> bool {
    matches!(
        why,
        NoNetworkFormula::Unstable { .. }
            | NoNetworkFormula::Node {
                why: NoFormula::Unstable { .. } | NoFormula::UnstableClasses { .. },
                ..
            }
    )
}

/// An answer, or why it is missing, in the form of the answers of stations.
fn said<T: serde::Serialize, E: fmt::Display>(way: &Result<T, E>) -> Value {
    match way {
        Ok(answer) => json!({ "answer": answer }),
        Err(why) => json!({ "no_answer": why.to_string() }),
    }
}

pub(crate) fn bounds_json(bounds: &Bounds) -> Value {
    json!({
        "throughput_per_s": bounds.throughput_per_s,
        "response_s": bounds.response_s,
        "balanced_throughput_per_s": bounds.balanced_throughput_per_s,
        "balanced_response_s": bounds.balanced_response_s,
        "saturation_users": bounds.saturation_users.is_finite().then_some(bounds.saturation_users),
    })
}

fn text(
    title: &str,
    network: &Network,
    formula: Option<&Result<NetworkFormula, NoNetworkFormula>>,
    simulation: Option<&Result<NetworkAnswer, SimulationError>>,
    bounds: Option<&Bounds>,
    users: Option<&ClosedNetwork>,
) -> Vec<String> {
    let stations = match network.nodes.len() {
        1 => "one station".to_owned(),
        many => format!("{many} stations"),
    };
    let who = match &network.population {
        Some(users) => {
            format!("{} users who think {} on average", users.count, number::time(users.think.mean_s()))
        }
        None => {
            let rate = network.nodes.iter().map(kendall_station::Node::rate_per_s).sum();
            format!("{}/s from outside", number::significant(rate, 4))
        }
    };
    let mut lines = vec![format!("{title}: {stations}, {who}\n")];
    let found = formula.and_then(|formula| formula.as_ref().ok());
    lines.extend(table::network(network, found, simulation.and_then(|simulation| simulation.as_ref().ok())));
    lines.push(String::new());
    if let Some(bottleneck) = found.and_then(|formula| formula.bottleneck) {
        lines.push(format!("The bottleneck is {}.\n", network.nodes[bottleneck].name));
    }
    if let Some(bounds) = bounds {
        lines.extend(table::bounds(bounds));
        lines.extend(users.and_then(schweitzer));
        lines.push(String::new());
    }
    lines.extend(formula.map(|formula| match formula {
        Ok(answer) => format!("formula: {}", by(&answer.by)),
        Err(why) => format!("formula: no answer. {why}"),
    }));
    lines.extend(simulation.map(|simulation| match simulation {
        Ok(answer) => format!("simulation: {}", by(&answer.overall.by)),
        Err(why) => format!("simulation: no answer. {why}"),
    }));
    lines
}

/// What the best-known approximation makes of a closed network of single servers.
fn schweitzer(users: &ClosedNetwork) -> Option<String> {
    let answer = users.schweitzer().ok()?;
    let rate = number::significant(answer.throughput_per_s, 4);
    Some(format!("Schweitzer's approximation: {rate}/s, {}.", number::time(answer.response_s)))
}
