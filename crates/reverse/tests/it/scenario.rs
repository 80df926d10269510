//! A whole scenario of the course with the server, by a client that only knows the protocol.

use std::collections::HashSet;
use std::time::Duration;

use crate::course::Scenario;
use crate::peer::check_that_others_are_served;
use crate::running::{options, run};

const MILESTONE: Scenario = Scenario {
    seed: 3_435_245,
    total: 100,
    start: 0,
    difficulty: 30_000_000,
    repeat_percent: 20,
    delay: Duration::from_millis(600),
    lambda: 1.5,
};

/// The stand-in draws what the course's client v0.20 printed and sent.
#[test]
fn the_stand_in_draws_what_the_known_client_drew() {
    let printed = include_str!("../../testdata/course.txt");
    let lines = printed.lines().filter(|line| !line.starts_with('#'));
    let expected: HashSet<(u64, u8)> = lines
        .map(|line| {
            let mut words = line.split_whitespace();
            (words.next().unwrap().parse().unwrap(), words.next().unwrap().parse().unwrap())
        })
        .collect();
    let drawn = Scenario { seed: 1234, total: 5, difficulty: 20_000, ..MILESTONE }.requests();
    assert_eq!(drawn.iter().map(|drawn| (drawn.x, drawn.priority)).collect::<HashSet<_>>(), expected);
}

/// The numbers counted in the streams of the two official scenarios.
#[test]
fn the_stand_in_draws_the_official_scenarios() {
    let counts = |scenario: Scenario| {
        let requests = scenario.requests();
        let unique: HashSet<u64> = requests.iter().map(|drawn| drawn.x).collect();
        let mut priorities = [0; 6];
        requests.iter().for_each(|drawn| priorities[usize::from(drawn.priority)] += 1);
        (unique.len(), priorities)
    };
    assert_eq!(counts(MILESTONE), (86, [0, 78, 19, 3, 0, 0]));
    assert_eq!(counts(Scenario { seed: 5041, total: 500, ..MILESTONE }), (392, [0, 394, 85, 17, 3, 1]));
}

#[test]
fn every_request_of_a_scenario_is_answered_rightly() {
    let server = run(options());
    let quick = Scenario { difficulty: 20_000, delay: Duration::from_millis(2), ..MILESTONE };
    let results = quick.run(server.address);
    assert_eq!(results.reliability_percent, 100.0);
    assert_eq!(results.priorities[..4], [78, 19, 3, 0]);
    assert!(results.score > 0);
    assert_eq!(server.requests("answered"), 100);
    server.check_conservation();
}

/// Every request has the same range, a fixed start and no pause: all are sent as fast as threads begin.
#[test]
fn a_scenario_of_one_range_all_at_once_is_answered_rightly() {
    let server = run(options());
    let burst = Scenario {
        start: 1,
        total: 200,
        difficulty: 10,
        repeat_percent: 0,
        delay: Duration::ZERO,
        lambda: 0.0,
        ..MILESTONE
    };
    let results = burst.run(server.address);
    assert_eq!((results.reliability_percent, results.priorities[0]), (100.0, 200));
    check_that_others_are_served(server.address);
    server.check_conservation();
}
