//! Messages longer than the reference's on the wire.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::net::*;
use curvecp::{MessageConfig, ServerConfig};

const S: Duration = Duration::from_secs(1);
/// Moves data both ways, and returns the lengths of the packets from the client and from the server.
fn lengths(server: ServerConfig, client: MessageConfig) -> [BTreeSet<usize>; 2] {
    let mut net = Net::new(server, 1);
    let config = curvecp::ClientConfig { message: client, ..client_config() };
    let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, config).unwrap();
    net.run(S);
    let server = net.new_connections()[0];
    for bytes in [1, 200, 400, 700, 1_100, 1_300, 200_000] {
        net.send(CLIENT, client, SERVER, server, &vec![1; bytes]);
        net.send(SERVER, server, CLIENT, client, &vec![2; bytes]);
    }
    [CLIENT, SERVER].map(|node| net.sent_by(net.nodes[node].address).iter().map(|d| d.bytes.len()).collect())
}

#[test]
fn lengths_are_those_of_the_reference_and_one_more_that_only_a_peer_of_ours_sees() {
    let [client, server] = lengths(server_config(), MessageConfig::default());
    assert_eq!(Vec::from_iter(client), [224, 288, 416, 672, 736, 1184, 1440]);
    assert_eq!(Vec::from_iter(server), [200, 256, 384, 640, 1152, 1440]);
    let reference = || MessageConfig { feedback: false, ..MessageConfig::default() };
    let mut config = server_config();
    config.message = reference();
    for [client, server] in [lengths(server_config(), reference()), lengths(config, MessageConfig::default())]
    {
        assert_eq!((client.last(), server.last()), (Some(&1184), Some(&1152)));
    }
}

#[test]
fn a_peer_that_moves_gets_the_reference_s_lengths_until_its_new_path_is_known() {
    let (mut net, client, server) = Net::connected(server_config());
    net.send(SERVER, server, CLIENT, client, &vec![2; 500_000]);
    let longest = |net: &Net, node: usize, id| net.nodes[node].endpoint.layer(id).unwrap().longest_message();
    assert_eq!(longest(&net, SERVER, server), 1_376);
    // The new path carries the smallest MTU of IPv6 and no more.
    net.nodes[CLIENT].address = address(77);
    net.lose = Box::new(|datagram| datagram.bytes.len() + 48 > 1_280);
    net.nodes[CLIENT].endpoint.rebound();
    net.run(S);
    assert_eq!(longest(&net, SERVER, server), 1_088);
    let probes = |net: &Net| net.log.iter().filter(|(_, datagram)| datagram.bytes.len() > 1_184).count();
    let before = probes(&net);
    net.send(SERVER, server, CLIENT, client, &vec![3; 500_000]);
    assert!(probes(&net) - before <= 15, "{} probes", probes(&net) - before);
    assert!((1_088..=1_168).contains(&longest(&net, SERVER, server)));
}
