//! Networks of stations: the arrivals of customers, and their routes.
//!
//! A [`Network`] is open, with arrivals at some of its nodes, or closed, with one population of users that think between
//! an answer and the next request. A [`Station`] is a network of one node. The file format:
//!
//! ```toml
//! [[station]]
//! name = "web"
//! servers = 4
//! service = { law = "exponential", mean_s = 0.02 }
//! arrivals = { rate_per_s = 80 }          # Poisson; or any other arrivals
//!
//! [[station]]
//! name = "db"
//! service = { law = "exponential", mean_s = 0.01 }
//! capacity = 50
//! when_full = "block"                     # or "lose"
//! conditions.patience = { law = "constant", mean_s = 1.0 }
//!
//! [routing]
//! web = { db = 0.7 }                      # the other 30 % leave
//! ```

mod traffic;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::arrivals::Arrivals;
use crate::conditions::{ConditionError, Conditions};
use crate::discipline::Discipline;
use crate::law::{Law, LawError, ServiceTime};
use crate::station::{Servers, Station, StationError, validate_arrivals};
use traffic::Ways;

/// The routing probabilities from each node, by name, to each next one; the remainder to 1 leaves the network.
pub type Routes = BTreeMap<String, BTreeMap<String, f64>>;

/// Stations and the routes between them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The network's nodes.
    #[serde(rename = "station")]
    pub nodes: Vec<Node>,
    /// The routes of customers after each node.
    #[serde(default)]
    pub routing: Routes,
    /// The users of a closed network; an open one has none.
    #[serde(default, rename = "users", skip_serializing_if = "Option::is_none")]
    pub population: Option<Population>,
    /// Classes of customers; empty for a single class of weight 1.
    #[serde(default, rename = "class", skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<RoutedClass>,
}

/// One station of a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// The node's name, which the routing refers to.
    pub name: String,
    /// The service time of one customer.
    pub service: ServiceTime,
    /// How many servers; one by default.
    #[serde(default = "one")]
    pub servers: Servers,
    /// The capacity: the most customers, waiting and in service; `None` is unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<u64>,
    /// The fate of customers from other nodes when the node is full. Customers from outside are rejected in any case.
    #[serde(default)]
    pub when_full: WhenFull,
    /// The order of service.
    #[serde(default)]
    pub discipline: Discipline,
    /// The arrivals from outside, an open stream; `None` for no arrivals.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "arrivals")]
    pub arrivals: Option<Arrivals>,
    /// The service times of classes that have their own here, by the name of the class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub services: BTreeMap<String, ServiceTime>,
    /// The conditions at this node: patience, retries, breakdowns and others.
    #[serde(default, skip_serializing_if = "Conditions::are_none")]
    pub conditions: Conditions,
}

/// The fate of a customer from another node that finds the node full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WhenFull {
    /// The node rejects it; it then retries or is lost.
    #[default]
    Lose,
    /// The customer keeps its server at the previous node until there is capacity, in order of blocking: blocking after
    /// service (Perros 1994, section 1.3).
    Block,
}

/// The users of a closed network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Population {
    /// The number of users.
    pub count: u32,
    /// The time between an answer and the next request.
    pub think: Law,
    /// The probability that a request enters at each node, by name; they add up to 1.
    pub enter: BTreeMap<String, f64>,
}

/// A class of customers in a network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoutedClass {
    /// The class's name.
    pub name: String,
    /// The share of all customers from outside that are of this class, 0 to 1.
    pub share: f64,
    /// The cost of a second of delay of one of its customers: its priority, the larger the more urgent.
    #[serde(default = "unit")]
    pub weight: f64,
    /// The routes of the class; `None` for those of the network.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub routing: Option<Routes>,
}

/// The reason why a network is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NetworkError {
    #[error("a network needs at least one station")]
    NoNode,
    #[error("two stations are called {0:?}; give each its own name")]
    SameNode(String),
    #[error("two classes are called {0:?}; give each its own name")]
    SameClass(String),
    #[error("{place} names the station {name:?}, which does not exist")]
    UnknownNode { place: &'static str, name: String },
    #[error("station {node:?} has a service time for the class {class:?}, which does not exist")]
    UnknownClass { node: String, class: String },
    #[error("station {node:?}: {why}")]
    Node { node: String, why: StationError },
    #[error(
        "station {0:?}: arrivals there must be an open stream; users are stated once, for the whole network"
    )]
    UsersAtNode(String),
    #[error(
        "the probabilities from {from:?} add up to {sum}; they must lie between 0 and 1, and so must their sum"
    )]
    Routing { from: String, sum: f64 },
    #[error("the probabilities of entering add up to {0}; they must lie between 0 and 1 and add up to 1")]
    Enter(f64),
    #[error("the users: {0}")]
    Think(LawError),
    #[error("a closed network needs at least one user")]
    NoUsers,
    #[error("the network has no arrivals; set arrivals at a station, or users")]
    Nobody,
    #[error("both users and arrivals are set; a network is either closed or open")]
    OpenAndClosed,
    #[error("customers at station {0:?} can never leave the network; give them a route to the exit")]
    NoWayOut(String),
    #[error("the shares of the classes add up to {0}; they must be positive and add up to 1")]
    Shares(f64),
    #[error("class {0:?} has the weight {1}; a weight must be positive and finite")]
    Weight(String, f64),
}

