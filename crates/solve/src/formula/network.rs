//! Open networks of stations. Where it is of product form each node is as it were alone, with Poisson arrivals at the
//! rate of the traffic equations (Jackson 1957; Baskett, Chandy, Muntz and Palacios 1975); elsewhere the same
//! decomposition is an approximation.

use kendall_station::{Answer, Arrivals, By, Class, Discipline, Network, NetworkError, Node, Station};

use super::{NoFormula, exponential_mean, formula};

/// Why there is no formula for a network.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoNetworkFormula {
    #[error("the network cannot be: {0}")]
    Impossible(#[from] NetworkError),
    #[error(
        "this formula is of open networks, and this one has users; ask the closed models, or the simulation"
    )]
    Closed,
    #[error("unstable: {}; add servers there, or send less that way", overloaded(nodes))]
    Unstable { nodes: Vec<(String, f64)> },
    #[error("station {node:?}: {why}")]
    Node { node: String, why: NoFormula },
    #[error(
        "station {node:?} has limited room, and there is no formula for who is turned away within a network; ask the simulation"
    )]
    Room { node: String },
}

fn overloaded(nodes: &[(String, f64)]) -> String {
    let each = nodes.iter().map(|(name, rho)| format!("the utilisation of {name:?} would be {rho:.2}"));
    each.collect::<Vec<_>>().join(", ")
}

/// What theory says of an open network.
#[derive(Clone, Debug, PartialEq)]
pub struct JacksonAnswer {
    /// By which theorem, and what it takes for granted where that does not hold.
    pub by: By,
    /// Each node that anybody comes to: its name, how often a customer visits it on average, and its answer per visit.
    pub nodes: Vec<(String, f64, Answer)>,
    /// Customers from outside, in 1/s.
    pub rate_per_s: f64,
    /// Mean time from entering the network to leaving it, in s, by Little's law.
    pub response_s: f64,
    /// Mean number of customers in the network.
    pub in_network: f64,
}

/// Means of an open network, node by node: exact where all arrivals are Poisson, and each node has exponential service
/// alike for all classes in an order that does not look at it, or shares its servers. Other nodes are answered as if
/// their arrivals were Poisson, and the answer is labelled as an approximation.
///
/// # Errors
/// Fails where the network is impossible, closed, of limited room, or where a node is overloaded or has no formula.
pub fn jackson(network: &Network) -> Result<JacksonAnswer, NoNetworkFormula> {
    network.validate()?;
    if network.population.is_some() {
        return Err(NoNetworkFormula::Closed);
    }
    if let Some(node) = network.nodes.iter().find(|node| node.capacity.is_some()) {
        return Err(NoNetworkFormula::Room { node: node.name.clone() });
    }
    let flows = network.flows();
    let rate_per_s: f64 = network.nodes.iter().map(Node::rate_per_s).sum();
    let visited: Vec<(&Node, Station)> = network
        .nodes
        .iter()
        .enumerate()
        .filter_map(|(i, node)| Some((node, alone(network, &flows, i)?)))
        .collect();
    let rho = |station: &Station| station.offered_utilisation().unwrap_or(0.0);
    let over = visited.iter().filter(|(_, station)| rho(station) >= 1.0);
    let over: Vec<(String, f64)> = over.map(|(node, station)| (node.name.clone(), rho(station))).collect();
    if !over.is_empty() {
        return Err(NoNetworkFormula::Unstable { nodes: over });
    }
    let mut nodes = Vec::new();
    for (node, station) in &visited {
        let answer = formula(station);
        let answer = answer.map_err(|why| NoNetworkFormula::Node { node: node.name.clone(), why })?;
        nodes.push((node.name.clone(), answer.throughput_per_s.value / rate_per_s, answer));
    }
    let in_network: f64 = nodes.iter().map(|(_, _, answer)| answer.in_system.value).sum();
    let odd: Vec<&str> = visited
        .iter()
        .filter(|(node, station)| !is_of_product_form(node, station))
        .map(|(node, _)| node.name.as_str())
        .collect();
    let approximate = (!odd.is_empty()).then(|| {
        format!(
            "arrivals at every station taken as Poisson and independent, though {} break the product form",
            odd.join(", ")
        )
    });
    let source = "open network of product form (Jackson 1957; Baskett, Chandy, Muntz and Palacios 1975)";
    Ok(JacksonAnswer {
        by: By::Formula { source: source.into(), approximate },
        nodes,
        rate_per_s,
        response_s: in_network / rate_per_s,
        in_network,
    })
}

