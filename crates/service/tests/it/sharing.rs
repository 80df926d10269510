//! Equal requests are served as one.

use crate::lines::{Peer, Server, config};
use kendall_record::stamps;
use kendall_service::Config;
use kendall_station::Discipline;
use kendall_testbed::wait_until;

fn asking(server: &Server, text: &str) -> Peer {
    let mut peer = Peer::connect(server.address);
    peer.send(text);
    peer
}

fn wait_for(server: &Server, waiting: u64, busy: u64) {
    wait_until("the station is as expected", || server.levels() == (waiting, busy));
}

#[test]
fn requests_equal_to_one_in_service_get_its_answer_without_service() {
    let folder = tempfile::tempdir().unwrap();
    let stamps_file = folder.path().join("stamps");
    let server = Server::new(Config { stamps: Some(stamps_file.clone()), ..config(3) });
    let peers: Vec<Peer> = (1..=5)
        .map(|i| {
            let peer = asking(&server, "same 1\n");
            wait_for(&server, i - 1, 1);
            peer
        })
        .collect();
    assert_eq!(server.metric("requests_joined_total"), 4);
    server.gate.open();
    for mut peer in peers {
        assert_eq!(peer.line(), "held");
    }
    assert_eq!((server.requests("answered"), server.levels()), (5, (0, 0)));
    drop(server);
    let stamps = stamps::read(&stamps_file).unwrap();
    let longest = stamps.iter().map(|stamp| stamp.service).max().unwrap();
    let all: i64 = stamps.iter().map(|stamp| stamp.service).sum();
    assert!(stamps.len() == 5 && all < 2 * longest, "{stamps:?}");
}

#[test]
fn the_answer_comes_as_long_as_one_of_them_stays_and_the_work_ends_with_the_last() {
    let server = Server::new(config(1));
    let first = asking(&server, "same 1\n");
    wait_for(&server, 0, 1);
    let second = asking(&server, "same 1\n");
    wait_for(&server, 1, 1);
    first.reset();
    wait_for(&server, 0, 1);
    assert_eq!(server.requests("cancelled"), 1);
    second.reset();
    wait_for(&server, 0, 0);
    assert_eq!(server.requests("cancelled"), 2);
    // A request that comes now opens a new flight.
    let mut third = asking(&server, "same 1\n");
    wait_for(&server, 0, 1);
    server.gate.open();
    assert_eq!(third.line(), "held");
    assert_eq!(server.metric("requests_joined_total"), 1);
}

#[test]
fn waiting_equal_requests_add_their_weights() {
    let discipline = Discipline::PreemptivePriority;
    let server = Server::new(Config { discipline, ..config(1) });
    let _served = asking(&server, "hold 5\n");
    wait_for(&server, 0, 1);
    let mut same = vec![asking(&server, "same 3\n")];
    wait_for(&server, 1, 1);
    assert_eq!(server.gate.chunks(3), 0);
    let other = asking(&server, "same 3\n");
    wait_until("6 outranks 5", || server.gate.chunks(3) > 0);
    // Alone again, it yields.
    other.reset();
    let before = server.gate.chunks(5);
    wait_until("5 outranks 3", || server.gate.chunks(5) > before);
    same.push(asking(&server, "same 2\n"));
    wait_for(&server, 2, 1);
    server.gate.open();
    same.iter_mut().for_each(|peer| assert_eq!(peer.line(), "held"));
}

#[test]
fn requests_answered_by_another_turn_leave_the_queue() {
    let server = Server::new(Config { discipline: Discipline::PreemptivePriority, ..config(1) });
    let mut served = asking(&server, "hold 5\n");
    wait_for(&server, 0, 1);
    let mut peers = [asking(&server, "same 1\n"), asking(&server, "same 1\n")];
    wait_for(&server, 2, 1);
    assert_eq!(asking(&server, "all\n").line(), "all");
    peers.iter_mut().for_each(|peer| assert_eq!(peer.line(), "besides"));
    wait_for(&server, 0, 1);
    server.gate.open();
    assert_eq!(served.line(), "held");
    assert_eq!(server.requests("answered"), 4);
}