fn one() -> Servers {
    Servers::MIN
}

fn unit() -> f64 {
    1.0
}

/// Reads arrivals, for which `{ rate_per_s = 80 }` is short for a Poisson stream.
fn arrivals<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arrivals>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Poisson { rate_per_s: f64 },
        Any(Arrivals),
    }
    Ok(Some(match Written::deserialize(deserializer)? {
        Written::Poisson { rate_per_s } => Arrivals::poisson(rate_per_s),
        Written::Any(arrivals) => arrivals,
    }))
}

impl Network {
    /// The index of a node.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The routes of a class; those of the network where the class has no separate routes or does not exist.
    pub fn routes(&self, class: usize) -> &Routes {
        self.classes.get(class).and_then(|class| class.routing.as_ref()).unwrap_or(&self.routing)
    }

    /// Checks that the network is valid.
    ///
    /// # Errors
    /// Fails on missing or duplicate names, on invalid nodes, probabilities and classes, on a network without arrivals,
    /// and on a node from which customers can never leave.
    pub fn validate(&self) -> Result<(), NetworkError> {
        if self.nodes.is_empty() {
            return Err(NetworkError::NoNode);
        }
        for (i, node) in self.nodes.iter().enumerate() {
            if self.index(&node.name) != Some(i) {
                return Err(NetworkError::SameNode(node.name.clone()));
            }
            self.validate_node(node)?;
        }
        self.validate_classes()?;
        self.validate_sources()?;
        for class in 0..self.classes.len().max(1) {
            self.validate_routes(self.routes(class))?;
        }
        Ok(())
    }

    fn validate_node(&self, node: &Node) -> Result<(), NetworkError> {
        if matches!(
            node.arrivals,
            Some(Arrivals::Closed { .. } | Arrivals::Attended(_) | Arrivals::Sessions(_))
        ) {
            return Err(NetworkError::UsersAtNode(node.name.clone()));
        }
        let known = |class: &String| self.classes.iter().any(|known| known.name == *class);
        if let Some(class) = node.services.keys().find(|class| !known(class)) {
            return Err(NetworkError::UnknownClass { node: node.name.clone(), class: class.clone() });
        }
        node.validate().map_err(|why| NetworkError::Node { node: node.name.clone(), why })
    }

    fn validate_classes(&self) -> Result<(), NetworkError> {
        for (i, class) in self.classes.iter().enumerate() {
            if self.classes[..i].iter().any(|other| other.name == class.name) {
                return Err(NetworkError::SameClass(class.name.clone()));
            }
            if !(class.weight > 0.0 && class.weight.is_finite()) {
                return Err(NetworkError::Weight(class.name.clone(), class.weight));
            }
        }
        let sum: f64 = self.classes.iter().map(|class| class.share).sum();
        let positive = self.classes.iter().all(|class| class.share > 0.0);
        if self.classes.is_empty() || ((sum - 1.0).abs() <= 1e-9 && positive) {
            Ok(())
        } else {
            Err(NetworkError::Shares(sum))
        }
    }

    fn validate_sources(&self) -> Result<(), NetworkError> {
        let open = self.nodes.iter().any(|node| node.arrivals.is_some());
        let Some(users) = &self.population else {
            return if open { Ok(()) } else { Err(NetworkError::Nobody) };
        };
        if open {
            return Err(NetworkError::OpenAndClosed);
        }
        if users.count == 0 {
            return Err(NetworkError::NoUsers);
        }
        users.think.validate().map_err(NetworkError::Think)?;
        self.known("enter", users.enter.keys())?;
        let sum: f64 = users.enter.values().sum();
        if (sum - 1.0).abs() <= 1e-9 && users.enter.values().all(|p| (0.0..=1.0).contains(p)) {
            Ok(())
        } else {
            Err(NetworkError::Enter(sum))
        }
    }

