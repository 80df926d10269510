//! The order of service: the live server keeps the order of its discipline, interrupts where it may, and stops in
//! order. Assertions about the order use the server's own stamps, so no test depends on speed.

use crate::peer::{Peer, ask, check_that_others_are_served, digest, endless, request, request_for};
use crate::running::{one_worker, run, with};
use kendall_record::clock::now_ns;
use kendall_record::stamps::{self, Stamp};
use kendall_reverse::{ReverseOptions, Sharing};
use kendall_station::{Discipline, Job, Queue, Size};
use kendall_testbed::{LIMIT, Running, wait_until};
use std::collections::HashMap;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Each request has a separate search, so that the stamps only show the order of service.
fn with_stamps(discipline: Discipline) -> (Running, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let alone = ReverseOptions { sharing: Sharing::Off, ..one_worker() };
    let options = with(alone, |config| {
        config.discipline = discipline;
        config.stamps = Some(folder.path().join("stamps"));
    });
    (run(options), folder)
}

fn read_stamps(folder: &Path) -> Vec<Stamp> {
    stamps::read(&folder.join("stamps")).unwrap()
}

#[test]
fn an_urgent_request_overtakes_a_long_one_where_the_discipline_says_so() {
    for discipline in [Discipline::PreemptivePriority, Discipline::Gittins, Discipline::ShortestRemaining] {
        let server = run(with(one_worker(), |config| config.discipline = discipline));
        let long = Peer::send(server.address, &endless(1));
        wait_until("the long one is served", || server.levels().1 == 1);
        assert_eq!(ask(server.address, &request(digest(9), 0, 10, 16)), 9);
        wait_until("the long one is served again", || server.levels().1 == 1 && server.levels().0 == 0);
        assert!(server.metric("preemptions_total") >= 1, "{discipline}");
        assert_eq!(server.requests("answered"), 1);
        long.reset();
        server.check_conservation();
    }
}

#[test]
fn an_urgent_request_waits_for_a_long_one_without_preemption() {
    for discipline in [Discipline::Fifo, Discipline::Lifo, Discipline::Priority, Discipline::CMu] {
        let (server, folder) = with_stamps(discipline);
        let long = Peer::send(server.address, &endless(1));
        wait_until("the long one is served", || server.levels().1 == 1);
        let urgent = Peer::send(server.address, &request(digest(9), 0, 10, 16));
        wait_until("the urgent one waits", || server.levels().0 == 1);
        std::thread::sleep(Duration::from_millis(50));
        let before_reset_ns = now_ns();
        long.reset();
        assert_eq!(urgent.answer(), 9);
        assert_eq!(server.metric("preemptions_total"), 0);
        server.stop();
        let [stamp] = read_stamps(folder.path())[..] else { panic!("one request was answered") };
        assert!(stamp.started >= before_reset_ns, "{discipline}: {stamp:?}");
    }
}

#[test]
fn processor_sharing_lets_a_short_request_pass_many_long_ones() {
    let server = run(with(one_worker(), |config| config.discipline = Discipline::ProcessorSharing));
    let long: Vec<Peer> = (0..5).map(|_| Peer::send(server.address, &endless(1))).collect();
    wait_until("five long ones share the worker", || server.levels().1 == 1 && server.levels().0 == 4);
    check_that_others_are_served(server.address);
    assert_eq!(server.requests("answered"), 1);
    long.into_iter().for_each(Peer::reset);
    server.check_conservation();
}

