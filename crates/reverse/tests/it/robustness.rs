//! Faulty clients. Each gets what the protocol requires, and others are served meanwhile.

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::thread::sleep;
use std::time::Duration;

use crate::peer::{Peer, ask, check_that_others_are_served, digest, endless, request, request_for};
use crate::running::{on_threads, options, run, with};
use kendall_reverse::ReverseOptions;
use kendall_station::Discipline;
use kendall_testbed::wait_until;

fn send_slowly(server: SocketAddr, bytes: &[u8], every: Duration) -> Peer {
    let mut peer = Peer::connect(server);
    for byte in bytes {
        // After the server has disconnected, the rest is discarded.
        if peer.0.write_all(&[*byte]).is_err() {
            break;
        }
        sleep(every);
    }
    peer
}

#[test]
fn a_client_that_sends_a_byte_at_a_time_is_answered_as_long_as_it_keeps_sending() {
    // Like a byte per second with the default of 10 s: each byte is in time, all together take twice the
    // patience.
    let patience = Duration::from_millis(1500);
    let server = run(with(options(), |config| config.patience = patience));
    let slow = send_slowly(server.address, &request_for(7, 0, 10), patience / 24);
    check_that_others_are_served(server.address);
    assert_eq!(slow.answer(), 7);
}

#[test]
fn a_client_that_takes_too_long_is_closed_without_an_answer() {
    let deadline = Duration::from_millis(500);
    let server = run(with(options(), |config| config.request_deadline = deadline));
    let slow = send_slowly(server.address, &request_for(7, 0, 10)[..20], deadline / 10);
    check_that_others_are_served(server.address);
    assert!(slow.rest().unwrap_or_default().is_empty());
    wait_until("it is counted", || server.closed("deadline") == 1);
}

#[test]
fn a_silent_client_is_closed_when_patience_ends() {
    let server = run(with(options(), |config| config.patience = Duration::from_millis(300)));
    let silent = Peer::connect(server.address);
    let begun = Peer::send(server.address, &request_for(7, 0, 10)[..48]);
    check_that_others_are_served(server.address);
    assert!(silent.rest().unwrap().is_empty());
    assert!(begun.rest().unwrap().is_empty());
    wait_until("both are counted", || server.closed("deadline") == 2);
    server.check_conservation();
}

#[test]
fn a_client_that_closes_half_way_releases_its_resources() {
    let server = run(options());
    for sent in [0, 1, 3, 48] {
        drop(Peer::send(server.address, &request_for(7, 0, 10)[..sent]));
    }
    let half_closed = Peer::send(server.address, &request_for(7, 0, 10)[..30]);
    half_closed.half_close();
    assert!(half_closed.rest().unwrap().is_empty());
    wait_until("all are closed", || server.closed("incomplete") == 4 && server.closed("finished") == 1);
    check_that_others_are_served(server.address);
    assert_eq!(server.metric("requests_received_total"), 1);
}

/// One client sends a request that takes years, and the others are served in order of arrival.
#[test]
fn an_endless_request_is_abandoned_at_the_deadline_under_every_discipline() {
    for options in on_threads() {
        for discipline in [Discipline::Fifo, Discipline::Lifo] {
            let deadline = Duration::from_millis(200);
            let options =
                ReverseOptions { deadline, ..with(options.clone(), |config| config.discipline = discipline) };
            let server = run(with(options, |config| config.workers = NonZeroUsize::MIN));
            let years = Peer::send(server.address, &endless(255));
            wait_until("the search is under way", || server.levels().1 == 1);
            check_that_others_are_served(server.address);
            assert_eq!(years.answer(), 0);
            assert_eq!(server.metric("reverse_late_total"), 1);
            assert_eq!(server.metric("reverse_not_found_total"), 1);
            // An abandoned range does not count as searched.
            let again = Peer::send(server.address, &endless(255));
            wait_until("it is searched again", || server.levels().1 == 1);
            again.reset();
        }
    }
}

#[test]
fn a_range_that_is_wider_than_the_bound_is_answered_at_once() {
    let server = run(ReverseOptions { most_candidates: 1000, ..options() });
    assert_eq!(ask(server.address, &request_for(999, 0, 1000)), 999);
    assert_eq!(ask(server.address, &request_for(500, 0, 1001)), 0);
    assert_eq!(server.metric("reverse_beyond_bound_total"), 1);
    check_that_others_are_served(server.address);
}

/// Any 49 bytes are a request. These have a range that takes for ever, or an empty one.
#[test]
fn garbage_is_served_like_any_request_and_can_be_cancelled() {
    let server = run(options());
    let endless = Peer::send(server.address, &[&[0x5a; 40][..], &[0xff; 9]].concat());
    assert_eq!(ask(server.address, &[0xff; 49]), 0);
    assert_eq!(ask(server.address, &[0; 49]), 0);
    wait_until("the search is under way", || server.levels().1 == 1);
    check_that_others_are_served(server.address);
    endless.reset();
    wait_until("it is cancelled", || server.requests("cancelled") == 1);
    wait_until("the worker is free", || server.levels().1 == 0);
    server.check_conservation();
}

