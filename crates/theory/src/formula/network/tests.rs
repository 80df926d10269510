use std::collections::BTreeMap;

use kendall_station::{Discipline, Population, Routes, Servers};

use super::*;

fn node(name: &str, mean_s: f64, servers: u32) -> Node {
    Node::new(name, Law::Exponential { mean_s }, Servers::new(servers).unwrap())
}

fn routes(ways: &[(&str, &str, f64)]) -> Routes {
    let mut routes = Routes::new();
    for &(from, to, chance) in ways {
        routes.entry(from.into()).or_default().insert(to.into(), chance);
    }
    routes
}

fn open_network(nodes: Vec<Node>, ways: &[(&str, &str, f64)]) -> Network {
    Network { nodes, routing: routes(ways), population: None, classes: Vec::new() }
}

fn users(count: u32, think_s: f64, first: &str) -> Option<Population> {
    let enter = BTreeMap::from([(first.to_owned(), 1.0)]);
    Some(Population { count, think: Law::Constant { mean_s: think_s }, enter })
}

fn approximate(answer: &NetworkFormula) -> Option<String> {
    let By::Formula { approximate, .. } = &answer.by else { panic!("{:?} is no formula", answer.by) };
    approximate.clone()
}

/// A third of the requests see the database, and come back to the web server.
fn web_and_database(rate_per_s: f64) -> Network {
    let web = Node { arrivals: Some(Arrivals::poisson(rate_per_s)), ..node("web", 0.02, 4) };
    open_network(vec![web, node("db", 0.05, 2)], &[("web", "db", 1.0 / 3.0), ("db", "web", 1.0)])
}

#[test]
fn an_open_network_is_its_stations() {
    let answer = network_formula(&web_and_database(20.0)).unwrap();
    let alone = |rate: f64, mean_s: f64, servers: u32| {
        let service = Law::Exponential { mean_s };
        let station = Station::new(Arrivals::poisson(rate), service, Servers::new(servers).unwrap());
        formula(&station).unwrap().response.mean_s.value
    };
    // Each request visits the web server 1.5 times, and the database half a time.
    let (web_s, db_s) = (alone(30.0, 0.02, 4), alone(10.0, 0.05, 2));
    assert!((answer.nodes[0].response_s / web_s - 1.0).abs() < 1e-12);
    assert!((answer.nodes[1].response_s / db_s - 1.0).abs() < 1e-12);
    assert!((answer.response_s / (1.5 * web_s + 0.5 * db_s) - 1.0).abs() < 1e-12);
    assert_eq!((answer.bottleneck, approximate(&answer)), (Some(1), None));
}

/// Feedback turns one visit into 1/(1 − p), and the mean response is that of the M/M/1 that serves them all at
/// once.
#[test]
fn feedback_is_more_service() {
    let cpu = Node { arrivals: Some(Arrivals::poisson(3.0)), ..node("cpu", 0.1, 1) };
    let answer = network_formula(&open_network(vec![cpu], &[("cpu", "cpu", 0.5)])).unwrap();
    assert!((answer.response_s - 0.2 / (1.0 - 0.6)).abs() < 1e-12, "{}", answer.response_s);
    assert!((answer.nodes[0].visits - 2.0).abs() < 1e-12);
}

#[test]
fn an_overloaded_station_is_named() {
    let why = network_formula(&web_and_database(90.0)).unwrap_err().to_string();
    assert!(why.starts_with("unstable: the utilisation of \"db\" would be 1.12;"), "{why}");
}

