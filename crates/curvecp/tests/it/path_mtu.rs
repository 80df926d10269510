//! Messages longer than the reference's: on links that drop packets above a size, and what goes on the wire.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::net::*;
use crate::simulation::{LONGEST, Script, World};
use curvecp::{MessageConfig, Read, ServerConfig};

const S: Duration = Duration::from_secs(1);
/// Headers of IPv4, UDP and a client's packet.
const OVERHEAD: usize = 28 + 96;

/// A transfer over 20 Mbit/s and 20 ms from which `mtu` takes what is too long.
fn transfer(mtu: Vec<(Duration, u32)>, bytes: u64) -> World {
    let settings = "delay=10ms rate=20mbit queue=8m".parse().unwrap();
    let mut world = World::new([&settings, &settings], 1);
    (world.limits, world.mtu) = (LONGEST, mtu);
    world.connect(Default::default(), [Script::bulk(bytes), Script::silent()], 1);
    world
}

#[test]
fn a_sender_finds_the_longest_message_that_the_path_carries_and_takes_no_probe_for_congestion() {
    for mtu in (1_280..=1_500).step_by(20) {
        let mut world = transfer(vec![(Duration::ZERO, mtu)], 3_000_000);
        assert!(!world.run_until(60 * S));
        let [client, server] = &world.flows[0];
        assert_eq!((server.read, server.outcome), (3_000_000, Some(Read::Finished)));
        let stats = client.layer.stats();
        let fits = (mtu as usize - OVERHEAD).min(LONGEST[0]);
        assert_eq!(stats.longest_message, 1_088 + (fits - 1_088) / 32 * 32, "at {mtu}");
        assert_eq!((stats.lost, stats.spurious_events), (0, 0), "at {mtu}");
    }
}

#[test]
fn a_path_whose_mtu_shrinks_during_a_transfer_still_delivers() {
    for (seed, mtu) in (1_280..1_460).step_by(20).enumerate() {
        let shrinks = S + Duration::from_millis(37 * seed as u64);
        let mut world = transfer(vec![(Duration::ZERO, 1_500), (shrinks, mtu)], 10_000_000);
        world.run_until(S);
        assert_eq!(world.flows[0][0].layer.stats().longest_message, 1_344);
        assert!(!world.run_until(60 * S));
        let [client, server] = &world.flows[0];
        assert_eq!((server.read, server.outcome), (10_000_000, Some(Read::Finished)));
        assert_eq!(client.layer.stats().longest_message, 1_088 + (mtu as usize - OVERHEAD - 1_088) / 32 * 32);
        // 4.3 s at the rate of the link.
        assert!(server.outcome_at < 10 * S, "{mtu}: {:?}", server.outcome_at);
    }
}

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
    assert_eq!(longest(&net, SERVER, server), LONGEST[1]);
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
