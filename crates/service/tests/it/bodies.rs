//! Streamed bodies: into a handler's sink during the work, and out of it to each client at its own pace.

use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread::sleep;
use std::time::Duration;

use kendall_service::Config;
use kendall_testbed::wait_until;

use crate::lines::config;
use crate::stores::{self, Peer, Server, bytes};

#[test]
fn a_body_of_any_length_in_any_pieces_comes_back_and_the_connection_goes_on() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(&server);
    for (length, piece) in [(0, 1), (1, 1), (700, 64), (5_000, 1), (3_000_000, 65_537)] {
        for verb in ["put", "work"] {
            let body = bytes(length);
            let mut all = format!("{verb} {length}\n").into_bytes();
            all.extend(&body);
            all.extend(b"put 3\nxyz");
            for part in all.chunks(piece) {
                peer.send(part);
            }
            assert_eq!(peer.take(length), body);
            assert_eq!(peer.take(3), b"xyz");
        }
    }
    // An answer is counted after it was passed on.
    wait_until("all memory is released", || {
        server.metric("body_bytes_total") == server.metric("stream_bytes_total")
    });
}

/// The worker's part is long over, the client's is not; then the reverse.
#[test]
fn the_work_waits_for_no_body_and_holds_no_worker_for_one() {
    let server = Server::new(config(1));
    let (mut slow, mut quick) = (Peer::connect(&server), Peer::connect(&server));
    slow.send(b"work 10\nhalf ");
    wait_until("its work is done", || server.requests("answered") == 1);
    quick.send(b"work 2\nab");
    assert_eq!(quick.take(2), b"ab");
    slow.send(b"there");
    assert_eq!(slow.take(10), b"half there");
    slow.send(b"hold 4\nab");
    wait_until("it is served before it is there", || server.chunks() > 0);
    slow.send(b"cd");
    server.gate.open();
    assert_eq!(slow.take(4), b"abcd");
}

#[test]
fn a_client_that_sends_less_than_announced_frees_its_worker() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(&server);
    peer.send(b"hold 10\nhalf");
    wait_until("it is served", || server.chunks() > 0);
    peer.0.shutdown(Shutdown::Write).unwrap();
    wait_until("the worker is free", || server.levels() == (0, 0));
    wait_until("it is counted", || server.closed("incomplete") == 1);
    assert_eq!((server.requests("cancelled"), server.truncated()), (1, 1));
    assert_eq!(peer.rest().unwrap(), b"");
    let vanished = Peer::connect(&server);
    (&vanished.0).write_all(b"hold 10\nhalf").unwrap();
    wait_until("it is served", || server.levels() == (0, 1));
    vanished.reset();
    wait_until("the worker is free again", || server.levels() == (0, 0));
    wait_until("it is counted as gone", || server.closed("reset") == 1);
}

#[test]
fn a_slow_body_is_awaited_and_one_that_trickles_is_not() {
    let patience = Duration::from_secs(1);
    let server = Server::new(Config { patience, ..config(1) });
    let (mut slow, mut trickling) = (Peer::connect(&server), Peer::connect(&server));
    const PIECE: usize = 64 * 1024;
    let body = bytes(10 * PIECE);
    slow.send(format!("work {}\n", body.len()).as_bytes());
    trickling.send(b"work 1000000\n");
    for piece in body.chunks(PIECE) {
        sleep(patience / 5);
        slow.send(piece);
        let _ = (&trickling.0).write_all(b"x");
    }
    assert_eq!(slow.take(body.len()), body, "though it took twice the patience");
    wait_until("the other is disconnected", || server.closed("deadline") == 1);
    assert_eq!(server.truncated(), 1);
}

#[test]
fn a_body_that_is_of_no_use_any_more_is_dropped_and_the_connection_goes_on() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(&server);
    peer.send(b"vain 1000000\n");
    assert_eq!(peer.take(3), b"no\n", "before the body is there");
    peer.send(&bytes(1_000_000));
    peer.send(b"put 2\nok");
    assert_eq!(peer.take(2), b"ok");
}

#[test]
fn a_body_without_a_place_is_refused_and_costs_only_its_connection() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(&server);
    let body = bytes(2 * stores::MOST);
    peer.send(format!("hold {}\n", body.len()).as_bytes());
    peer.send(&body);
    assert_eq!(peer.rest().unwrap(), b"refused\n");
    wait_until("it is counted", || server.closed("no-place") == 1);
    assert_eq!((server.requests("cancelled"), server.levels()), (1, (0, 0)));
}

