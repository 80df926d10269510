//! Work that is done once: for earlier requests, for concurrent ones, and for the same range.

use std::time::Duration;

use crate::peer::{Peer, ask, digest, endless, request, request_for};
use crate::running::{on_threads, one_worker, options, run, with};
use kendall_reverse::{Execution, Memory, ReverseOptions, Sharing};
use kendall_station::Discipline;
use kendall_testbed::wait_until;

#[test]
fn every_execution_answers_correctly_with_any_sharing() {
    for execution in on_threads() {
        for sharing in Sharing::ALL {
            for memory in Memory::ALL {
                let server = run(ReverseOptions { sharing, memory, ..execution.clone() });
                let requests: Vec<u64> = (0..24).map(|i| (i % 8) * 9_000).collect();
                let peers: Vec<Peer> = requests
                    .iter()
                    .map(|&x| Peer::send(server.address, &request_for(x, x / 2, 70_000 + x)))
                    .collect();
                for (peer, x) in peers.into_iter().zip(requests) {
                    assert_eq!(peer.answer(), x, "{} {sharing} {memory}", execution.execution);
                }
                server.check_conservation();
            }
        }
    }
}

#[test]
fn a_found_number_is_answered_from_the_cache_only_within_its_range() {
    for memory in [Memory::Map, Memory::MapAndBloom] {
        let server = run(ReverseOptions { memory, ..options() });
        let hits = || server.metric("reverse_memory_hits_total");
        assert_eq!(ask(server.address, &request_for(5_000, 0, 9_000)), 5_000);
        assert_eq!((ask(server.address, &request_for(5_000, 0, 9_000)), hits()), (5_000, 1));
        assert_eq!((ask(server.address, &request_for(5_000, 4_000, 6_000)), hits()), (5_000, 2));
        // That the number lies outside the range is not an answer yet: this range is searched, and then known.
        assert_eq!((ask(server.address, &request_for(5_000, 0, 3_000)), hits()), (0, 2));
        assert_eq!((ask(server.address, &request_for(5_000, 0, 3_000)), hits()), (0, 3));
        assert_eq!((ask(server.address, &request_for(0, 0, 10)), hits()), (0, 3));
        assert_eq!((ask(server.address, &request_for(0, 0, 10)), hits()), (0, 4));
        assert_eq!(server.metric("reverse_not_found_total"), 2, "0 is a number like any other");
    }
}

#[test]
fn the_cache_is_bounded_and_evicts_the_least_recently_used() {
    for memory in [Memory::Map, Memory::MapAndBloom] {
        let memory_entries = 8.try_into().unwrap();
        let server = run(ReverseOptions { memory, memory_entries, ..options() });
        let hits = || server.metric("reverse_memory_hits_total");
        for x in 0..100 {
            assert_eq!(ask(server.address, &request_for(x, 0, 128)), x);
            assert_eq!(ask(server.address, &request_for(0, 0, 128)), 0, "requested again and again");
        }
        assert_eq!(hits(), 100);
        assert_eq!(server.metric("reverse_memory_evictions_total"), 92);
        assert_eq!((ask(server.address, &request_for(99, 0, 128)), hits()), (99, 101));
        assert_eq!((ask(server.address, &request_for(3, 0, 128)), hits()), (3, 101));
    }
}

#[test]
fn without_a_cache_every_request_is_searched() {
    let server = run(ReverseOptions { memory: Memory::Off, ..options() });
    for _ in 0..3 {
        assert_eq!(ask(server.address, &request_for(7, 0, 100)), 7);
    }
    assert_eq!(server.metric("reverse_memory_hits_total"), 0);
}

/// Behind a request that no other outranks, the same requests are sent many times; then one search answers all that are equal, and
/// each of them counts.
#[test]
fn equal_requests_are_searched_once() {
    for execution in on_threads() {
        let (threads, execution) = (execution.service.workers.get() as u64, execution);
        let blockers = if execution.execution == Execution::ThreadPool { threads } else { 1 };
        let server = run(with(execution, |config| config.discipline = Discipline::Fifo));
        let blockers: Vec<Peer> = (0..blockers).map(|_| Peer::send(server.address, &endless(1))).collect();
        wait_until("all are busy", || server.levels().1 == blockers.len() as u64);
        let same: Vec<Peer> = (1..=10)
            .map(|priority| Peer::send(server.address, &request(digest(600), 0, 1_000, priority)))
            .collect();
        let absent: Vec<Peer> =
            (0..3).map(|_| Peer::send(server.address, &request_for(600, 0, 500))).collect();
        wait_until("all wait", || server.levels().0 == 13);
        assert_eq!(server.metric("requests_joined_total"), 11);
        blockers.into_iter().for_each(Peer::reset);
        same.into_iter().for_each(|peer| assert_eq!(peer.answer(), 600));
        absent.into_iter().for_each(|peer| assert_eq!(peer.answer(), 0));
        assert_eq!(server.metric("reverse_not_found_total"), 3);
        server.check_conservation();
    }
}

#[test]
fn the_search_ends_when_its_client_disconnects() {
    for options in on_threads() {
        let server = run(options);
        let hashed = || server.metric("reverse_candidates_total");
        let peer = Peer::send(server.address, &endless(1));
        wait_until("the search is under way", || hashed() > 0);
        peer.reset();
        wait_until("it is cancelled", || server.requests("cancelled") == 1 && server.levels().1 == 0);
        wait_until("nothing is hashed any more", || {
            let before = hashed();
            std::thread::sleep(Duration::from_millis(50));
            hashed() == before
        });
    }
}

/// Forty searches through one range, in little more than the time of one: with separate searches, each would
/// have been served.
#[test]
fn searches_through_the_same_range_are_done_in_one_pass() {
    let server = run(with(one_worker(), |config| config.discipline = Discipline::Fifo));
    let blocker = Peer::send(server.address, &endless(1));
    wait_until("the blocker is served", || server.levels().1 == 1);
    // Far from the blocker's range, so that it does not answer them as riders.
    let (start, end) = (1 << 60, (1 << 60) + 200_000);
    let numbers: Vec<u64> = (0..40).map(|i| start + i * 5_000).collect();
    let peers: Vec<Peer> =
        numbers.iter().map(|&x| Peer::send(server.address, &request_for(x, start, end))).collect();
    wait_until("all wait", || server.levels().0 == 40);
    let hashed = || server.metric("reverse_candidates_total");
    blocker.reset();
    wait_until("the blocker is gone", || server.requests("cancelled") == 1);
    let before = hashed();
    for (peer, x) in peers.into_iter().zip(numbers) {
        assert_eq!(peer.answer(), x);
    }
    let hashed = hashed() - before;
    let alone: u64 = (0..40).map(|i| i * 5_000).sum();
    assert!(hashed < alone / 5, "{hashed} of {alone}");
    server.check_conservation();
}
