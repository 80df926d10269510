//! Workers, the coordinator and nats-server are killed at random during one search, and no candidate is lost.
//!
//! `KENDALL_CLUSTER_KILLS=50` makes it that many kills.

use std::env;
use std::thread;
use std::time::Duration;

use kendall_cluster::{CoordinatorId, JobId, Ledger, RangeSet, SearchSpec};
use kendall_digest::sha256::digest;
use kendall_testbed::{JETSTREAM, Nats, wait_until};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::roles::{Role, cluster_on, ledger_of};

const WORKERS: usize = 2;
/// Behind no digest below the end.
const ABSENT: u64 = u64::MAX;

#[test]
fn random_kills_lose_no_candidate() {
    let kills = env::var("KENDALL_CLUSTER_KILLS").map_or(6, |text| text.parse().unwrap());
    let Some(mut nats) = Nats::with(JETSTREAM) else { return };
    let mut random = Xoshiro256PlusPlus::seed_from_u64(25);
    let (url, ledger) = (nats.url(), ledger_of(&nats).to_str().unwrap().to_owned());
    let mut workers: Vec<Role> = (0..WORKERS).map(|_| Role::worker(&url)).collect();
    let speed = {
        let cluster = cluster_on(&nats);
        wait_until("the workers are there", || cluster.status().workers == WORKERS);
        cluster.status().integers_per_s
    };
    // Longer than the kills take, so that all happen during the search.
    let end = speed * kills as u64;
    let start = || Role::coordinator(&url, &ledger, ABSENT, end);
    let mut coordinator = start();
    for kill in 0..kills {
        thread::sleep(Duration::from_millis(random.random_range(100..900)));
        // Each kind is killed, whatever the number of kills.
        match kill % 3 {
            0 => {
                let victim = random.random_range(0..WORKERS);
                workers[victim].kill();
                workers[victim] = Role::worker(&url);
            }
            1 => {
                coordinator.kill();
                coordinator = start();
            }
            _ => {
                nats.kill();
                thread::sleep(Duration::from_millis(random.random_range(0..500)));
                nats.start_again();
            }
        }
        // A process that found no server when it started has ended.
        for worker in workers.iter_mut().filter_map(|worker| worker.has_ended().then_some(worker)) {
            *worker = Role::worker(&url);
        }
        if coordinator.has_ended() && kill + 1 < kills {
            coordinator = start();
        }
    }
    // The last coordinator can have been killed at its start, with the server away.
    let answer = loop {
        match coordinator.line("answer ") {
            Some(answer) => break answer,
            None => coordinator = start(),
        }
    };
    assert_eq!(answer, "None");
    // It writes what it tested last.
    coordinator.finish();
    let mut ledger = Ledger::open(&ledger_of(&nats), CoordinatorId(0)).unwrap();
    let spec = SearchSpec::Integer { digest: digest(ABSENT) };
    let entry = ledger.entry(JobId::of(&spec, &(0..end))).unwrap();
    assert_eq!(entry.tested, RangeSet::of(0..end));
}
