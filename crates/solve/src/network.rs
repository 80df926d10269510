//! What queueing theory says of a network of stations, open or closed.
//!
//! In both cases the network falls apart: from where customers come and go follows how often each station is visited
//! (the traffic equations), and from that what each station does, by itself in an open network (Jackson 1957), by mean
//! value analysis or convolution in a closed one (Gordon and Newell 1967). That is exact where the order of service is
//! FIFO and service exponential and the same for all classes, and for any service where the servers are shared (Baskett,
//! Chandy, Muntz and Palacios 1975). Elsewhere it is an approximation, and says so.

mod traffic;

use kendall_station::{Arrivals, Class, Discipline, Law, Network, NetworkError, Node, Station};
use serde::Serialize;

use crate::closed::{Bounds, ClosedAnswer, ClosedError, ClosedNetwork, ClosedStation, ClosedStationAnswer};
use crate::{NoFormula, formula};
use traffic::Traffic;

/// What theory says of a network, without intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NetworkFormula {
    /// The name of the formula and where it stands in print.
    pub source: String,
    /// Of an approximation: what it takes for granted. Absent where the formula is exact for its model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approximate: Option<String>,
    /// Customers per second that come from outside and leave, or requests of the users.
    pub throughput_per_s: f64,
    /// Mean time from coming until leaving, over all visits, in seconds.
    pub response_s: f64,
    /// Mean number of customers in all stations.
    pub in_system: f64,
    /// Of each station, in the order of the network.
    pub nodes: Vec<NodeFormula>,
    /// The station that limits the throughput, by its place.
    pub bottleneck: usize,
}

/// What theory says of one station of a network.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NodeFormula {
    /// Its name.
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