/// A node as a station of its own; `None` if nobody comes to it.
fn alone(network: &Network, flows: &[Vec<f64>], i: usize) -> Option<Station> {
    let node = &network.nodes[i];
    let rate_per_s: f64 = flows.iter().map(|flow| flow[i]).sum();
    if rate_per_s <= 0.0 {
        return None;
    }
    let class = |(class, flow): (&kendall_station::RoutedClass, &Vec<f64>)| {
        (flow[i] > 0.0).then(|| Class {
            name: class.name.clone(),
            share: flow[i] / rate_per_s,
            weight: class.weight,
            service: node.services.get(&class.name).cloned(),
        })
    };
    Some(Station {
        discipline: node.discipline,
        classes: network.classes.iter().zip(flows).filter_map(class).collect(),
        conditions: node.conditions.clone(),
        ..Station::new(Arrivals::poisson(rate_per_s), node.service.clone(), node.servers)
    })
}

fn is_of_product_form(node: &Node, station: &Station) -> bool {
    let poisson = match &node.arrivals {
        None => true,
        Some(Arrivals::Open { gap }) => exponential_mean(gap).is_some(),
        Some(_) => false,
    };
    let memoryless = exponential_mean(&station.service_overall()).is_some();
    let blind = matches!(node.discipline, Discipline::Fifo | Discipline::Lifo)
        || (station.classes.is_empty() && node.discipline != Discipline::ShortestRemaining);
    poisson && (node.discipline == Discipline::ProcessorSharing || memoryless && blind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kendall_station::{Law, Servers};

    fn node(name: &str, mean_s: f64, servers: u32, rate_per_s: f64) -> Node {
        let arrivals = (rate_per_s > 0.0).then(|| Arrivals::poisson(rate_per_s));
        Node { arrivals, ..Node::new(name, Law::Exponential { mean_s }, Servers::new(servers).unwrap()) }
    }

    fn network(nodes: Vec<Node>, routing: &[(&str, &str, f64)]) -> Network {
        let mut network =
            Network { nodes, routing: Default::default(), population: None, classes: Vec::new() };
        for (from, to, p) in routing {
            network.routing.entry((*from).into()).or_default().insert((*to).into(), *p);
        }
        network
    }

    /// Feedback makes 1/(1 − p) visits of one, and the mean response is that of the M/M/1 that serves them all at once.
    #[test]
    fn feedback_is_more_service() {
        let answer = jackson(&network(vec![node("cpu", 0.1, 1, 3.0)], &[("cpu", "cpu", 0.5)])).unwrap();
        assert!((answer.response_s - 0.2 / (1.0 - 0.6)).abs() < 1e-12, "{}", answer.response_s);
        assert!((answer.nodes[0].1 - 2.0).abs() < 1e-12);
        assert!(matches!(answer.by, By::Formula { approximate: None, .. }));
    }

    #[test]
    fn overloaded_stations_are_named_and_approximations_labelled() {
        let nodes = || vec![node("web", 0.1, 2, 8.0), node("db", 0.2, 1, 0.0), node("log", 0.01, 1, 0.0)];
        let ways = [("web", "db", 0.7), ("web", "log", 0.3)];
        let why = jackson(&network(nodes(), &ways)).unwrap_err().to_string();
        assert_eq!(
            why,
            "unstable: the utilisation of \"db\" would be 1.12; add servers there, or send less that way"
        );
        let mut nodes = nodes();
        nodes[1].service = Law::Constant { mean_s: 0.05 };
        let Ok(answer) = jackson(&network(nodes, &ways)) else { panic!("stable now") };
        let By::Formula { approximate: Some(how), .. } = answer.by else { panic!("not labelled") };
        assert!(how.contains("db") && !how.contains("web"), "{how}");
    }
}
