//! The simulator of networks against product forms, mean-value analysis and a Markov chain, and against laws.
//!
//! Seeds are fixed, so a test passes or fails once and for all. Each comparison allows twice the half-width of a 95 %
//! interval by Student's t with at least nine degrees of freedom: a false alarm in about 700 when a seed is changed.

use std::collections::BTreeMap;

use crate::simulated::{adds_up, near};
use kendall_simulation::{
    Fate, NetworkAnswer, SimulationError, StopRule, simulate_network, simulate_network_traced,
};
use kendall_station::{
    Arrivals, Batch, Between, Breakdown, Clock, Conditions, Delays, Discipline, Interrupted, Law, Network,
    Node, Population, Profile, Retry, RoutedClass, Routes, Servers, Setup, Spacing, WhenFull,
};
use proptest::prelude::*;

const RUN: StopRule = StopRule::Steady { max_customers: 200_000, relative_half_width: None };

fn exponential(mean_s: f64) -> Law {
    Law::Exponential { mean_s }
}

fn node(name: &str, mean_s: f64, servers: u32) -> Node {
    Node::new(name, exponential(mean_s), Servers::new(servers).unwrap())
}

fn fed(rate_per_s: f64, node: Node) -> Node {
    Node { arrivals: Some(Arrivals::poisson(rate_per_s)), ..node }
}

fn routes(ways: &[(&str, &str, f64)]) -> Routes {
    let mut routes = Routes::new();
    for &(from, to, chance) in ways {
        routes.entry(from.into()).or_default().insert(to.into(), chance);
    }
    routes
}

fn open(nodes: Vec<Node>, ways: &[(&str, &str, f64)]) -> Network {
    Network { nodes, routing: routes(ways), population: None, classes: Vec::new() }
}

fn closed(nodes: Vec<Node>, ways: &[(&str, &str, f64)], count: u32, think_s: f64) -> Network {
    let enter = BTreeMap::from([(nodes[0].name.clone(), 1.0)]);
    let think = if think_s > 0.0 { exponential(think_s) } else { Law::Constant { mean_s: 0.0 } };
    Network { population: Some(Population { count, think, enter }), ..open(nodes, ways) }
}

fn run(network: &Network, seed: u64) -> NetworkAnswer {
    let answer = simulate_network(network, RUN, seed).unwrap_or_else(|error| panic!("{network:?}: {error}"));
    adds_up(&answer);
    answer
}

/// Jackson (1957): every node is an M/M/m with its own flow, with or without feedback, under any order that ignores sizes.
#[test]
fn an_open_network_has_a_product_form() {
    let orders = [Discipline::Fifo, Discipline::ProcessorSharing, Discipline::Lifo];
    for (seed, discipline) in (1..).zip(orders) {
        let of = |name, mean_s, servers| Node { discipline, ..node(name, mean_s, servers) };
        let nodes = vec![fed(1.0, of("web", 0.2, 1)), of("db", 0.5, 2), fed(0.5, of("disk", 0.1, 1))];
        let ways = [("web", "db", 0.5), ("db", "web", 0.4), ("db", "disk", 0.6), ("disk", "web", 0.2)];
        let network = open(nodes, &ways);
        let flows = &network.flows()[0];
        let answer = run(&network, seed);
        let mut all = 0.0;
        for (i, found) in answer.nodes.iter().enumerate() {
            let (mean_s, servers) = (network.nodes[i].service.mean_s(), network.nodes[i].servers.get());
            let rho = flows[i] * mean_s / f64::from(servers);
            // M/M/1: ρ/(1 − ρ); M/M/2: 2ρ/(1 − ρ²).
            let number = if servers == 1 { rho / (1.0 - rho) } else { 2.0 * rho / (1.0 - rho * rho) };
            all += number;
            let node = found.answer.as_ref().unwrap();
            near(&found.name, node.in_system, number);
            near(&found.name, node.response.mean_s, number / flows[i]);
            near(&found.name, node.utilisation, rho);
            near(&found.name, found.visits, flows[i] / 1.5);
        }
        near("all", answer.overall.in_system, all);
        near("response", answer.overall.response.mean_s, all / 1.5);
    }
}