#[test]
fn a_rejected_client_reads_the_rejection_after_sending_all() {
    let server = Server::new(Config { max_waiting: 0, ..config(1) });
    let mut held = Peer::connect(&server);
    held.send(b"hold 0\n");
    wait_until("the station is full", || server.levels() == (0, 1));
    let mut late = Peer::connect(&server);
    let body = bytes(stores::MOST);
    late.send(format!("work {}\n", body.len()).as_bytes());
    late.send(&body);
    assert_eq!(late.take(8), b"refused\n");
    server.gate.open();
}

#[test]
fn requests_that_ask_the_same_are_served_once_and_keep_their_bodies() {
    let server = Server::new(config(2));
    let mut peers: Vec<Peer> = (0..3).map(|_| Peer::connect(&server)).collect();
    for (peer, body) in peers.iter_mut().zip([b"aa", b"bb", b"cc"]) {
        peer.send(b"same 2\n");
        peer.send(body);
    }
    wait_until("all are there", || server.metric("requests_joined_total") == 2);
    server.gate.open();
    for (peer, body) in peers.iter_mut().zip([b"aa", b"bb", b"cc"]) {
        assert_eq!(peer.take(2), body);
    }
}

/// Rows of a request are there during its work; a request that joins later reads them from the first.
#[test]
fn an_answer_begins_before_its_work_is_over() {
    let server = Server::new(config(1));
    let (mut first, mut second) = (Peer::connect(&server), Peer::connect(&server));
    first.send(b"rows 500\n");
    assert_eq!(first.take(8), 0u64.to_be_bytes());
    second.send(b"rows 500\n");
    assert_eq!(second.take(16)[8..], 1u64.to_be_bytes());
    assert_eq!(server.levels(), (1, 1), "the work is not over");
    server.gate.open();
    let rows = |from: u64| -> Vec<u8> { (from..500).flat_map(u64::to_be_bytes).collect() };
    assert_eq!((first.take(499 * 8), second.take(498 * 8)), (rows(1), rows(2)));
    // The rows are there a moment before the end of the work is counted.
    wait_until("both are counted", || server.requests("answered") == 2);
    assert_eq!(server.metric("requests_joined_total"), 1);
    first.send(b"put 2\nok");
    assert_eq!(first.take(2), b"ok", "the connection goes on");
}

/// The stream is larger than all socket buffers together.
#[test]
fn a_slow_reader_holds_no_worker_and_little_memory() {
    const ROWS: u64 = 4_000_000;
    let server = Server::new(config(1));
    server.gate.open();
    let (mut slow, mut other) = (Peer::connect(&server), Peer::connect(&server));
    slow.send(format!("rows {ROWS}\n").as_bytes());
    wait_until("its work is done", || server.requests("answered") == 1);
    other.send(b"work 2\nab");
    assert_eq!(other.take(2), b"ab");
    sleep(Duration::from_millis(100));
    assert!(
        server.rows_made() < ROWS / 2,
        "{} rows were made, although no client read them",
        server.rows_made()
    );
    let all = slow.take(ROWS as usize * 8);
    assert_eq!(all[all.len() - 8..], (ROWS - 1).to_be_bytes());
}

#[test]
fn a_client_that_leaves_a_stream_ends_its_work() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(&server);
    peer.send(b"rows 500\n");
    peer.take(8);
    peer.reset();
    wait_until("the worker is free", || server.levels() == (0, 0));
    assert_eq!(server.requests("cancelled"), 1);
}

/// Otherwise a client would take the part for the whole.
#[test]
fn an_answer_that_cannot_go_on_ends_with_a_reset() {
    let server = Server::new(config(1));
    let mut peer = Peer::connect(&server);
    peer.send(b"crash 0\n");
    assert_eq!(peer.take(8), 0u64.to_be_bytes());
    server.gate.open();
    assert_eq!(peer.rest().unwrap_err().kind(), ErrorKind::ConnectionReset);
    wait_until("it is counted", || server.closed("cut-short") == 1);
    assert_eq!(server.requests("crashed"), 1);
}

#[test]
fn shutdown_after_its_grace_cuts_bodies_and_streams() {
    let server = Server::new(Config { grace: Duration::from_millis(50), ..config(2) });
    let (mut stream, mut body) = (Peer::connect(&server), Peer::connect(&server));
    stream.send(b"rows 500\n");
    stream.take(8);
    body.send(b"hold 100\nhalf");
    wait_until("both are served", || server.levels() == (0, 2));
    server.shut_down();
    assert_eq!(stream.rest().unwrap_err().kind(), ErrorKind::ConnectionReset);
    let mut text = Vec::new();
    let _ = body.0.read_to_end(&mut text);
    assert_eq!(text, b"refused\n");
}
