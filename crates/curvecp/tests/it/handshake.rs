//! How a connection begins: addresses, names, keys, who is admitted and who is not.

use crate::net::*;
use curvecp::{CloseReason, DomainName, Error, Event, Extension, PublicKey};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(200);

#[test]
fn a_client_and_a_server_exchange_data_two_round_trips_after_the_hello() {
    let mut net = Net::new(server_config(), 1);
    let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
    net.write(CLIENT, client, b"first words");
    net.run(DELAY * 4);
    let events = &net.nodes[SERVER].events;
    let Event::NewConnection { id: server, client: key, address: from, capabilities, .. } = events[0] else {
        panic!("{events:?}")
    };
    assert_eq!((key, from, capabilities), (secret(2).public_key(), address(1), [0; 12]));
    assert!(net.nodes[CLIENT].events.contains(&Event::Connected(client)));
    assert_eq!(net.read(SERVER, server), b"first words");
    let lengths: Vec<_> = net.log[..2].iter().map(|(_, datagram)| datagram.bytes.len()).collect();
    assert_eq!(lengths, [224, 200]);
    assert_eq!(&net.log[2].1.bytes[..8], b"QvnQ5XlI");
    net.exchange(client, server);
    assert_eq!(net.nodes[CLIENT].endpoint.address(client), Some(address(0)));
}

#[test]
fn capabilities_travel_from_the_hello_through_the_cookie() {
    let mut net = Net::new(server_config(), 1);
    let config = curvecp::ClientConfig { capabilities: *b"capabilities", ..client_config() };
    net.nodes[CLIENT].endpoint.connect(Duration::ZERO, config).unwrap();
    net.run(DELAY * 4);
    let events = &net.nodes[SERVER].events;
    assert!(
        matches!(events[0], Event::NewConnection { capabilities, .. } if &capabilities == b"capabilities")
    );
}

/// Connects and expects that the server stays silent after the given number of its packets.
fn refused(server: curvecp::ServerConfig, client: curvecp::ClientConfig, answers: usize) {
    let mut net = Net::new(server, 1);
    let id = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client).unwrap();
    net.run(LONG);
    assert_eq!(net.sent_by(address(0)).len(), answers);
    assert_eq!(net.new_connections(), []);
    assert!(net.nodes[CLIENT].events.contains(&Event::Closed(id, CloseReason::NoAnswer)));
}

#[test]
fn a_server_is_silent_to_a_wrong_key() {
    refused(server_config(), curvecp::ClientConfig { server: secret(9).public_key(), ..client_config() }, 0);
}

#[test]
fn a_server_is_silent_to_a_wrong_extension() {
    refused(
        server_config(),
        curvecp::ClientConfig { server_extension: Extension([1; 16]), ..client_config() },
        0,
    );
}

#[test]
fn a_server_is_silent_to_a_wrong_domain_name_after_the_cookie() {
    let name = DomainName::new("other.example").unwrap();
    refused(server_config(), curvecp::ClientConfig { name, ..client_config() }, 1);
}

#[test]
fn a_server_is_silent_to_a_client_that_is_not_authorised() {
    let mut server = server_config();
    server.authorise = Some(Box::new(|client, from| *client != secret(2).public_key() || from != address(1)));
    refused(server, client_config(), 1);
}

#[test]
fn each_address_gets_a_hello_at_once_and_then_the_schedule_is_that_of_the_reference() {
    let mut net = Net::new(server_config(), 1);
    let addresses: Vec<_> = (10..13).map(address).collect();
    let config = curvecp::ClientConfig { addresses: addresses.clone(), ..client_config() };
    let id = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, config).unwrap();
    net.run(LONG);
    assert_eq!(net.log.len(), 10);
    for (i, pair) in net.log.windows(2).enumerate() {
        let wait = pair[1].0 - pair[0].0;
        if i < 2 {
            assert_eq!(wait, Duration::from_millis(250));
            continue;
        }
        let (wait, least) = (wait.as_secs_f64(), 1.5_f64.powi(i as i32 - 2));
        assert!((least..2.0 * least).contains(&wait), "Hello {i} waited {wait} s");
    }
    let mut tried: Vec<_> = net.log.iter().map(|(_, datagram)| datagram.to).collect();
    assert_eq!((&tried[..3], &tried[3..6]), (&tried[3..6], &tried[..3]));
    tried.truncate(3);
    tried.sort();
    assert_eq!(tried, addresses);
    assert!(net.nodes[CLIENT].events.contains(&Event::Closed(id, CloseReason::NoAnswer)));
}