/// Why theory has no answer for a network, and what to do instead.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoNetworkFormula {
    #[error("the network cannot be: {0}")]
    Impossible(#[from] NetworkError),
    #[error("unstable: {}; give them more servers, or lower the arrival rate", overloads(.0))]
    Unstable(Vec<(String, f64)>),
    #[error("there is no formula here for a network with {what} (station {station:?}); ask the simulation")]
    Condition { station: String, what: &'static str },
    #[error("station {station:?}: {why}")]
    Station { station: String, why: NoFormula },
    #[error("{0}")]
    Closed(#[from] ClosedError),
}

fn overloads(stations: &[(String, f64)]) -> String {
    let one = |(name, rho): &(String, f64)| format!("the utilisation of {name:?} would be {rho:.2}");
    stations.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The answer of queueing theory for a network.
///
/// # Errors
/// Says why there is none: the network is impossible or unstable, or has something that no formula here knows: limited
/// room, conditions, or arrivals that are no Poisson stream.
pub fn network_formula(network: &Network) -> Result<NetworkFormula, NoNetworkFormula> {
    network.validate()?;
    for node in &network.nodes {
        let refuse = |what| Err(NoNetworkFormula::Condition { station: node.name.clone(), what });
        if let Some(condition) = node.conditions.first() {
            return refuse(condition);
        }
        if node.capacity.is_some() {
            return refuse("limited room");
        }
    }
    match &network.population {
        Some(_) => closed(network),
        None => open(network),
    }
}

/// The closed network of demands that a network of users amounts to, for bounds and approximations; `None` of an open
/// one.
pub fn closed_network(network: &Network) -> Option<ClosedNetwork> {
    let users = network.population.as_ref()?;
    let traffic = Traffic::of(network);
    let station = |(i, node): (usize, &Node)| {
        let demand_s = traffic.at(i) * traffic.service(network, i).mean_s();
        ClosedStation::servers(&node.name, demand_s, node.servers)
    };
    Some(ClosedNetwork {
        think_s: users.think.mean_s(),
        stations: network.nodes.iter().enumerate().map(station).collect(),
        users: u64::from(users.count),
    })
}

/// The bounds of a closed network; `None` of an open one.
///
/// # Errors
/// As [`ClosedNetwork::bounds`].
pub fn network_bounds(network: &Network) -> Option<Result<Bounds, ClosedError>> {
    Some(closed_network(network)?.bounds())
}

fn closed(network: &Network) -> Result<NetworkFormula, NoNetworkFormula> {
    let traffic = Traffic::of(network);
    let demands = closed_network(network).expect("the network has users");
    let ClosedAnswer { source, throughput_per_s, response_s, stations, bottleneck } = demands.solve()?;
    let node = |(i, station): (usize, &ClosedStationAnswer)| {
        let visits = traffic.at(i);
        let (response_s, service_s) = match visits > 0.0 {
            true => (station.response_s / visits, traffic.service(network, i).mean_s()),
            false => (0.0, 0.0),
        };
        NodeFormula {
            name: station.name.clone(),
            visits,
            throughput_per_s: throughput_per_s * visits,
            utilisation: station.utilisation,
            response_s,
            waiting_s: (response_s - service_s).max(0.0),
            in_station: station.queue,
        }
    };
    Ok(NetworkFormula {
        source: source.into(),
        approximate: doubts(network, &traffic).map(|doubts| {
            format!("it takes all service as exponential and the same for every class, and the order as FIFO; but {doubts}")
        }),
        throughput_per_s,
        response_s,
        in_system: stations.iter().map(|station| station.queue).sum(),
        nodes: stations.iter().enumerate().map(node).collect(),
        bottleneck: bottleneck.unwrap_or(0),
    })
}

fn open(network: &Network) -> Result<NetworkFormula, NoNetworkFormula> {
    let refused = |node: &Node, why| NoNetworkFormula::Station { station: node.name.clone(), why };
    for node in &network.nodes {
        match &node.arrivals {
            Some(Arrivals::Open { gap }) if !is_exponential(gap) => {
                return Err(refused(node, NoFormula::NeedsPoisson { why: "of networks" }));
            }
            Some(Arrivals::Varying(_)) => return Err(refused(node, NoFormula::Varying)),
            Some(Arrivals::Trace { .. }) => return Err(refused(node, NoFormula::Trace)),
            _ => {}
        }
    }
    let traffic = Traffic::of(network);
    let load = |i: usize| {
        traffic.at(i) * traffic.service(network, i).mean_s() / f64::from(network.nodes[i].servers.get())
    };
    let overloaded = (0..network.nodes.len()).filter(|&i| load(i) >= 1.0);
    let overloaded: Vec<_> = overloaded.map(|i| (network.nodes[i].name.clone(), load(i))).collect();
    if !overloaded.is_empty() {
        return Err(NoNetworkFormula::Unstable(overloaded));
    }
    let from_outside: f64 = network.nodes.iter().map(Node::rate_per_s).sum();
    let nodes = (0..network.nodes.len()).map(|i| open_node(network, &traffic, i, from_outside));
    let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
    let in_system: f64 = nodes.iter().map(|node| node.in_station).sum();
    let bottleneck = (0..nodes.len()).max_by(|&a, &b| load(a).total_cmp(&load(b)).then(b.cmp(&a)));
    Ok(NetworkFormula {
        source: "open network of stations, each by itself (Jackson 1957; Baskett, Chandy, Muntz and Palacios 1975)".into(),
        approximate: doubts(network, &traffic)
            .map(|doubts| format!("it takes the arrivals at every station as Poisson streams; but {doubts}")),
        throughput_per_s: from_outside,
        response_s: in_system / from_outside,
        in_system,
        nodes,
        bottleneck: bottleneck.expect("a network has a node"),
    })
}

/// A station of an open network by itself, with Poisson arrivals.
fn open_node(
    network: &Network,
    traffic: &Traffic,
    i: usize,
    from_outside: f64,
) -> Result<NodeFormula, NoNetworkFormula> {
    let node = &network.nodes[i];
    let rate_per_s = traffic.at(i);
    if rate_per_s <= 0.0 {
        return Ok(NodeFormula {
            name: node.name.clone(),
            visits: 0.0,
            throughput_per_s: 0.0,
            utilisation: 0.0,
            response_s: 0.0,
            waiting_s: 0.0,
            in_station: 0.0,
        });
    }
    let station = Station {
        discipline: node.discipline,
        classes: traffic.classes(network, i),
        ..Station::new(Arrivals::poisson(rate_per_s), traffic.service(network, i), node.servers)
    };
    let answer =
        formula(&station).map_err(|why| NoNetworkFormula::Station { station: node.name.clone(), why })?;
    Ok(NodeFormula {
        name: node.name.clone(),
        visits: rate_per_s / from_outside,
        throughput_per_s: rate_per_s,
        utilisation: answer.utilisation.value,
        response_s: answer.response.mean_s.value,
        waiting_s: answer.waiting.mean_s.value,
        in_station: answer.in_system.value,
    })
}

/// What keeps a network from falling apart exactly, in words.
fn doubts(network: &Network, traffic: &Traffic) -> Option<String> {
    let doubt = |(i, node): (usize, &Node)| {
        let several = traffic.classes(network, i).len() > 1;
        let same = node.services.is_empty();
        match node.discipline {
            Discipline::ProcessorSharing => None,
            Discipline::Fifo | Discipline::Lifo if !is_exponential(&node.service) => {
                Some(format!("service at {:?} is {}", node.name, node.service.name()))
            }
            Discipline::Fifo | Discipline::Lifo if several && !same => {
                Some(format!("classes differ in their service at {:?}", node.name))
            }
            Discipline::Fifo | Discipline::Lifo => None,
            other => Some(format!("the order at {:?} is {other}", node.name)),
        }
    };
    let doubts: Vec<String> = network.nodes.iter().enumerate().filter_map(doubt).collect();
    (!doubts.is_empty()).then(|| doubts.join(", "))
}

fn is_exponential(law: &Law) -> bool {
    matches!(law, Law::Exponential { .. } | Law::Erlang { shape: 1, .. })
}

impl Traffic {
    /// The classes that come to a node, by their shares there; none where there is but one.
    fn classes(&self, network: &Network, i: usize) -> Vec<Class> {
        let node = &network.nodes[i];
        let all = self.at(i);
        let class = |(c, class): (usize, &kendall_station::RoutedClass)| Class {
            name: class.name.clone(),
            share: self.of_class(c, i) / all,
            weight: class.weight,
            service: node.services.get(&class.name).cloned(),
        };
        let present = |class: &Class| class.share > 0.0;
        if all > 0.0 {
            network.classes.iter().enumerate().map(class).filter(present).collect()
        } else {
            Vec::new()
        }
    }

    /// The service time of a customer of unknown class at a node.
    fn service(&self, network: &Network, i: usize) -> Law {
        let node = &network.nodes[i];
        let classes = self.classes(network, i);
        Station { classes, ..Station::new(Arrivals::poisson(1.0), node.service.clone(), node.servers) }
            .service_overall()
    }
}

#[cfg(test)]
mod tests;