/// Empty ranges need no worker, so they are answered even if all workers are busy for ever.
#[test]
fn an_empty_range_is_answered_at_once() {
    let server = run(options());
    let busy: Vec<Peer> = (0..2).map(|_| Peer::send(server.address, &endless(255))).collect();
    wait_until("no worker is free", || server.levels().1 == 1 && server.levels().0 == 1);
    for (start, end) in [(5, 5), (9, 1), (u64::MAX, 0), (u64::MAX, u64::MAX), (0, 0)] {
        assert_eq!(ask(server.address, &request_for(start, start, end)), 0);
    }
    assert_eq!(server.metric("reverse_not_found_total"), 5);
    busy.into_iter().for_each(Peer::reset);
    server.check_conservation();
}

#[test]
fn the_ends_of_a_range_are_right() {
    let server = run(options());
    let address = server.address;
    let far = u64::MAX - 1000;
    for start in [0, 1, 1000, (1 << 32) - 5, far - 5] {
        let end = start + 1000;
        assert_eq!(ask(address, &request_for(start, start, end)), start);
        assert_eq!(ask(address, &request_for(end - 1, start, end)), end - 1);
        assert_eq!(ask(address, &request_for(end, start, end)), 0);
    }
    assert_eq!(ask(address, &request_for(u64::MAX - 1, far, u64::MAX)), u64::MAX - 1);
    assert_eq!(ask(address, &request_for(u64::MAX, far, u64::MAX)), 0);
    // The answer 0 is an answer, and does not count as not found.
    let not_found = server.metric("reverse_not_found_total");
    assert_eq!(ask(address, &request_for(0, 0, 10)), 0);
    assert_eq!(server.metric("reverse_not_found_total"), not_found);
    check_that_others_are_served(address);
}

/// A range of many chunks, searched to its end in vain while others are served.
#[test]
fn an_answer_that_is_not_in_the_range_is_0_after_the_whole_search() {
    let server = run(options());
    let search = Peer::send(server.address, &request_for(7, 1 << 40, (1 << 40) + 1_000_000));
    check_that_others_are_served(server.address);
    assert_eq!(search.answer(), 0);
    assert_eq!(server.metric("reverse_not_found_total"), 1);
}

#[test]
fn every_priority_is_served() {
    let server = run(options());
    for priority in [0, 1, 16, 17, 255] {
        assert_eq!(ask(server.address, &request(digest(42), 0, 100, priority)), 42);
    }
}

#[test]
fn a_request_may_come_in_pieces_and_with_a_surplus() {
    let server = run(options());
    let bytes = request_for(77, 0, 100);
    for cut in [1, 31, 32, 40, 48] {
        let mut peer = Peer::send(server.address, &bytes[..cut]);
        check_that_others_are_served(server.address);
        peer.0.write_all(&bytes[cut..]).unwrap();
        assert_eq!(peer.answer(), 77);
    }
    for surplus in [1, 49, 4000] {
        let longer = [&bytes[..], &vec![0xab; surplus]].concat();
        assert_eq!(ask(server.address, &longer), 77);
    }
}

#[test]
fn a_client_that_has_shut_down_its_sending_half_still_waits() {
    let server = run(options());
    let x = 900_000;
    let peer = Peer::send(server.address, &request_for(x, 0, 1_000_000));
    peer.half_close();
    check_that_others_are_served(server.address);
    assert_eq!(peer.answer(), x);
    assert_eq!(server.requests("cancelled"), 0);
}

#[test]
fn twenty_clients_that_reset_free_their_workers_and_queue_positions() {
    for options in on_threads() {
        let server = run(options);
        let peers: Vec<Peer> = (0..20).map(|_| Peer::send(server.address, &endless(1))).collect();
        wait_until("all are there", || server.levels().1 + server.levels().0 == 20);
        peers.into_iter().for_each(Peer::reset);
        wait_until("all are cancelled", || server.requests("cancelled") == 20);
        wait_until("the station is empty", || (server.levels().1, server.levels().0) == (0, 0));
        check_that_others_are_served(server.address);
        server.check_conservation();
        wait_until("their connections are closed", || server.closed("reset") == 20);
    }
}

#[test]
fn more_connections_than_allowed_get_their_8_bytes_too() {
    let server = run(with(options(), |config| config.max_connections = 3));
    let held: Vec<Peer> = (0..3).map(|_| Peer::connect(server.address)).collect();
    wait_until("three are open", || server.metric("connections_open") == 3);
    assert_eq!(Peer::connect(server.address).answer(), 0);
    assert_eq!(server.closed("connection-limit"), 1);
    drop(held);
    wait_until("none is open", || server.metric("connections_open") == 0);
    check_that_others_are_served(server.address);
    server.check_conservation();
}
