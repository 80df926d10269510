//! The whole stack: two endpoints move data both ways and part in order, over links that lose, repeat and reorder.

use crate::net::*;
use curvecp::{CloseReason, ConnectionId, Event, Read};
use rand::{Rng, RngExt, SeedableRng, rngs::StdRng};
use std::time::Duration;

/// One end of a transfer: what it has still to send, what has arrived.
struct End {
    node: usize,
    id: ConnectionId,
    out: Vec<u8>,
    sent: usize,
    arrived: Vec<u8>,
    end: Option<Read>,
}

impl End {
    fn new(node: usize, id: ConnectionId, out: Vec<u8>) -> Self {
        Self { node, id, out, sent: 0, arrived: Vec::new(), end: None }
    }

    /// Writes and reads what is possible; ends the stream after the last byte.
    fn work(&mut self, net: &mut Net) {
        let endpoint = &mut net.nodes[self.node].endpoint;
        if self.sent < self.out.len() {
            self.sent += endpoint.write(self.id, &self.out[self.sent..]).unwrap();
            if self.sent == self.out.len() {
                endpoint.finish(self.id).unwrap();
            }
        }
        let mut part = [0; 10_000];
        while self.end.is_none() {
            match endpoint.read(self.id, &mut part).unwrap() {
                Read::Bytes(n) => self.arrived.extend_from_slice(&part[..n]),
                Read::Blocked => break,
                end => self.end = Some(end),
            }
        }
    }
}

fn random_bytes(rng: &mut StdRng, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    rng.fill_bytes(&mut bytes);
    bytes
}

/// Moves this much each way and returns the virtual time until both ends have everything.
fn transfer(net: &mut Net, client: ConnectionId, server: ConnectionId, bytes: [usize; 2]) -> Duration {
    let (mut rng, start) = (StdRng::seed_from_u64(11), net.now);
    let (question, answer) = (random_bytes(&mut rng, bytes[0]), random_bytes(&mut rng, bytes[1]));
    let mut ends = [End::new(CLIENT, client, question.clone()), End::new(SERVER, server, answer.clone())];
    while ends.iter().any(|end| end.end.is_none()) {
        ends.iter_mut().for_each(|end| end.work(net));
        net.run(Duration::from_millis(1));
        assert!(net.now - start < Duration::from_secs(600), "the transfer stalls");
    }
    let took = net.now - start;
    assert!(ends[0].arrived == answer && ends[1].arrived == question);
    assert_eq!([ends[0].end, ends[1].end], [Some(Read::Finished); 2]);
    took
}

/// Both sides learn that the connection is over, and then nothing more is sent.
fn parts_in_order(net: &mut Net, client: ConnectionId, server: ConnectionId) {
    net.run(Duration::from_secs(120));
    for (node, id) in [(CLIENT, client), (SERVER, server)] {
        let closed = Event::Closed(id, CloseReason::Finished);
        assert_eq!(net.nodes[node].events.iter().filter(|event| **event == closed).count(), 1);
        assert_eq!(net.nodes[node].endpoint.address(id), None);
        net.nodes[node].endpoint.forget(id).unwrap();
    }
    let sent = net.log.len();
    net.run(Duration::from_secs(300));
    assert_eq!(net.log.len(), sent);
    assert_eq!(net.nodes[CLIENT].endpoint.next_deadline(), None);
}

#[test]
fn data_moves_both_ways_and_both_sides_part_in_order() {
    let (mut net, client, server) = Net::connected(server_config());
    let took = transfer(&mut net, client, server, [1_000_000, 2_000_000]);
    // A link without losses and limits: the window doubles each round trip of 20 ms.
    assert!(took < DELAY * 100, "{took:?}");
    parts_in_order(&mut net, client, server);
}

#[test]
fn links_that_lose_repeat_and_reorder_deliver_every_byte_once() {
    for seed in 0..8 {
        let mut net = Net::new(server_config(), 1);
        let mut rng = StdRng::seed_from_u64(seed);
        let loss = f64::from(u32::try_from(seed).unwrap()) / 100.0;
        net.delays = Box::new(move || {
            let copies = if rng.random_bool(loss) { 0 } else { 1 + usize::from(rng.random_bool(0.05)) };
            (0..copies).map(|_| DELAY + Duration::from_micros(rng.random_range(0..3000))).collect()
        });
        let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
        net.run(Duration::from_secs(20));
        let server = net.new_connections();
        assert_eq!(server.len(), 1, "seed {seed}");
        transfer(&mut net, client, server[0], [100_000, 200_000]);
        parts_in_order(&mut net, client, server[0]);
    }
}

