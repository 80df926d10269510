//! What must hold for any message between a fleet and its agents.

use std::collections::BTreeMap;
use std::time::Duration;

use kendall_load::Plan;
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};
use kendall_testbed::fuzz::Target as FuzzTarget;

use crate::job::{Job, Target};
use crate::message::{Beat, Hello, Order, Reply, read, write};
use crate::rows;

/// The parsers of this crate.
pub const TARGETS: &[FuzzTarget] = &[
    FuzzTarget { name: "agents-messages", seeds: message_seeds, run: messages },
    FuzzTarget { name: "agents-rows", seeds: row_seeds, run: read_rows },
];

/// What is read can be written and read again, and a job that is checked can be set up.
fn messages(input: &[u8]) {
    if let Some(order) = read::<Order>(input) {
        assert!(read::<Order>(&write(&order)).is_some());
        if let Order::Prepare { job, .. } = order
            && job.check().is_ok()
        {
            assert!(job.plan.arrivals.ends_s().is_none_or(|ends_s| ends_s >= 0.0));
            assert!((1..=64).contains(&job.threads()));
        }
    }
    if let Some(reply) = read::<Reply>(input) {
        assert!(read::<Reply>(&write(&reply)).is_some());
    }
    if let Some(hello) = read::<Hello>(input) {
        assert!(read::<Hello>(&write(&hello)).is_some());
    }
    if let Some(beat) = read::<Beat>(input) {
        assert!(read::<Beat>(&write(&beat)).is_some());
    }
}

fn message_seeds() -> Vec<Vec<u8>> {
    let job = |arrivals| {
        let workload = BTreeMap::from([("difficulty".to_owned(), "30".to_owned())]);
        let address = ([127, 0, 0, 1], 80).into();
        let target = Target { system: "reverse".to_owned(), address, workload, seed: 3 };
        let plan = Plan::lasting(arrivals, Duration::from_secs(1), 5);
        Order::Prepare {
            run: "7".to_owned(),
            place: 1,
            job: Box::new(Job { target, plan, threads: Some(2) }),
        }
    };
    let law = || Law::Exponential { mean_s: 0.1 };
    let run = || "7".to_owned();
    let orders = [
        job(Arrivals::Open { gap: law() }),
        job(Arrivals::Closed { population: 3, think: law() }),
        job(Arrivals::Trace { instants_s: vec![0.5, 1.0].into() }),
        Order::Start { run: run(), at_ns: 5 },
        Order::Alive { run: run() },
        Order::Clock,
    ];
    let hello = Hello { protocol: 1, id: run(), name: run(), version: run(), is_busy: true };
    let beat = Beat { sent: 1, in_flight: 2, waiting: 3 };
    let replies = [Reply::Clock { now_ns: 3 }, Reply::Done, Reply::Refused { why: run() }];
    let mut seeds: Vec<Vec<u8>> = orders.iter().map(write).collect();
    seeds.extend(replies.iter().map(write));
    seeds.extend([write(&hello), write(&beat)]);
    seeds
}

/// Bytes are rows in one way.
fn read_rows(input: &[u8]) {
    if let Some((number, rows)) = rows::decode(input) {
        assert_eq!(rows::encode(number, &rows), input);
    }
}

fn row_seeds() -> Vec<Vec<u8>> {
    let row = RequestRow::due(1, 5).sent_at(6, 7).ended(Outcome::Answered, 9);
    vec![rows::encode(3, &[row.clone(), row]), rows::encode(0, &[])]
}

#[test]
fn any_input_is_handled() {
    kendall_testbed::fuzz::check(TARGETS, env!("CARGO_MANIFEST_DIR"));
}