/// Exact mean-value analysis (Reiser and Lavenberg 1980) of a closed network of single servers.
#[test]
fn a_closed_network_is_that_of_mean_value_analysis() {
    let nodes = vec![node("cpu", 0.05, 1), node("disk", 0.08, 1), node("tape", 0.3, 1)];
    let ways = [("cpu", "disk", 0.6), ("cpu", "tape", 0.1), ("disk", "cpu", 1.0), ("tape", "cpu", 1.0)];
    let network = closed(nodes, &ways, 12, 2.0);
    let visits = &network.flows()[0];
    let demands: Vec<f64> = (0..3).map(|i| visits[i] * network.nodes[i].service.mean_s()).collect();
    let mut queues = [0.0; 3];
    let (mut throughput, mut response_s) = (0.0, 0.0);
    for n in 1..=12 {
        let residences: Vec<f64> = (0..3).map(|i| demands[i] * (1.0 + queues[i])).collect();
        response_s = residences.iter().sum();
        throughput = f64::from(n) / (2.0 + response_s);
        (0..3).for_each(|i| queues[i] = throughput * residences[i]);
    }
    let answer = run(&network, 5);
    near("throughput", answer.overall.throughput_per_s, throughput);
    near("response", answer.overall.response.mean_s, response_s);
    for (i, found) in answer.nodes.iter().enumerate() {
        near(&found.name, found.answer.as_ref().unwrap().in_system, queues[i]);
        near(&found.name, found.answer.as_ref().unwrap().utilisation, throughput * demands[i]);
    }
}

/// Two single servers in a row with little room and blocking after service, as a Markov chain: (at the first, at the
/// second, whether the first is blocked), solved by iteration.
#[test]
fn blocking_after_service_is_that_of_its_markov_chain() {
    const FIRST: usize = 4;
    const SECOND: usize = 2;
    let (rate, first, second) = (0.9, 1.0, 1.1);
    let state = |a: usize, b: usize, blocked: bool| (a * (SECOND + 1) + b) * 2 + usize::from(blocked);
    let mut law = vec![1.0 / 30.0; (FIRST + 1) * (SECOND + 1) * 2];
    for _ in 0..20_000 {
        let mut next = law.clone();
        for a in 0..=FIRST {
            for b in 0..=SECOND {
                for blocked in [false, true] {
                    let here = law[state(a, b, blocked)] * 0.1;
                    let mut go = |rate: f64, to: usize| {
                        next[to] += here * rate;
                        next[state(a, b, blocked)] -= here * rate;
                    };
                    if a < FIRST {
                        go(rate, state(a + 1, b, blocked));
                    }
                    match (blocked, a, b) {
                        (true, 1.., SECOND) => go(second, state(a - 1, SECOND, false)),
                        (true, ..) => {}
                        (false, ..) => {
                            if b > 0 {
                                go(second, state(a, b - 1, false));
                            }
                            match (a, b) {
                                (0, _) => {}
                                (_, SECOND) => go(first, state(a, b, true)),
                                _ => go(first, state(a - 1, b + 1, false)),
                            }
                        }
                    }
                }
            }
        }
        law = next;
    }
    // States that cannot be have lost or kept what they were given at the start.
    let can = |a: usize, b: usize, blocked: bool| !blocked || (a > 0 && b == SECOND);
    let mut sums = [0.0; 5];
    for a in 0..=FIRST {
        for b in 0..=SECOND {
            for blocked in [false, true] {
                let p = if can(a, b, blocked) { law[state(a, b, blocked)] } else { 0.0 };
                let is = |yes: bool| f64::from(u8::from(yes));
                let values = [1.0, a as f64, b as f64, is(blocked), is(a == FIRST)];
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += p * value);
            }
        }
    }
    let exact = sums.map(|sum| sum / sums[0]);
    let web = Node { capacity: Some(FIRST as u64), ..fed(rate, node("web", 1.0 / first, 1)) };
    let db =
        Node { capacity: Some(SECOND as u64), when_full: WhenFull::Block, ..node("db", 1.0 / second, 1) };
    let answer = run(&open(vec![web, db], &[("web", "db", 1.0)]), 7);
    near("at the first", answer.nodes[0].answer.as_ref().unwrap().in_system, exact[1]);
    near("at the second", answer.nodes[1].answer.as_ref().unwrap().in_system, exact[2]);
    near("blocked", answer.nodes[0].blocked, exact[3]);
    near("turned away", answer.turned_away, exact[4]);
    assert_eq!(answer.nodes[1].answer.as_ref().unwrap().lost.value, 0.0);
}

