//! Searches on a cluster of processes.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kendall_cluster::{
    Cluster, CoordinatorId, JobId, JointSearch, JointState, Ledger, RangeSet, SearchKind, SearchSpec,
};
use kendall_digest::password::{self, Mask};
use kendall_digest::sha256::digest;
use kendall_testbed::{JETSTREAM, LIMIT, Nats, wait_until};

use crate::roles::{Role, cluster_on, engine, ledger_of, run, search};

/// Not below any end of a search here.
const ABSENT: u64 = u64::MAX;

/// Candidates that the workers of a cluster test in this time, once there are as many workers.
fn candidates(cluster: &Cluster, workers: usize, time: Duration) -> u64 {
    wait_until("the workers are there", || cluster.status().workers == workers);
    (cluster.status().integers_per_s as f64 * time.as_secs_f64()) as u64
}

/// What the ledger has of a search, after the cluster has ended.
fn in_ledger(nats: &Nats, candidate: u64, end: u64) -> RangeSet {
    let mut ledger = Ledger::open(&ledger_of(nats), CoordinatorId(0)).unwrap();
    let spec = SearchSpec::Integer { digest: digest(candidate) };
    ledger.entry(JobId::of(&spec, &(0..end))).unwrap().tested
}

#[test]
fn two_workers_find_what_is_there_and_nothing_else() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let _workers = [Role::worker(&nats.url()), Role::worker(&nats.url())];
    let cluster = cluster_on(&nats);
    let end = candidates(&cluster, 2, Duration::from_secs(2));
    assert_eq!(search(&cluster, ABSENT, end, None), None);
    let tested = cluster.counters().tested.load(Ordering::Relaxed);
    assert_eq!(tested, end, "each candidate is tested once");
    for candidate in [0, end / 3, end - 1] {
        assert_eq!(search(&cluster, candidate, end, None), Some(candidate));
    }
    // From the ledger, which has it.
    assert_eq!(search(&cluster, end / 3, end, None), Some(end / 3));
    drop(cluster);
    assert_eq!(in_ledger(&nats, ABSENT, end), RangeSet::of(0..end));
}

#[test]
fn this_machine_takes_part_and_needs_no_worker() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let cluster = cluster_on(&nats);
    assert!(!cluster.is_worth(SearchKind::Integer, u64::MAX));
    assert_eq!(search(&cluster, 2_999_999, 3_000_000, Some(engine())), Some(2_999_999));
    assert_eq!(search(&cluster, ABSENT, 3_000_000, Some(engine())), None);
    let mut worker = Role::worker(&nats.url());
    let end = candidates(&cluster, 1, Duration::from_secs(2));
    assert!(cluster.is_worth(SearchKind::Integer, end));
    assert_eq!(search(&cluster, ABSENT, end, Some(engine())), None);
    let by_worker = cluster.counters().tested.load(Ordering::Relaxed);
    assert!((1..end).contains(&by_worker), "{by_worker} of {end}");
    assert!(worker.terminate());
    drop(cluster);
    assert_eq!(in_ledger(&nats, ABSENT, end), RangeSet::of(0..end));
}

#[test]
fn a_worker_that_is_killed_costs_the_chunk_that_it_had() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let mut killed = Role::worker(&nats.url());
    let cluster = cluster_on(&nats);
    let end = candidates(&cluster, 1, Duration::from_secs(3));
    let spec = SearchSpec::Integer { digest: digest(ABSENT) };
    let mut joint = JointSearch::begin(&cluster, spec, 0..end, 1.0, || {}).unwrap();
    joint.exchange();
    std::thread::sleep(Duration::from_millis(200));
    killed.kill();
    let _other = Role::worker(&nats.url());
    assert_eq!(run(&mut joint, ABSENT, None), None);
    drop(joint);
    // The killed worker reported no chunk twice, and the other one tested what the killed one had.
    assert_eq!(cluster.counters().tested.load(Ordering::Relaxed), end);
    drop(cluster);
    assert_eq!(in_ledger(&nats, ABSENT, end), RangeSet::of(0..end));
}

#[test]
fn chunks_come_back_when_the_last_worker_is_gone() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let mut worker = Role::worker(&nats.url());
    let cluster = cluster_on(&nats);
    let end = candidates(&cluster, 1, Duration::from_secs(2));
    let spec = SearchSpec::Integer { digest: digest(end - 1) };
    let mut joint = JointSearch::begin(&cluster, spec, 0..end, 1.0, || {}).unwrap();
    joint.exchange();
    worker.kill();
    assert_eq!(run(&mut joint, end - 1, Some(engine())), Some(end - 1));
}