#[test]
fn a_client_reaches_the_one_address_that_answers() {
    let mut net = Net::new(server_config(), 1);
    let addresses = [address(10), address(11), address(0), address(12)].to_vec();
    let id = net.nodes[CLIENT]
        .endpoint
        .connect(Duration::ZERO, curvecp::ClientConfig { addresses, ..client_config() });
    net.run(Duration::from_secs(1));
    assert_eq!(net.nodes[CLIENT].endpoint.address(id.unwrap()), Some(address(0)));
}

#[test]
fn a_client_takes_the_cookie_of_an_address_that_answers_after_the_next_was_tried() {
    let mut net = Net::new(server_config(), 1);
    net.delays = Box::new(|| vec![Duration::from_millis(200)]);
    let addresses = [address(10), address(0)].to_vec();
    let config = curvecp::ClientConfig { addresses, ..client_config() };
    let id = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, config).unwrap();
    net.run(Duration::from_secs(2));
    assert_eq!(net.nodes[CLIENT].endpoint.address(id), Some(address(0)));
    let tried = net.log.iter().filter(|(_, datagram)| datagram.bytes.len() == 224).count();
    assert_eq!(tried, 2, "the Cookie that took 400 ms was taken");
}

#[test]
fn a_client_goes_on_to_another_address_where_the_first_answers_hellos_alone() {
    let mut net = Net::new(server_config(), 2);
    net.nodes[2].endpoint = endpoint(7, Some(server_config()));
    let mut silent = None;
    net.lose = Box::new(move |datagram| {
        datagram.bytes.starts_with(b"QvnQ5XlI") && *silent.get_or_insert(datagram.to) == datagram.to
    });
    let config = curvecp::ClientConfig { addresses: vec![address(0), address(2)], ..client_config() };
    let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, config).unwrap();
    net.write(CLIENT, client, b"first words");
    net.run(Duration::from_secs(1));
    let silent = net.nodes[CLIENT].endpoint.address(client).unwrap();
    net.run(Duration::from_secs(29));
    assert!(net.nodes[CLIENT].events.contains(&Event::Connected(client)));
    let (server, other) = if silent == address(0) { (2, address(2)) } else { (SERVER, address(0)) };
    assert_eq!(net.nodes[CLIENT].endpoint.address(client), Some(other));
    let Event::NewConnection { id, .. } = net.nodes[server].events[0] else { panic!("no connection") };
    assert_eq!(net.read(server, id), b"first words");
}

#[test]
fn a_client_of_several_addresses_gives_up_in_time_where_none_answers_initiates() {
    let mut net = Net::new(server_config(), 2);
    net.nodes[2].endpoint = endpoint(7, Some(server_config()));
    net.lose = Box::new(|datagram| datagram.bytes.starts_with(b"QvnQ5XlI"));
    let addresses = vec![address(0), address(2), address(9)];
    let config = curvecp::ClientConfig { addresses, ..client_config() };
    let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, config).unwrap();
    net.write(CLIENT, client, b"first words");
    net.run(Duration::from_secs(31));
    assert!(net.nodes[CLIENT].events.contains(&Event::Closed(client, CloseReason::NoAnswer)));
    let mut tried: Vec<_> = net.log.iter().filter(|(_, one)| one.bytes.starts_with(b"QvnQ5XlI")).collect();
    tried.dedup_by_key(|(_, initiate)| initiate.to);
    assert_eq!(tried.len(), 2, "each server got Initiates");
}

#[test]
fn a_client_takes_a_cookie_only_from_the_address_it_tried() {
    let mut net = Net::new(server_config(), 1);
    net.lose = Box::new(|datagram| datagram.bytes.len() == 200);
    net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
    net.run(DELAY * 3);
    let cookie = net.log.last().unwrap().1.clone();
    net.deliver(Datagram { from: address(7), ..cookie.clone() });
    net.run(DELAY);
    assert_eq!(net.log.len(), 2);
    net.deliver(cookie);
    net.run(DELAY / 2);
    assert_eq!(&net.log.last().unwrap().1.bytes[..8], b"QvnQ5XlI");
}