/// Two stations that block one another, and one that goes on beside them.
#[test]
fn a_deadlock_is_found_and_said() {
    let blocking = |name| Node { capacity: Some(1), when_full: WhenFull::Block, ..node(name, 1.0, 1) };
    let ways = [("a", "b", 0.9), ("b", "a", 0.9)];
    let mut network = closed(vec![blocking("a"), blocking("b"), fed(1.0, node("c", 0.1, 1))], &ways, 2, 1.0);
    network.nodes[2].arrivals = None;
    let users = network.population.as_mut().unwrap();
    users.count = 5;
    users.enter = BTreeMap::from([("a".into(), 0.4), ("b".into(), 0.4), ("c".into(), 0.2)]);
    match simulate_network(&network, RUN, 1) {
        Err(SimulationError::Deadlock { stations, .. }) => assert_eq!(stations, "a, b"),
        other => panic!("{other:?}"),
    }
    // A customer that goes back to where it was served never waits for room: it has its own.
    let alone =
        open(vec![Node { arrivals: Some(Arrivals::poisson(0.1)), ..blocking("a") }], &[("a", "a", 0.5)]);
    run(&alone, 2);
}

/// Of each class its own ways and its own service.
#[test]
fn classes_have_their_own_ways() {
    let class = |name: &str, share, routing| RoutedClass { name: name.into(), share, weight: 1.0, routing };
    let mut network = open(vec![fed(1.0, node("web", 0.3, 1)), node("db", 0.4, 1)], &[]);
    network.classes =
        vec![class("reads", 0.75, None), class("writes", 0.25, Some(routes(&[("web", "db", 1.0)])))];
    network.nodes[0].services.insert("writes".into(), exponential(0.6));
    let answer = run(&network, 3);
    // Only writes reach the second node, as a thinned stream that is nearly Poisson.
    near("visits", answer.nodes[1].visits, 0.25);
    near("utilisation", answer.nodes[0].answer.as_ref().unwrap().utilisation, 0.75 * 0.3 + 0.25 * 0.6);
    near("utilisation", answer.nodes[1].answer.as_ref().unwrap().utilisation, 0.25 * 0.4);
    near("reads", answer.overall.classes[0].throughput_per_s, 0.75);
    // M/G/1: W = λE[S²]/(2(1 − ρ)).
    let waiting_s = (0.75 * 2.0 * 0.09 + 0.25 * 2.0 * 0.36) / (2.0 * (1.0 - 0.375));
    near("reads", answer.overall.classes[0].response.mean_s, waiting_s + 0.3);
}

#[test]
fn a_trace_tells_of_every_customer_once_and_changes_nothing() {
    let web = Node { capacity: Some(4), ..fed(2.0, node("web", 0.4, 1)) };
    let mut db = node("db", 0.3, 1);
    db.conditions.patience = Some(exponential(0.5));
    let network = open(vec![web, db], &[("web", "db", 0.8)]);
    for stop in [StopRule::customers(5000), StopRule::Runs { customers: 100, runs: 90 }] {
        let mut fates: BTreeMap<&str, u64> = BTreeMap::new();
        let mut seen = std::collections::BTreeSet::new();
        let traced = simulate_network_traced(&network, stop, 4, &mut |customer| {
            *fates.entry(customer.fate.name()).or_default() += 1;
            assert!(seen.insert((customer.run, customer.index)), "{customer:?} twice");
            assert!(customer.departure_s >= customer.arrival_s && customer.waiting_s >= 0.0, "{customer:?}");
            assert!(customer.fate != Fate::Served || customer.started_s.is_some(), "{customer:?}");
        })
        .unwrap();
        assert_eq!(traced, simulate_network(&network, stop, 4).unwrap());
        let counts = traced.counts;
        assert_eq!(
            [fates["served"], fates["lost"], fates["abandoned"]],
            [counts.served, counts.turned_away, counts.abandoned]
        );
    }
}

fn law() -> impl Strategy<Value = Law> {
    prop_oneof![
        (0.01f64..1.0).prop_map(exponential),
        (0.0f64..1.0).prop_map(|mean_s| Law::Constant { mean_s }),
        (0.01f64..1.0, 1.05f64..3.0).prop_map(|(mean_s, shape)| Law::Pareto { shape, mean_s }),
    ]
}