    fn validate_routes(&self, routes: &Routes) -> Result<(), NetworkError> {
        self.known("routing", routes.keys())?;
        for (from, row) in routes {
            self.known("routing", row.keys())?;
            let sum: f64 = row.values().sum();
            if !row.values().all(|p| (0.0..=1.0).contains(p)) || sum > 1.0 + 1e-9 {
                return Err(NetworkError::Routing { from: from.clone(), sum });
            }
        }
        // A search backwards from the exit: customers at the nodes that it does not reach can never leave.
        let mut leaves: Vec<bool> = vec![false; self.nodes.len()];
        let mut more = true;
        while std::mem::take(&mut more) {
            for (i, node) in self.nodes.iter().enumerate() {
                let row = routes.get(&node.name);
                let out = row.is_none_or(|row| {
                    let to =
                        |(name, &p): (&String, &f64)| p > 0.0 && self.index(name).is_some_and(|j| leaves[j]);
                    row.values().sum::<f64>() < 1.0 - 1e-9 || row.iter().any(to)
                });
                if out && !leaves[i] {
                    (leaves[i], more) = (true, true);
                }
            }
        }
        match leaves.iter().position(|leaves| !leaves) {
            Some(stuck) => Err(NetworkError::NoWayOut(self.nodes[stuck].name.clone())),
            None => Ok(()),
        }
    }

    fn known<'a>(
        &self,
        place: &'static str,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<(), NetworkError> {
        match names.into_iter().find(|name| self.index(name).is_none()) {
            Some(name) => Err(NetworkError::UnknownNode { place, name: name.clone() }),
            None => Ok(()),
        }
    }

    /// The arrival rate of each class at each node, in 1/s, from outside and from other nodes, if no customer is lost on
    /// the way: the solution of the traffic equations λ = γ + λP (Jackson 1957). For a closed network, visits per
    /// request.
    pub fn flows(&self) -> Vec<Vec<f64>> {
        let outside: Vec<f64> = self
            .nodes
            .iter()
            .map(|node| match &self.population {
                Some(users) => users.enter.get(&node.name).copied().unwrap_or(0.0),
                None => node.rate_per_s(),
            })
            .collect();
        let shares: Vec<f64> = match self.classes.as_slice() {
            [] => vec![1.0],
            classes => classes.iter().map(|class| class.share).collect(),
        };
        let flow = |(class, share): (usize, f64)| {
            let gamma: Vec<f64> = outside.iter().map(|rate| share * rate).collect();
            traffic::solve(gamma, &Ways::of(&self.nodes, self.routes(class)))
        };
        shares.into_iter().enumerate().map(flow).collect()
    }
}

impl Node {
    /// A node with unlimited capacity, FIFO, and no arrivals from outside.
    pub fn new(name: impl Into<String>, service: ServiceTime, servers: Servers) -> Self {
        Self {
            name: name.into(),
            service,
            servers,
            capacity: None,
            when_full: WhenFull::Lose,
            discipline: Discipline::Fifo,
            arrivals: None,
            services: BTreeMap::new(),
            conditions: Conditions::default(),
        }
    }

    /// The long-run arrival rate from outside, in 1/s.
    pub fn rate_per_s(&self) -> f64 {
        let batch = self.conditions.batch.as_ref().map_or(1.0, crate::Batch::mean);
        self.arrivals.as_ref().and_then(Arrivals::rate_per_s).unwrap_or(0.0) * batch
    }

    fn validate(&self) -> Result<(), StationError> {
        if let Some(arrivals) = &self.arrivals {
            validate_arrivals(arrivals)?;
        } else if self.conditions.batch.is_some() {
            return Err(ConditionError::ClosedBatch.into());
        }
        self.service.validate().map_err(StationError::Service)?;
        self.services.values().try_for_each(Law::validate).map_err(StationError::Service)?;
        match self.capacity {
            Some(capacity) if capacity < u64::from(self.servers.get()) => {
                return Err(StationError::Capacity { capacity, servers: self.servers });
            }
            _ => {}
        }
        Ok(self.conditions.validate(self.discipline, self.capacity)?)
    }
}

/// The network of one node, called "station".
impl From<&Station> for Network {
    fn from(station: &Station) -> Self {
        let name = |i: usize| {
            let name = &station.classes[i].name;
            let taken = station.classes[..i].iter().any(|other| other.name == *name);
            if taken { format!("{name} ({i})") } else { name.clone() }
        };
        let classes = station.classes.iter().enumerate();
        let own = |(i, class): (usize, &crate::Class)| Some((name(i), class.service.clone()?));
        let routed = |(i, class): (usize, &crate::Class)| RoutedClass {
            name: name(i),
            share: class.share,
            weight: class.weight,
            routing: None,
        };
        let mut node = Node {
            capacity: station.capacity,
            discipline: station.discipline,
            services: classes.clone().filter_map(own).collect(),
            conditions: station.conditions.clone(),
            ..Node::new("station", station.service.clone(), station.servers)
        };
        let population = match &station.arrivals {
            Arrivals::Closed { population, think } => Some(Population {
                count: *population,
                think: think.clone(),
                enter: BTreeMap::from([(node.name.clone(), 1.0)]),
            }),
            open => {
                node.arrivals = Some(open.clone());
                None
            }
        };
        Self { nodes: vec![node], routing: Routes::new(), population, classes: classes.map(routed).collect() }
    }
}

#[cfg(test)]
mod tests;
