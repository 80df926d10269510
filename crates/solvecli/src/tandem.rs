//! Stations one after the other without a file: `M/M/1 -> M/M/2`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use kendall_station::{Arrivals, Network, Node, Notation, Population, Routes, WhenFull};

use crate::ask::Solve;
use crate::scenario;
use crate::several::read;

/// The notations of a word with arrows between them; `None` without an arrow.
pub(crate) fn split(word: &str) -> Option<Vec<&str>> {
    let parts: Vec<&str> = word.split("->").flat_map(|part| part.split('→')).map(str::trim).collect();
    (parts.len() > 1).then_some(parts)
}

/// Answers stations that each customer visits one after the other.
///
/// # Errors
/// Fails on text that is not a station, on properties of a station that only a file can state, and on a network that is not valid.
pub(crate) fn solve(word: &str, parts: &[&str], options: &Solve) -> anyhow::Result<ExitCode> {
    ensure!(!options.approximations, "--approximations needs one station");
    let notations = parts.iter().map(|part| read(part)).collect::<anyhow::Result<Vec<_>>>()?;
    scenario::answer(word, &network(&notations, options)?, options)
}

fn network(notations: &[Notation], options: &Solve) -> anyhow::Result<Network> {
    ensure!(
        !options.station.is_of_one_station(),
        "stations in series take rates, times and variations; describe classes, files and conditions in a network's .toml"
    );
    let mut nodes: Vec<Node> = Vec::new();
    let mut population = None;
    for (place, notation) in notations.iter().enumerate() {
        let own = options.station.quantities.at(place, notations.len(), None)?;
        ensure!(own.rho.is_none(), "--rho needs one station; give --arrival-rate for stations in series");
        ensure!(
            place == 0
                || (notation.population.is_none()
                    && own.users == options.station.quantities.at(0, notations.len(), None)?.users),
            "{notation} has a closed population; give it once, at the first station"
        );
        // Those who come to the second and the others are those who leave the one before.
        let whole = if place == 0 {
            notation.clone()
        } else {
            Notation {
                arrivals: notations[0].arrivals,
                population: notations[0].population,
                ..notation.clone()
            }
        };
        let station = options.station.station_at(&whole, &own)?;
        let name = format!("{} {}", place + 1, notation);
        let arrivals = match station.arrivals {
            Arrivals::Closed { population: count, think } => {
                if place == 0 {
                    population =
                        Some(Population { count, think, enter: BTreeMap::from([(name.clone(), 1.0)]) });
                }
                None
            }
            open => (place == 0).then_some(open),
        };
        nodes.push(Node {
            name,
            service: station.service,
            servers: station.servers,
            capacity: station.capacity,
            when_full: WhenFull::Lose,
            discipline: station.discipline,
            arrivals,
            services: BTreeMap::new(),
            conditions: station.conditions,
        });
    }
    let routing: Routes = nodes
        .windows(2)
        .map(|pair| (pair[0].name.clone(), BTreeMap::from([(pair[1].name.clone(), 1.0)])))
        .collect();
    let network = Network { nodes, routing, population, classes: Vec::new() };
    if let Err(why) = network.validate() {
        bail!("{why}");
    }
    Ok(network)
}
