//! Crowds: thousands of idle connections, and thousands of requests at once.

use crate::peer::{Peer, check_that_others_are_served, request_for};
use crate::running::{options, run, with};
use kendall_testbed::{LIMIT, wait_until};
use rustix::process::{Resource, getrlimit};

/// Client and server are one process here, so each connection takes two file descriptors.
fn check_descriptors(connections: u64) {
    let limit = getrlimit(Resource::Nofile).maximum;
    assert!(
        limit.is_none_or(|limit| limit > 2 * connections + 100),
        "this test needs {} file descriptors; raise the hard limit with ulimit -Hn",
        2 * connections + 100
    );
}

#[test]
fn five_thousand_idle_connections_block_no_request() {
    const CROWD: u64 = 5_000;
    check_descriptors(CROWD);
    let server = run(with(options(), |config| {
        config.patience = LIMIT;
        config.request_deadline = LIMIT
    }));
    let idle: Vec<Peer> = (0..CROWD).map(|_| Peer::connect(server.address)).collect();
    wait_until("all are open", || server.metric("connections_open") == CROWD);
    for _ in 0..20 {
        check_that_others_are_served(server.address);
    }
    assert_eq!(server.requests("answered"), 20);
    drop(idle);
    wait_until("all are closed", || server.metric("connections_open") == 0);
    server.check_conservation();
}

/// All are sent before any is answered or read. Each gets its answer or a rejection, which is the answer 0.
#[test]
fn a_flood_is_answered_or_refused_and_every_request_is_accounted_for() {
    const FLOOD: u64 = 2_000;
    check_descriptors(FLOOD);
    let server = run(with(options(), |config| config.max_waiting = 500));
    let range = 50_000;
    let peers: Vec<(Peer, u64)> = (0..FLOOD)
        .map(|i| 1 + i * 23 % (range - 1))
        .map(|x| (Peer::send(server.address, &request_for(x, 0, range)), x))
        .collect();
    wait_until("all have arrived and there is room", || {
        server.metric("requests_received_total") == FLOOD && server.levels().0 < 500
    });
    check_that_others_are_served(server.address);
    let (mut answered, mut refused) = (0, 0);
    for (peer, x) in peers {
        match peer.answer() {
            0 => refused += 1,
            answer => {
                assert_eq!(answer, x);
                answered += 1;
            }
        }
    }
    assert_eq!(answered + refused, FLOOD);
    assert_eq!(server.requests("queue-full"), refused);
    assert_eq!(server.requests("answered"), answered + 1);
    assert!(answered >= 500, "the queue alone has a capacity of 500: {answered}");
    server.check_conservation();
}
