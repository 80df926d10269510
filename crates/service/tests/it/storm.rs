//! Many clients that send requests, wait, pipeline, reset, close and send garbage at once, under every
//! discipline. In any order of events, everything is accounted for in the end and every answer is right.

use std::net::SocketAddr;
use std::thread;

use crate::lines::{Peer, Server, config};
use kendall_service::Config;
use kendall_station::Discipline;
use kendall_stats::random::{Purpose, stream};
use kendall_testbed::wait_until;
use rand::RngExt as _;

const CLIENTS: u64 = 8;
const VISITS: u64 = 30;

/// One client's visits: the number of requests with an answer, and with a rejection.
fn visit(server: SocketAddr, client: u64) -> (u64, u64) {
    let mut rng = stream(client, Purpose::Request, 0);
    let (mut answered, mut refused) = (0, 0);
    for _ in 0..VISITS {
        let mut peer = Peer::connect(server);
        let units = rng.random_range(0..200_000);
        let text = format!("work {units}\n");
        let mut expect = |line: &str| match line {
            "no" => refused += 1,
            line => {
                assert_eq!(line, format!("done {units}"));
                answered += 1;
            }
        };
        match rng.random_range(0..6) {
            0 | 1 => expect(&peer.ask(&text)),
            2 => {
                peer.send(&text.repeat(3));
                (0..3).for_each(|_| expect(&peer.line()));
            }
            3 => {
                peer.send(&text);
                peer.reset();
            }
            4 => peer.send(&text[..3]),
            _ => assert_eq!(peer.ask("nonsense\n"), ""),
        }
    }
    (answered, refused)
}

#[test]
fn everything_is_accounted_for_under_every_discipline() {
    for discipline in Discipline::ALL {
        let server = Server::new(Config { discipline, max_waiting: 2, ..config(2) });
        let address = server.address;
        let clients: Vec<_> = (0..CLIENTS).map(|i| thread::spawn(move || visit(address, i))).collect();
        let (answered, refused) = clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .fold((0, 0), |sum, visits| (sum.0 + visits.0, sum.1 + visits.1));
        wait_until("all connections are closed", || {
            server.metric("connections_accepted_total") == CLIENTS * VISITS
                && server.metric("connections_open") == 0
                && server.levels() == (0, 0)
        });
        let received = server.metric("requests_received_total");
        let ended = ["answered", "queue-full", "cancelled"].map(|outcome| server.requests(outcome));
        assert_eq!(received, ended.iter().sum::<u64>(), "{discipline}: {ended:?}");
        // Requests of clients that reset may have been answered or rejected before; the others have seen what is
        // counted.
        assert!(ended[0] >= answered && ended[1] >= refused, "{discipline}: {ended:?} {answered} {refused}");
        assert!(answered > 0);
    }
}
