//! The answer of queueing theory for a network of stations, open or closed.
//!
//! A network of product form decomposes. The routing determines how often each station is visited (the traffic equations). Each
//! station of an open network then behaves as if alone, with Poisson arrivals (Jackson 1957; Baskett, Chandy, Muntz and Palacios
//! 1975); those of a closed one are solved together by their demands (Gordon and Newell 1967). Otherwise the same decomposition is
//! an approximation, and is labelled.

use kendall_station::{Arrivals, By, Class, Knows, Law, Network, NetworkError, Node, RoutedClass, Station};
use serde::Serialize;

use super::premises::exponential_mean;
use super::{NoFormula, formula};
use crate::closed::{ClosedAnswer, ClosedError, ClosedNetwork, ClosedStation, ClosedStationAnswer};

/// The formula's answer for a network: means, without intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkFormula {
    /// The theorem, and its assumptions where they do not hold.
    pub by: By,
    /// Customers per second that come from outside and leave, or requests of the users.
    pub throughput_per_s: f64,
    /// Mean time from arrival until departure, over all visits, in seconds.
    pub response_s: f64,
    /// Mean number of customers in all stations.
    pub in_system: f64,
    /// The answers of each station, in the order of the network.
    pub nodes: Vec<NodeFormula>,
    /// The index of the station that limits the throughput; `None` if no request ever waits.
    pub bottleneck: Option<usize>,
}

/// The theory's results for one station of a network; all zero without arrivals.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct NodeFormula {
    /// The node's name.
    pub name: String,
    /// The mean number of visits of a customer.
    pub visits: f64,
    /// Visits per second.
    pub throughput_per_s: f64,
    /// The mean share of its servers that is busy, 0 to 1.
    pub utilisation: f64,
    /// Mean time of one visit, in seconds.
    pub response_s: f64,
    /// The part of it that is not service, in seconds.
    pub waiting_s: f64,
    /// Mean number of customers there.
    pub in_station: f64,
}

/// The reason why there is no formula for a network.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoNetworkFormula {
    #[error("the network is not valid: {0}")]
    Impossible(#[from] NetworkError),
    #[error("unstable: {}; add servers there, or send less to it", overloaded(nodes))]
    Unstable { nodes: Vec<(String, f64)> },
    #[error("station {node:?}: {why}")]
    Node { node: String, why: NoFormula },
    #[error(
        "station {node:?} has limited capacity, and there is no formula for rejection within a network; use the simulation"
    )]
    Room { node: String },
    #[error("{0}")]
    Closed(#[from] ClosedError),
}

fn overloaded(nodes: &[(String, f64)]) -> String {
    let each = nodes.iter().map(|(name, rho)| format!("the utilisation of {name:?} would be {rho:.2}"));
    each.collect::<Vec<_>>().join(", ")
}

/// Means of a network, node by node: exact if all arrivals are Poisson or of users, and each node has the same exponential service for
/// all classes in an order that ignores it, or shares its servers. Otherwise these are assumed, and the answer is labelled as an
/// approximation.
///
/// # Errors
/// Fails if the network is invalid, has limited capacity or conditions, and if a node is overloaded or has no formula.
pub fn network_formula(network: &Network) -> Result<NetworkFormula, NoNetworkFormula> {
    network.validate()?;
    for node in &network.nodes {
        let refused = |why| Err(NoNetworkFormula::Node { node: node.name.clone(), why });
        match (&node.arrivals, node.conditions.first()) {
            (_, Some(condition)) => return refused(NoFormula::Conditions(condition)),
            (Some(Arrivals::Varying(_)), None) => return refused(NoFormula::Varying),
            (Some(Arrivals::Trace { .. }), None) => return refused(NoFormula::Trace),
            _ if node.capacity.is_some() => return Err(NoNetworkFormula::Room { node: node.name.clone() }),
            _ => {}
        }
    }
    let flows = network.flows();
    let alone: Vec<_> = (0..network.nodes.len()).map(|i| alone(network, &flows, i)).collect();
    match closed_among(network, &alone) {
        Some(users) => closed(network, &alone, &users),
        None => open(network, &alone),
    }
}

/// The closed network of demands that is equivalent to a network of users, for bounds and for approximations; `None` for an open
/// one, or an invalid one.
pub fn closed_network(network: &Network) -> Option<ClosedNetwork> {
    network.validate().ok()?;
    let flows = network.flows();
    closed_among(network, &(0..network.nodes.len()).map(|i| alone(network, &flows, i)).collect::<Vec<_>>())
}

/// A node as a separate station, with Poisson arrivals at the rate of the flows; `None` without arrivals.
fn alone(network: &Network, flows: &[Vec<f64>], i: usize) -> Option<Station> {
    let node = &network.nodes[i];
    let rate_per_s: f64 = flows.iter().map(|flow| flow[i]).sum();
    let class = |(class, flow): (&RoutedClass, &Vec<f64>)| {
        (flow[i] > 0.0).then(|| Class {
            name: class.name.clone(),
            share: flow[i] / rate_per_s,
            weight: class.weight,
            service: node.services.get(&class.name).cloned(),
        })
    };
    (rate_per_s > 0.0).then(|| Station {
        discipline: node.discipline,
        classes: network.classes.iter().zip(flows).filter_map(class).collect(),
        ..Station::new(Arrivals::poisson(rate_per_s), node.service.clone(), node.servers)
    })
}