#[test]
fn a_client_that_moves_all_the_time_gets_all_its_data() {
    let (mut net, client, server) = Net::connected(server_config());
    let (mut answer, mut end) =
        (End::new(SERVER, server, vec![3; 5_000_000]), End::new(CLIENT, client, vec![4; 1000]));
    // So that the transfer spans several moves.
    let mut bytes = 0;
    net.lose = Box::new(move |datagram| {
        bytes += datagram.bytes.len();
        bytes % 100_000 < datagram.bytes.len()
    });
    let mut moves = 0_u8;
    while end.end.is_none() {
        net.nodes[CLIENT].address = address(1 + moves % 100);
        net.nodes[CLIENT].endpoint.rebound();
        moves = moves.wrapping_add(1);
        for _ in 0..100 {
            answer.work(&mut net);
            end.work(&mut net);
            net.run(Duration::from_millis(5));
        }
        assert!(net.now < Duration::from_secs(600), "the transfer stalls after {} bytes", end.arrived.len());
    }
    assert!(moves > 5, "{moves}");
    assert!(end.arrived == answer.out, "{:?} after {} bytes", end.end, end.arrived.len());
}

/// Seed 5774 of the simulated endpoints: the server asked an address again and again that its client had left.
#[test]
fn a_client_that_moves_after_its_end_shows_its_server_that_all_arrived() {
    for feedback in [false, true] {
        let mut config = server_config();
        config.message.feedback = feedback;
        let (mut net, client, server) = Net::connected(config);
        net.nodes[CLIENT].endpoint.finish(client).unwrap();
        net.run(Duration::from_secs(1));
        net.lose = Box::new(|datagram| datagram.from == address(1));
        net.write(SERVER, server, b"the last answer");
        net.nodes[SERVER].endpoint.finish(server).unwrap();
        net.run(Duration::from_millis(100));
        assert_eq!(net.read(CLIENT, client), b"the last answer");
        net.nodes[CLIENT].address = address(77);
        net.nodes[CLIENT].endpoint.rebound();
        parts_in_order(&mut net, client, server);
    }
}

#[test]
fn an_aborted_stream_reads_as_failed() {
    let (mut net, client, server) = Net::connected(server_config());
    net.nodes[CLIENT].endpoint.abort(client).unwrap();
    net.run(Duration::from_secs(1));
    assert_eq!(net.nodes[SERVER].endpoint.read(server, &mut [0; 10]), Ok(Read::Failed));
}

#[test]
fn a_server_that_vanishes_is_noticed() {
    let (mut net, client, server) = Net::connected(server_config());
    net.nodes[SERVER].endpoint.forget(server).unwrap();
    net.write(CLIENT, client, b"is anyone there");
    net.run(Duration::from_secs(200));
    let closed = |event: &Event| matches!(event, Event::Closed(id, CloseReason::Failed(_)) if *id == client);
    assert!(net.nodes[CLIENT].events.iter().any(closed), "{:?}", net.nodes[CLIENT].events);
    assert_eq!(net.nodes[CLIENT].endpoint.read(client, &mut [0; 10]), Ok(Read::Failed));
    assert_eq!(net.nodes[CLIENT].endpoint.write(client, b"more"), Ok(0));
}

#[test]
fn a_stream_that_the_peer_stops_reading_ends_in_order() {
    let (mut net, client, server) = Net::connected(server_config());
    let mut talker = End::new(CLIENT, client, vec![5; 20_000_000]);
    net.nodes[SERVER].endpoint.finish(server).unwrap();
    net.nodes[SERVER].endpoint.stop_reading(server).unwrap();
    while talker.sent < talker.out.len() || talker.end.is_none() {
        talker.work(&mut net);
        net.run(Duration::from_millis(5));
        assert!(net.now < Duration::from_secs(600), "the transfer stalls after {} bytes", talker.sent);
    }
    assert_eq!(net.nodes[SERVER].endpoint.read(server, &mut [0; 10]), Ok(Read::Blocked));
    parts_in_order(&mut net, client, server);
}