/// Behind a request that no other here outranks, others queue; when it goes, they are served in the very order in
/// which `station::Queue`, which the simulator uses, returns them.
#[test]
fn the_live_order_is_that_of_the_queue() {
    let (priorities, lengths) = ([3, 1, 16, 3, 1, 8], [900, 300, 900, 100, 700, 500]);
    let disciplines = [
        Discipline::Fifo,
        Discipline::Lifo,
        Discipline::Priority,
        Discipline::PreemptivePriority,
        Discipline::CMu,
    ];
    for discipline in disciplines {
        let (server, folder) = with_stamps(discipline);
        let blocker = Peer::send(server.address, &endless(255));
        wait_until("the blocker is served", || server.levels().1 == 1);
        let mut queue = Queue::new(discipline);
        let mut peers = Vec::new();
        for (i, (priority, length)) in priorities.into_iter().zip(lengths).enumerate() {
            let peer = Peer::send(server.address, &request(digest(length - 1), 0, length, priority));
            wait_until("it waits", || server.levels().0 == i as u64 + 1);
            let job = Job { weight: priority.into(), size: Size::UniformUpTo(length as f64), attained: 0.0 };
            queue.push(job, peer.0.local_addr().unwrap().port());
            peers.push((peer, length - 1));
        }
        blocker.reset();
        peers.into_iter().for_each(|(peer, answer)| assert_eq!(peer.answer(), answer));
        server.stop();
        let served: Vec<u16> = read_stamps(folder.path()).iter().map(|stamp| stamp.port).collect();
        let expected: Vec<u16> = std::iter::from_fn(|| queue.pop()).map(|entry| entry.item).collect();
        assert_eq!(served, expected, "{discipline}");
    }
}

/// The stamps of one server are a schedule: queued ≤ started, and one worker serves one request at a time, so that
/// the service of all but the last adds up to no more than the time until the last was finished.
#[test]
fn the_stamps_are_a_possible_schedule() {
    let (server, folder) = with_stamps(Discipline::ProcessorSharing);
    let peers: Vec<(Peer, u64)> = (1..=10)
        .map(|i| i * 20_000)
        .map(|x| (Peer::send(server.address, &request_for(x, 0, 1 << 20)), x))
        .collect();
    let ports: HashMap<u16, u64> =
        peers.iter().map(|(peer, x)| (peer.0.local_addr().unwrap().port(), *x)).collect();
    peers.into_iter().for_each(|(peer, x)| assert_eq!(peer.answer(), x));
    server.stop();
    let stamps = read_stamps(folder.path());
    assert_eq!(stamps.len(), ports.len());
    for stamp in &stamps {
        assert!(ports.contains_key(&stamp.port));
        assert!(stamp.queued <= stamp.started && 0 < stamp.service, "{stamp:?}");
    }
    let first = stamps.iter().map(|stamp| stamp.started).min().unwrap();
    let (last, others) = stamps.split_last().unwrap();
    assert!(stamps.is_sorted_by_key(|stamp| stamp.finished));
    assert!(others.iter().map(|stamp| stamp.service).sum::<i64>() <= last.finished - first);
}

#[test]
fn shutdown_finishes_what_is_in_flight() {
    let server = run(with(one_worker(), |config| config.grace = LIMIT));
    let requests = [700_000, 300_000, 5_000];
    let peers: Vec<Peer> =
        requests.iter().map(|&x| Peer::send(server.address, &request_for(x, 0, 1 << 20))).collect();
    wait_until("all have arrived", || server.metric("requests_received_total") == 3);
    let address = server.address;
    let metrics = server.stop();
    for (peer, x) in peers.into_iter().zip(requests) {
        assert_eq!(peer.answer(), x);
    }
    assert!(TcpStream::connect(address).is_err());
    assert!(metrics.contains("kendall_requests_total{outcome=\"answered\"} 3"));
}

#[test]
fn shutdown_rejects_with_8_bytes_requests_that_outlast_the_grace_period() {
    let server = run(with(one_worker(), |config| config.grace = Duration::from_millis(50)));
    let served = Peer::send(server.address, &endless(1));
    let waits = Peer::send(server.address, &endless(1));
    let half = Peer::send(server.address, &endless(1)[..20]);
    let idle = Peer::connect(server.address);
    wait_until("all are there", || server.levels().0 == 1 && server.metric("connections_open") == 4);
    let metrics = server.stop();
    assert_eq!((served.answer(), waits.answer()), (0, 0));
    assert_eq!(half.answer(), 0);
    assert!(idle.rest().unwrap().is_empty());
    assert!(metrics.contains("kendall_requests_total{outcome=\"shutdown\"} 2"));
}