fn rate_per_s(station: &Station) -> f64 {
    station.arrivals.rate_per_s().unwrap_or(0.0)
}

fn open(network: &Network, alone: &[Option<Station>]) -> Result<NetworkFormula, NoNetworkFormula> {
    let rho = |i: &usize| alone[*i].as_ref().and_then(Station::offered_utilisation).unwrap_or(0.0);
    let places = || 0..network.nodes.len();
    let nodes: Vec<_> =
        places().filter(|i| rho(i) >= 1.0).map(|i| (network.nodes[i].name.clone(), rho(&i))).collect();
    if !nodes.is_empty() {
        return Err(NoNetworkFormula::Unstable { nodes });
    }
    let from_outside: f64 = network.nodes.iter().map(Node::rate_per_s).sum();
    let nodes = network
        .nodes
        .iter()
        .zip(alone)
        .map(|(node, station)| open_node(node, station.as_ref(), from_outside));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let in_system: f64 = nodes.iter().map(|node| node.in_station).sum();
    Ok(NetworkFormula {
        by: By::Formula {
            source: "open network of product form (Jackson 1957; Baskett, Chandy, Muntz and Palacios 1975)"
                .into(),
            approximate: odd(network, alone).map(|odd| {
                format!("arrivals at every station taken as Poisson and independent, though {odd}")
            }),
        },
        throughput_per_s: from_outside,
        response_s: in_system / from_outside,
        in_system,
        nodes,
        bottleneck: places().max_by(|a, b| rho(a).total_cmp(&rho(b)).then(b.cmp(a))),
    })
}

fn open_node(
    node: &Node,
    station: Option<&Station>,
    from_outside: f64,
) -> Result<NodeFormula, NoNetworkFormula> {
    let name = node.name.clone();
    let Some(station) = station else { return Ok(NodeFormula { name, ..NodeFormula::default() }) };
    let answer = formula(station).map_err(|why| NoNetworkFormula::Node { node: name.clone(), why })?;
    Ok(NodeFormula {
        name,
        visits: rate_per_s(station) / from_outside,
        throughput_per_s: rate_per_s(station),
        utilisation: answer.utilisation.value,
        response_s: answer.response.mean_s.value,
        waiting_s: answer.waiting.mean_s.value,
        in_station: answer.in_system.value,
    })
}

/// The users and demands of a closed network. A node's arrivals alone are its visits per request.
fn closed_among(network: &Network, alone: &[Option<Station>]) -> Option<ClosedNetwork> {
    let users = network.population.as_ref()?;
    let station = |(node, station): (&Node, &Option<Station>)| {
        let demand_s =
            station.as_ref().map_or(0.0, |station| rate_per_s(station) * station.service_overall().mean_s());
        ClosedStation::servers(&node.name, demand_s, node.servers)
    };
    Some(ClosedNetwork {
        think_s: users.think.mean_s(),
        stations: network.nodes.iter().zip(alone).map(station).collect(),
        users: u64::from(users.count),
    })
}

fn closed(
    network: &Network,
    alone: &[Option<Station>],
    users: &ClosedNetwork,
) -> Result<NetworkFormula, NoNetworkFormula> {
    let ClosedAnswer { source, throughput_per_s, response_s, stations, bottleneck } = users.solve()?;
    let node = |(found, station): (&ClosedStationAnswer, &Option<Station>)| {
        let name = found.name.clone();
        let Some(station) = station else { return NodeFormula { name, ..NodeFormula::default() } };
        let visits = rate_per_s(station);
        let response_s = found.response_s / visits;
        NodeFormula {
            name,
            visits,
            throughput_per_s: throughput_per_s * visits,
            utilisation: found.utilisation,
            response_s,
            waiting_s: (response_s - station.service_overall().mean_s()).max(0.0),
            in_station: found.queue,
        }
    };
    Ok(NetworkFormula {
        by: By::Formula {
            source: source.into(),
            approximate: odd(network, alone).map(|odd| {
                format!(
                    "all service taken as exponential with one mean, in the order of arrival, though {odd}"
                )
            }),
        },
        throughput_per_s,
        response_s,
        in_system: stations.iter().map(|station| station.queue).sum(),
        nodes: stations.iter().zip(alone).map(node).collect(),
        bottleneck,
    })
}

/// The nodes that keep a network from product form, as a clause.
fn odd(network: &Network, alone: &[Option<Station>]) -> Option<String> {
    let odd = network.nodes.iter().zip(alone).filter_map(|(node, station)| {
        let station = station.as_ref()?;
        (!is_of_product_form(node, station)).then_some(node.name.as_str())
    });
    let odd: Vec<&str> = odd.collect();
    let breaks = if odd.len() == 1 { "breaks" } else { "break" };
    (!odd.is_empty()).then(|| format!("{} {breaks} the product form", odd.join(", ")))
}

fn is_of_product_form(node: &Node, station: &Station) -> bool {
    let exponential = |law: &Law| exponential_mean(law).is_some();
    let poisson = match &node.arrivals {
        None => true,
        Some(Arrivals::Open { gap }) => exponential(gap),
        Some(_) => false,
    };
    let blind = node.discipline.knows() == Knows::Nothing
        || (station.classes.is_empty() && node.discipline.knows() != Knows::Size);
    let memoryless = exponential(&station.service_overall());
    poisson && (node.discipline.shares() || memoryless && blind)
}

#[cfg(test)]
mod tests;