#[test]
fn lost_hellos_cookies_and_initiates_are_repeated() {
    for lost in [&b"QvnQ5XlH"[..], b"RL3aNMXK", b"QvnQ5XlI", b"RL3aNMXM"] {
        let mut net = Net::new(server_config(), 1);
        let mut first = true;
        net.lose = Box::new(move |datagram| datagram.bytes.starts_with(lost) && std::mem::take(&mut first));
        let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
        net.run(Duration::from_secs(10));
        assert!(net.nodes[CLIENT].events.contains(&Event::Connected(client)), "{}", lost.escape_ascii());
        let server = net.new_connections();
        assert_eq!(server.len(), 1);
        net.exchange(client, server[0]);
        let counters: Vec<u64> = net
            .sent_by(address(1))
            .iter()
            .map(|datagram| {
                let at = match &datagram.bytes[..8] {
                    b"QvnQ5XlH" => 136,
                    b"QvnQ5XlI" => 168,
                    _ => 72,
                };
                u64::from_le_bytes(datagram.bytes[at..at + 8].try_into().unwrap())
            })
            .collect();
        assert!(counters.windows(2).all(|pair| pair[1] == pair[0] + 1), "each packet has a fresh nonce");
    }
}

#[test]
fn both_sides_take_their_first_round_trip_from_the_handshake() {
    let mut net = Net::new(server_config(), 1);
    let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
    // The Initiate has arrived, no Message has come back yet.
    net.run(DELAY * 3);
    let server = net.new_connections()[0];
    for (node, id) in [(CLIENT, client), (SERVER, server)] {
        assert_eq!(net.nodes[node].endpoint.layer(id).unwrap().stats().smoothed_rtt, 2 * DELAY);
    }
}

#[test]
fn connections_of_one_client_socket_are_distinguished_by_their_extensions() {
    let mut net = Net::new(server_config(), 1);
    let ids: Vec<_> = (0..20)
        .map(|_| net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap())
        .collect();
    for (i, id) in ids.iter().enumerate() {
        net.write(CLIENT, *id, &[i as u8; 3]);
    }
    net.run(Duration::from_secs(3));
    let mut words = Vec::new();
    for id in net.new_connections() {
        let word = net.read(SERVER, id);
        net.write(SERVER, id, &word);
        words.push(word);
    }
    net.run(Duration::from_secs(3));
    words.sort();
    assert_eq!(words, (0..20).map(|i| vec![i; 3]).collect::<Vec<_>>());
    for (i, id) in ids.iter().enumerate() {
        assert_eq!(net.read(CLIENT, *id), [i as u8; 3]);
    }
}

#[test]
fn mistakes_of_the_caller_are_errors() {
    let mut client = endpoint(1, None);
    let mut connect = |config| client.connect(Duration::ZERO, config);
    let config = client_config;
    assert_eq!(connect(curvecp::ClientConfig { addresses: vec![], ..config() }), Err(Error::AddressCount(0)));
    assert_eq!(
        connect(curvecp::ClientConfig { addresses: vec![address(0); 9], ..config() }),
        Err(Error::AddressCount(9))
    );
    assert_eq!(
        connect(curvecp::ClientConfig { server: PublicKey([0; 32]), ..config() }),
        Err(Error::WeakServerKey)
    );
    let fixed = || curvecp::ClientConfig { extension: Some(Extension([3; 16])), ..config() };
    let id = connect(fixed()).unwrap();
    assert_eq!(connect(fixed()), Err(Error::ExtensionInUse));
    client.forget(id).unwrap();
    assert_eq!(client.forget(id), Err(Error::UnknownConnection));
    assert_eq!(client.write(id, b""), Err(Error::UnknownConnection));
    let again = client.connect(Duration::ZERO, fixed()).unwrap();
    assert_ne!(again, id);
}

#[test]
fn a_full_server_replaces_the_client_that_was_silent_longest() {
    let mut server = server_config();
    server.max_connections = 3;
    server.evictable_after = Duration::from_secs(5);
    let mut net = Net::new(server, 5);
    let connect = |net: &mut Net, node: usize| {
        let id = net.nodes[node].endpoint.connect(net.now, client_config()).unwrap();
        net.run(Duration::from_secs(1));
        id
    };
    let first = connect(&mut net, 1);
    let second = connect(&mut net, 2);
    connect(&mut net, 3);
    let fourth = connect(&mut net, 4);
    assert_eq!(net.new_connections().len(), 3, "none was silent long enough");
    net.nodes[4].endpoint.forget(fourth).unwrap();
    net.run(Duration::from_secs(4));
    net.write(1, first, b"alive");
    net.run(Duration::from_secs(1));
    let fifth = connect(&mut net, 5);
    let admitted = net.new_connections();
    assert!(net.nodes[5].events.contains(&Event::Connected(fifth)));
    let closed: Vec<_> =
        net.nodes[SERVER].events.iter().filter(|event| matches!(event, Event::Closed(..))).collect();
    assert!(closed.contains(&&Event::Closed(admitted[1], CloseReason::Evicted)), "{closed:?}, {second:?}");
    assert!(!closed.contains(&&Event::Closed(admitted[0], CloseReason::Evicted)), "{closed:?}");
}