fn conditions() -> impl Strategy<Value = Conditions> {
    let retry = (0.0f64..1.0, law(), 0u32..4).prop_map(|(probability, after, most)| Retry {
        probability,
        after: Delays::Law(after),
        most: Some(most),
    });
    let then = prop_oneof![Just(Interrupted::Resume), Just(Interrupted::Restart), Just(Interrupted::Lose)];
    let clock = prop_oneof![Just(Clock::Operating), Just(Clock::Calendar)];
    let breakdown = (2.0f64..9.0, law(), then, clock).prop_map(|(up_s, repair, then, clock)| Breakdown {
        up: exponential(up_s),
        repair,
        then,
        clock,
    });
    let setup = (law(), prop::option::of(law())).prop_map(|(time, off_after)| Setup { time, off_after });
    (prop::option::of(law()), prop::option::of(retry), prop::option::of(breakdown), prop::option::of(setup))
        .prop_map(|(patience, retry, breakdown, setup)| Conditions {
            patience,
            retry,
            breakdown,
            setup,
            batch: None,
        })
}

fn any_node(name: &'static str) -> impl Strategy<Value = Node> {
    let full = prop_oneof![Just(WhenFull::Lose), Just(WhenFull::Block)];
    let order = prop::sample::select(Discipline::ALL.to_vec());
    (law(), 1u32..4, prop::option::of(0u64..5), full, order, conditions()).prop_map(
        move |(service, servers, room, when_full, discipline, mut conditions)| {
            if discipline == Discipline::ProcessorSharing {
                conditions.patience = None;
                conditions.breakdown.iter_mut().for_each(|breakdown| breakdown.then = Interrupted::Resume);
            }
            // A service that takes many times as long as servers last would restart for ever.
            if matches!(service, Law::Pareto { .. }) {
                conditions.breakdown.iter_mut().for_each(|breakdown| breakdown.then = Interrupted::Resume);
            }
            let capacity = room.map(|room| u64::from(servers) + room);
            if conditions.validate(discipline, capacity).is_err() {
                conditions.retry = None;
            }
            Node {
                capacity,
                when_full,
                discipline,
                conditions,
                ..Node::new(name, service, Servers::new(servers).unwrap())
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Any small network runs: no panic, no endless loop, every customer ends one way, and nothing is negative.
    #[test]
    fn any_network_adds_up(
        nodes in (any_node("a"), any_node("b"), any_node("c")),
        chances in prop::collection::vec(0.0f64..0.3, 9),
        source in prop_oneof![
            (0.1f64..20.0).prop_map(|rate| (Some(Arrivals::poisson(rate)), None)),
            (0.1f64..20.0).prop_map(|rate| (Some(Arrivals::poisson(rate)), Some(Batch::Geometric { mean: 2.5 }))),
            (0.1f64..20.0).prop_map(|rate| {
                let points = vec![(0.0, rate), (1.0, 0.0)];
                (Some(Arrivals::Varying(Profile { points, between: Between::Lines, period_s: Some(3.0), spacing: Spacing::Poisson })), None)
            }),
            Just((None, None)),
        ],
        seed in any::<u64>(),
    ) {
        let names = ["a", "b", "c"];
        let mut nodes = vec![nodes.0, nodes.1, nodes.2];
        let ways: Vec<_> = (0..9).map(|i| (names[i / 3], names[i % 3], chances[i])).collect();
        let (arrivals, batch) = source;
        let network = if arrivals.is_some() {
            nodes[0].arrivals = arrivals;
            nodes[0].conditions.batch = batch;
            open(nodes, &ways)
        } else {
            closed(nodes, &ways, 7, 0.5)
        };
        prop_assert_eq!(network.validate(), Ok(()));
        for stop in [StopRule::customers(1000), StopRule::Runs { customers: 60, runs: 10 }] {
            match simulate_network(&network, stop, seed) {
                Ok(answer) => {
                    adds_up(&answer);
                    let overall = &answer.overall;
                    prop_assert!(overall.response.mean_s.value >= 0.0 && overall.in_system.value >= 0.0);
                    let arrived = matches!(stop, StopRule::Runs { .. });
                    prop_assert!(!arrived || answer.counts.arrived == 600 && answer.counts.inside == 0);
                    for found in &answer.nodes {
                        let Some(node) = &found.answer else { continue };
                        prop_assert!(node.in_system.value >= 0.0 && node.utilisation.value <= 1.0);
                        prop_assert!(found.down.value >= 0.0 && found.blocked.value >= 0.0);
                    }
                }
                Err(
                    SimulationError::Unstable { .. }
                    | SimulationError::Deadlock { .. }
                    | SimulationError::TooShort { .. },
                ) => {}
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