#[test]
fn a_worker_that_is_stopped_returns_what_it_has() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let mut stopped = Role::worker(&nats.url());
    let cluster = cluster_on(&nats);
    let end = candidates(&cluster, 1, Duration::from_secs(3));
    let spec = SearchSpec::Integer { digest: digest(ABSENT) };
    let mut joint = JointSearch::begin(&cluster, spec, 0..end, 1.0, || {}).unwrap();
    joint.exchange();
    std::thread::sleep(Duration::from_millis(300));
    assert!(stopped.terminate());
    let _other = Role::worker(&nats.url());
    assert_eq!(run(&mut joint, ABSENT, None), None);
    assert_eq!(cluster.counters().tested.load(Ordering::Relaxed), end, "nothing is tested twice");
}

#[test]
fn a_worker_can_be_stopped_while_the_queue_says_nothing() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let mut worker = Role::worker(&nats.url());
    let _cluster = cluster_on(&nats);
    std::thread::sleep(Duration::from_millis(600));
    nats.pause();
    // It gives up its request for chunks, and asks for urgent ones, whose answer has no time limit at the server.
    std::thread::sleep(Duration::from_secs(6));
    worker.ask_to_end();
    assert!(worker.ends_in(LIMIT));
}

#[test]
fn a_server_that_starts_again_goes_on_from_its_ledger() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let _worker = Role::worker(&nats.url());
    let cluster = cluster_on(&nats);
    let end = candidates(&cluster, 1, Duration::from_secs(3));
    let spec = SearchSpec::Integer { digest: digest(ABSENT) };
    let mut joint = JointSearch::begin(&cluster, spec.clone(), 0..end, 1.0, || {}).unwrap();
    while joint.tested() < end / 4 {
        assert_ne!(joint.exchange(), JointState::Absent);
        std::thread::sleep(Duration::from_millis(5));
    }
    let tested = joint.tested();
    drop(joint);
    drop(cluster);
    let cluster = cluster_on(&nats);
    let job = cluster.open(spec.clone(), 0..end, 1.0, || {}).unwrap();
    assert!(job.tested_before().candidates() >= tested);
    assert!(cluster.open(spec, 0..end, 1.0, || {}).is_none(), "a job is open once");
    let left = end - job.tested_before().candidates();
    drop(job);
    candidates(&cluster, 1, Duration::ZERO);
    assert_eq!(search(&cluster, ABSENT, end, None), None);
    assert_eq!(cluster.counters().tested.load(Ordering::Relaxed), left);
}

#[test]
fn the_more_urgent_of_two_searches_ends_first() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let cluster = cluster_on(&nats);
    let _worker = Role::worker(&nats.url());
    let end = candidates(&cluster, 1, Duration::from_secs(4));
    let begin = |candidate, urgency| {
        let spec = SearchSpec::Integer { digest: digest(candidate) };
        JointSearch::begin(&cluster, spec, 0..end, urgency, || {}).unwrap()
    };
    let mut usual = begin(ABSENT, 1.0);
    usual.exchange();
    let mut urgent = begin(ABSENT - 1, 2.0);
    while urgent.exchange() != JointState::Absent {
        assert_ne!(usual.exchange(), JointState::Absent);
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(usual.tested() < end / 2, "{} of {end}", usual.tested());
}

#[test]
fn passwords_are_searched_too() {
    let Some(nats) = Nats::with(JETSTREAM) else { return };
    let cluster = cluster_on(&nats);
    let _worker = Role::worker(&nats.url());
    candidates(&cluster, 1, Duration::ZERO);
    let mask = Mask::uniform(b"abcdefghijklmnopqrstuvwxyz", 5).unwrap();
    let word = b"zyxwv";
    let specs = [
        SearchSpec::Sha1 { digest: password::sha1(word), mask: mask.clone() },
        SearchSpec::Sha256 { digest: password::sha256(word), mask: mask.clone() },
        SearchSpec::Md5 { digest: password::md5(word), mask: mask.clone() },
    ];
    for spec in specs {
        let mut joint = JointSearch::begin(&cluster, spec, 0..mask.size(), 1.0, || {}).unwrap();
        assert_eq!(run(&mut joint, 0, None), mask.number(word));
    }
}