/// The central-server model: its demands are those of a row of the reference table.
#[test]
fn a_closed_network_is_its_demands() {
    let nodes = vec![node("cpu", 0.005, 1), node("fast", 0.006, 1), node("slow", 0.02, 1)];
    let ways = [("cpu", "fast", 0.5), ("cpu", "slow", 0.4), ("fast", "cpu", 1.0), ("slow", "cpu", 1.0)];
    let network = Network { population: users(20, 1.0, "cpu"), ..open_network(nodes, &ways) };
    let answer = network_formula(&network).unwrap();
    assert!((answer.throughput_per_s - 11.973_117_242_1).abs() < 1e-9, "{answer:?}");
    assert!((answer.response_s - 0.670_408_766_202).abs() < 1e-11);
    assert!((answer.nodes[0].visits - 10.0).abs() < 1e-12);
    assert_eq!(answer.bottleneck, Some(2));
    // N = X(R + Z).
    assert!((answer.throughput_per_s * (answer.response_s + 1.0) - 20.0).abs() < 1e-9);
    let bounds = closed_network(&network).unwrap().bounds().unwrap();
    let (low, high) = bounds.balanced_throughput_per_s.unwrap();
    assert!(low < answer.throughput_per_s && answer.throughput_per_s < high);
}

#[test]
fn one_station_is_the_network_of_one_node() {
    let arrivals = Arrivals::Closed { population: 50, think: Law::Exponential { mean_s: 2.0 } };
    for arrivals in [Arrivals::poisson(20.0), arrivals] {
        let station = Station::new(arrivals, Law::Exponential { mean_s: 0.1 }, Servers::new(3).unwrap());
        let alone = formula(&station).unwrap();
        let network = network_formula(&Network::from(&station)).unwrap();
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-9;
        assert!(near(network.response_s, alone.response.mean_s.value), "{network:?}");
        assert!(near(network.throughput_per_s, alone.throughput_per_s.value));
        assert!(near(network.nodes[0].utilisation, alone.utilisation.value));
        assert!(near(network.nodes[0].waiting_s, alone.waiting.mean_s.value));
    }
}

#[test]
fn classes_have_their_own_routes() {
    let class = |name: &str, share, ways: Option<&[(&str, &str, f64)]>| RoutedClass {
        name: name.into(),
        share,
        weight: 1.0,
        routing: ways.map(routes),
    };
    let mut network = web_and_database(20.0);
    network.classes = vec![class("readers", 0.75, None), class("robots", 0.25, Some(&[]))];
    let answer = network_formula(&network).unwrap();
    // Robots see the web server once; the others as before.
    assert!((answer.nodes[0].throughput_per_s - (0.75 * 30.0 + 5.0)).abs() < 1e-12, "{answer:?}");
    assert!((answer.nodes[1].throughput_per_s - 0.75 * 10.0).abs() < 1e-12);
    assert_eq!(approximate(&answer), None);
    network.nodes[0].services.insert("robots".into(), Law::Exponential { mean_s: 0.001 });
    let doubt = approximate(&network_formula(&network).unwrap()).unwrap();
    assert!(doubt.contains("though web breaks the product form"), "{doubt}");
    network.nodes[0].discipline = Discipline::ProcessorSharing;
    assert_eq!(
        approximate(&network_formula(&network).unwrap()),
        None,
        "shared servers keep the product form"
    );
}

#[test]
fn a_station_without_a_formula_is_named() {
    let said = |change: fn(&mut Node)| {
        let mut network = web_and_database(20.0);
        change(&mut network.nodes[0]);
        network_formula(&network).unwrap_err().to_string()
    };
    assert!(said(|web| web.capacity = Some(9)).contains("\"web\" has limited capacity"));
    assert!(said(|web| web.conditions.patience = Some(Law::Constant { mean_s: 1.0 })).contains("impatient"));
    let trace = |web: &mut Node| web.arrivals = Some(Arrivals::trace("1\n2\n").unwrap());
    assert!(said(trace).contains("recorded trace"));
    let doubted = |change: fn(&mut Node)| {
        let mut network = web_and_database(20.0);
        change(&mut network.nodes[0]);
        approximate(&network_formula(&network).unwrap()).unwrap()
    };
    assert!(doubted(|web| web.service = Law::Constant { mean_s: 0.02 }).contains("web breaks"));
    assert!(doubted(|web| web.arrivals = Some(Arrivals::constant(20.0))).contains("web breaks"));
}
