//! The security claims of the packet layer, each shown on endpoints in virtual time.

use crate::net::attacker::{Attacker, message};
use crate::net::*;
use curvecp::packet::MAX_PACKET;
use curvecp::{Endpoint, Event, LongTermNonces, TransmitBuffer};
use proptest::prelude::*;
use rand::{SeedableRng, rngs::StdRng};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server and a hand-written client at `address(1)` that has received a Cookie.
fn with_cookie() -> (Net, Attacker, attacker::Parts) {
    with_cookie_of(server_config())
}

fn with_cookie_of(config: curvecp::ServerConfig) -> (Net, Attacker, attacker::Parts) {
    let (mut net, attacker) = (Net::new(config, 0), Attacker::new(7));
    let parts = cookie(&mut net, &attacker, address(1));
    (net, attacker, parts)
}

/// The Cookie that the server sends to this address.
fn cookie(net: &mut Net, attacker: &Attacker, from: SocketAddr) -> attacker::Parts {
    net.deliver(to_server(from, attacker.hello(1)));
    net.transmit();
    attacker.open_cookie(&net.log.last().unwrap().1.bytes)
}

fn to_server(from: SocketAddr, bytes: Vec<u8>) -> Datagram {
    Datagram { from, to: address(0), bytes }
}

#[test]
fn a_flood_of_hellos_costs_a_bounded_rate_of_answers_and_no_state() {
    let mut config = server_config();
    (config.hellos_per_s, config.hello_burst) = (100, 10);
    let mut net = Net::new(config, 1);
    let hello = Attacker::new(7).hello(1);
    for i in 0..50_000_u32 {
        net.now = Duration::from_micros(20) * i;
        let from = SocketAddr::from((i.wrapping_mul(0x9e37_79b9).to_be_bytes(), 53));
        net.deliver(to_server(from, hello.clone()));
        net.transmit();
    }
    assert!((100..=111).contains(&net.log.len()), "{} answers in one second", net.log.len());
    assert_eq!(net.new_connections(), []);
    let refusals = net.nodes[SERVER].endpoint.take_refusals();
    assert_eq!(refusals.total() as usize, 50_000 - net.log.len(), "each Hello is answered or counted");
    // The flood is over; a client is served as if nothing had been.
    let client = net.nodes[CLIENT].endpoint.connect(net.now, client_config()).unwrap();
    net.run(Duration::from_secs(3));
    assert!(net.nodes[CLIENT].events.contains(&Event::Connected(client)));
}

#[test]
fn a_flood_of_initiates_with_one_cookie_is_opened_at_a_bounded_rate() {
    let mut config = server_config();
    // At once, one network may open two.
    (config.hellos_per_s, config.hello_burst) = (100, 10);
    let (mut net, attacker, parts) = with_cookie_of(config);
    let (elsewhere, other) = (SocketAddr::from(([198, 51, 100, 1], 53)), Attacker::new(8));
    let others = cookie(&mut net, &other, elsewhere);
    let name = curvecp::DomainName::new("other.example").unwrap();
    let wrong = attacker::Parts { name, ..parts.clone() };
    for counter in 2..100 {
        // Other source addresses change nothing: the cookie has the one that counts.
        net.deliver(to_server(address(counter), attacker.initiate(counter.into(), &wrong)));
    }
    net.deliver(to_server(address(1), attacker.initiate(200, &parts)));
    net.transmit();
    assert_eq!(net.new_connections(), [], "no key agreement is left for this network");
    net.deliver(to_server(elsewhere, other.initiate(2, &others)));
    net.transmit();
    assert_eq!(net.new_connections().len(), 1, "another network has its share");
    net.now += Duration::from_secs(1);
    net.deliver(to_server(address(1), attacker.initiate(201, &parts)));
    net.transmit();
    assert_eq!(net.new_connections().len(), 2, "the owner of the cookie repeats its Initiate");
}

#[test]
fn a_client_that_is_refused_is_judged_once_per_cookie() {
    let judged = Arc::new(AtomicUsize::new(0));
    let mut config = server_config();
    let count = judged.clone();
    config.authorise = Some(Box::new(move |_, _| {
        count.fetch_add(1, Ordering::Relaxed);
        false
    }));
    let (mut net, attacker, parts) = with_cookie_of(config);
    for counter in 2..100 {
        net.deliver(to_server(address(1), attacker.initiate(counter, &parts)));
        net.run(Duration::from_millis(100));
    }
    assert_eq!((judged.load(Ordering::Relaxed), net.new_connections().len()), (1, 0));
}

/// Has no nonce, as on a full disk.
struct NoNonces;

impl LongTermNonces for NoNonces {
    fn next(&mut self) -> Option<[u8; 16]> {
        None
    }
}

#[test]
fn an_endpoint_without_nonces_is_silent_until_it_has_some() {
    for silent in [SERVER, CLIENT] {
        let mut net = Net::new(server_config(), 1);
        let server = (silent == SERVER).then(server_config);
        let rng = Box::new(StdRng::seed_from_u64(9));
        let new = Endpoint::new(Duration::ZERO, server, rng, Box::new(NoNonces));
        let usual = std::mem::replace(&mut net.nodes[silent].endpoint, new);
        let id = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
        net.run(Duration::from_secs(5));
        assert_eq!(net.new_connections(), []);
        assert!(net.sent_by(address(1)).iter().all(|datagram| datagram.bytes.starts_with(b"QvnQ5XlH")));
        if silent == SERVER {
            assert_eq!(net.sent_by(address(0)), []);
            net.nodes[SERVER].endpoint = usual;
            net.run(Duration::from_secs(30));
            assert!(net.nodes[CLIENT].events.contains(&Event::Connected(id)));
        }
    }
}

#[test]
fn unsent_cookies_are_bounded() {
    let mut net = Net::new(server_config(), 0);
    for i in 0..1000_u32 {
        let from = SocketAddr::from((i.wrapping_mul(0x9e37_79b9).to_be_bytes(), 53));
        net.deliver(to_server(from, Attacker::new(7).hello(1)));
    }
    net.transmit();
    assert_eq!(net.log.len(), 256);
}

#[test]
fn every_part_of_an_initiate_is_checked() {
    let spoiled: [fn(&mut attacker::Parts); 8] = [
        |parts| parts.cookie[0] ^= 1,
        |parts| parts.cookie[95] ^= 1,
        |parts| parts.identity = secret(9).public_key(),
        |parts| parts.vouched = secret(9).public_key(),
        |parts| parts.vouch_by = secret(9),
        |parts| parts.vouch_for = secret(9).public_key(),
        |parts| parts.name = curvecp::DomainName::new("Machine.example").unwrap(),
        |parts| parts.server_short = secret(9).public_key(),
    ];
    for (i, spoil) in spoiled.into_iter().enumerate() {
        let (mut net, attacker, mut parts) = with_cookie();
        let correct = parts.clone();
        spoil(&mut parts);
        net.deliver(to_server(address(1), attacker.initiate(2, &parts)));
        net.run(Duration::from_secs(1));
        assert_eq!((net.new_connections().len(), net.log.len()), (0, 1), "part {i}");
        // Nothing was spoiled for the owner of the cookie.
        net.deliver(to_server(address(1), attacker.initiate(3, &correct)));
        net.run(Duration::from_secs(1));
        assert_eq!(net.new_connections().len(), 1, "part {i}");
    }
}

#[test]
fn a_cookie_opens_no_connection_for_another_client() {
    let (mut net, _, parts) = with_cookie();
    let thief = Attacker::new(8);
    let stolen = attacker::Parts {
        vouched: thief.short.public_key(),
        vouch_by: thief.identity.clone(),
        identity: thief.identity.public_key(),
        ..parts
    };
    net.deliver(to_server(address(1), thief.initiate(2, &stolen)));
    net.run(Duration::from_secs(1));
    assert_eq!(net.new_connections(), []);
}

#[test]
fn an_initiate_opens_one_connection_however_often_it_is_replayed() {
    let (mut net, attacker, parts) = with_cookie();
    let initiate = attacker.initiate(2, &parts);
    net.deliver(to_server(address(1), initiate.clone()));
    net.run(Duration::from_millis(100));
    let id = net.new_connections()[0];
    assert_eq!(net.read(SERVER, id), b"attack");
    for _ in 0..100 {
        net.deliver(to_server(address(1), initiate.clone()));
        net.deliver(to_server(address(2), initiate.clone()));
    }
    net.nodes[SERVER].endpoint.forget(id).unwrap();
    // Also after the end of the connection, with any nonce, at any time while the cookie could be valid and after.
    for counter in 2..300 {
        net.deliver(to_server(address(2), initiate.clone()));
        net.deliver(to_server(address(1), attacker.initiate(counter, &parts)));
        net.deliver(to_server(address(2), attacker.hello(counter)));
        net.run(Duration::from_secs(1));
    }
    assert_eq!(net.new_connections().len(), 1);
    assert_eq!(net.bytes_to(address(2)) % 200, 0, "at most Cookies, once the key is forgotten");
}

#[test]
fn a_replayed_session_changes_nothing_during_and_after_the_connection() {
    let (mut net, client, server) = Net::connected(server_config());
    net.exchange(client, server);
    let captured: Vec<Datagram> = net.log.iter().map(|(_, datagram)| datagram.clone()).collect();
    let events = net.nodes.iter().map(|node| node.events.len()).collect::<Vec<_>>();
    for from in [None, Some(address(9))] {
        for datagram in captured.iter().chain(captured.iter().rev()) {
            let from = from.unwrap_or(datagram.from);
            net.deliver(Datagram { from, ..datagram.clone() });
        }
    }
    let sent = net.log.len();
    net.transmit();
    assert_eq!(net.log.len(), sent, "a replay is not answered");
    assert_eq!(net.nodes.iter().map(|node| node.events.len()).collect::<Vec<_>>(), events);
    assert_eq!(net.nodes[SERVER].endpoint.address(server), Some(address(1)));
    assert_eq!(net.read(SERVER, server), b"");
    assert_eq!(net.read(CLIENT, client), b"");
    net.exchange(client, server);

    net.nodes[SERVER].endpoint.forget(server).unwrap();
    for datagram in &captured {
        net.deliver(datagram.clone());
    }
    net.transmit();
    assert_eq!(net.new_connections().len(), 1);
}

#[test]
fn a_session_replayed_to_another_server_with_the_same_key_opens_nothing() {
    let (net, ..) = Net::connected(server_config());
    let captured = net.sent_by(address(1));
    let mut restarted = endpoint(77, Some(server_config()));
    for mut datagram in captured {
        restarted.handle_datagram(Duration::from_secs(1), datagram.from, &mut datagram.bytes);
    }
    assert_eq!(restarted.poll_event(), None);
}

/// A pair whose client has sent enough that its bursts are long.
fn warm() -> (Net, curvecp::ConnectionId, curvecp::ConnectionId) {
    let (mut net, client, server) = Net::connected(server_config());
    net.send(CLIENT, client, SERVER, server, &vec![0; 3_000_000]);
    (net, client, server)
}

#[test]
fn reordered_packets_are_accepted() {
    let (mut net, client, server) = warm();
    let data: Vec<u8> = (0..12_000_u32).map(|i| (i % 251) as u8).collect();
    net.write(CLIENT, client, &data);
    let sent = net.log.len();
    net.lose = Box::new(|datagram| datagram.from == address(1));
    net.transmit();
    let packets: Vec<Datagram> = net.log[sent..].iter().map(|(_, datagram)| datagram.clone()).collect();
    assert!(packets.len() >= 9, "{}", packets.len());
    for datagram in packets.into_iter().rev() {
        net.deliver(datagram);
    }
    assert_eq!(net.read(SERVER, server), data);
}

#[test]
fn a_cookie_of_a_man_in_the_middle_is_ignored() {
    let mut net = Net::new(server_config(), 1);
    net.lose = Box::new(|datagram| datagram.bytes.len() == 200);
    net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
    net.run(DELAY * 3);
    let cookie = net.log.last().unwrap().1.clone();
    // A server with another key, and a Cookie for another client, with the extensions of this connection.
    let mut fake = endpoint(5, Some(curvecp::ServerConfig { secret: secret(66), ..server_config() }));
    fake.handle_datagram(net.now, address(1), &mut net.log[0].1.bytes.clone());
    let mut buffer = TransmitBuffer::new(4);
    assert!(!fake.poll_transmit(net.now, &mut buffer));
    net.deliver(to_server(address(1), Attacker::new(7).hello(5)));
    net.transmit();
    let mut swapped = net.log.last().unwrap().1.clone();
    swapped.bytes[8..24].copy_from_slice(&cookie.bytes[8..24]);
    net.deliver(swapped);
    for bit in 0..cookie.bytes.len() * 8 {
        let mut forged = cookie.clone();
        forged.bytes[bit / 8] ^= 1 << (bit % 8);
        net.deliver(forged);
    }
    let sent = net.sent_by(address(1)).len();
    net.transmit();
    assert_eq!(net.sent_by(address(1)).len(), sent, "no data leaves");
    net.deliver(cookie);
    net.transmit();
    assert_eq!(net.sent_by(address(1)).len(), sent + 1);
}

#[test]
fn a_client_that_moves_keeps_its_connection() {
    let (mut net, client, server) = Net::connected(server_config());
    for host in 20..25 {
        net.nodes[CLIENT].address = address(host);
        net.exchange(client, server);
        assert_eq!(net.nodes[SERVER].endpoint.address(server), Some(address(host)));
        assert!(net.nodes[SERVER].events.contains(&Event::Moved(server, address(host))));
    }
    // Many bytes pass after the move: the new address is validated.
    net.send(SERVER, server, CLIENT, client, &[5; 300_000]);
}

#[test]
fn an_older_packet_from_elsewhere_does_not_move_the_path() {
    let (mut net, client, server) = Net::connected(server_config());
    net.write(CLIENT, client, b"late");
    let sent = net.log.len();
    net.lose = Box::new(|datagram| datagram.from == address(1));
    net.transmit();
    let held_back: Vec<Datagram> = net.log[sent..].iter().map(|(_, datagram)| datagram.clone()).collect();
    net.lose = Box::new(|_| false);
    net.run(Duration::from_secs(3));
    assert_eq!(net.read(SERVER, server), b"late");
    for datagram in held_back {
        net.deliver(Datagram { from: address(9), ..datagram });
    }
    assert_eq!(net.nodes[SERVER].endpoint.address(server), Some(address(1)));
}

#[test]
fn a_victim_gets_at_most_three_bytes_per_byte_until_it_answers() {
    // The Initiate comes from an address that the cookie was not sent to, and the server has much to say.
    let (mut net, attacker, parts) = with_cookie();
    let initiate = attacker.initiate(2, &parts);
    let received = initiate.len();
    net.deliver(to_server(address(9), initiate));
    net.transmit();
    let server = net.new_connections()[0];
    net.nodes[SERVER].endpoint.write(server, &[1; 100_000]).unwrap();
    net.run(Duration::from_secs(120));
    assert!(net.bytes_to(address(9)) <= 3 * received, "{} bytes", net.bytes_to(address(9)));
    assert!(net.bytes_to(address(9)) > 0);
}

#[test]
fn an_attacker_who_forwards_packets_from_a_victims_address_amplifies_at_most_threefold() {
    let (mut net, client, server) = Net::connected(server_config());
    net.exchange(client, server);
    net.nodes[SERVER].endpoint.write(server, &vec![1; 100_000]).unwrap();
    // All packets of the client arrive with the source address of the victim, who answers nothing.
    net.nodes[CLIENT].address = address(1);
    net.lose = Box::new(|datagram| datagram.from == address(1) || datagram.to == address(9));
    net.write(CLIENT, client, &[2; 3000]);
    let sent = net.log.len();
    net.transmit();
    let forwarded: Vec<Datagram> = net.log[sent..].iter().map(|(_, datagram)| datagram.clone()).collect();
    let forwarded: Vec<Datagram> =
        forwarded.into_iter().filter(|datagram| datagram.from == address(1)).collect();
    let received: usize = forwarded.iter().map(|datagram| datagram.bytes.len()).sum();
    for datagram in forwarded {
        net.deliver(Datagram { from: address(9), ..datagram });
    }
    net.run(Duration::from_secs(30));
    assert!(received > 3000);
    assert!(net.bytes_to(address(9)) <= 3 * received, "{} of {received} bytes", net.bytes_to(address(9)));
}

/// What a change of a captured packet may be.
#[derive(Clone, Debug)]
enum Mutation {
    Flip(prop::sample::Index),
    Truncate(prop::sample::Index),
    Extend(usize),
    Overwrite(prop::sample::Index, Vec<u8>),
    Random(Vec<u8>),
}

impl Mutation {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Flip(at) => {
                let bit = at.index(bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            Self::Truncate(at) => bytes.truncate(at.index(bytes.len())),
            Self::Extend(by) => bytes.extend(std::iter::repeat_n(0, *by)),
            Self::Overwrite(at, with) => {
                let at = at.index(bytes.len());
                let end = bytes.len().min(at + with.len());
                bytes[at..end].copy_from_slice(&with[..end - at]);
            }
            Self::Random(random) => *bytes = random.clone(),
        }
    }
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let index = any::<prop::sample::Index>;
    let bytes = |length| proptest::collection::vec(any::<u8>(), 1..length);
    prop_oneof![
        index().prop_map(Mutation::Flip),
        index().prop_map(Mutation::Truncate),
        (1usize..64).prop_map(Mutation::Extend),
        (index(), bytes(40)).prop_map(|(at, with)| Mutation::Overwrite(at, with)),
        bytes(MAX_PACKET + 100).prop_map(Mutation::Random),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is sent, an address that has shown nothing gets fewer bytes than came from it, and neither side of an
    /// established connection notices.
    #[test]
    fn forged_packets_change_nothing_and_are_not_amplified(
        mutations in proptest::collection::vec((any::<prop::sample::Index>(), mutation(), any::<bool>()), 1..60)
    ) {
        let (mut net, client, server) = Net::connected(server_config());
        net.exchange(client, server);
        let captured: Vec<Datagram> = net.log.iter().map(|(_, datagram)| datagram.clone()).collect();
        let events = net.nodes.iter().map(|node| node.events.len()).collect::<Vec<_>>();
        let (sent, mut from_stranger) = (net.log.len(), 0);
        for (which, mutation, spoofed) in mutations {
            let mut datagram = which.get(&captured).clone();
            mutation.apply(&mut datagram.bytes);
            if !spoofed {
                datagram.from = address(9);
            }
            let replies = net.bytes_to(address(9));
            if datagram.to == address(0) && datagram.from == address(9) {
                from_stranger = datagram.bytes.len();
            }
            net.deliver(datagram);
            net.transmit();
            prop_assert!(net.bytes_to(address(9)) - replies <= from_stranger * 200 / 224);
        }
        // Changed fields of a Hello that nothing protects, such as its zeros, make it no forgery: it gets its Cookie.
        prop_assert!(net.log[sent..].iter().all(|(_, datagram)| datagram.bytes.len() == 200));
        prop_assert_eq!(net.nodes.iter().map(|node| node.events.len()).collect::<Vec<_>>(), events);
        prop_assert_eq!(net.nodes[SERVER].endpoint.address(server), Some(address(1)));
        net.exchange(client, server);
    }
}

#[test]
fn datagrams_in_one_buffer_are_the_datagrams_one_by_one() {
    let (mut net, client, server) = warm();
    let data: Vec<u8> = (0..20_000_u32).map(|i| (i % 251) as u8).collect();
    net.write(CLIENT, client, &data);
    let mut buffer = TransmitBuffer::new(100);
    let endpoint = &mut net.nodes[CLIENT].endpoint;
    assert!(endpoint.poll_transmit(net.now, &mut buffer));
    let transmits: Vec<_> =
        buffer.transmits().map(|transmit| (transmit.segment, transmit.bytes.to_vec())).collect();
    assert!(transmits[0].1.len() >= 8 * transmits[0].0, "a batch for one system call");
    for (segment, mut bytes) in transmits {
        // One forged packet among them and a repeated one harm no other.
        let mut forged = bytes[..segment].to_vec();
        forged[segment - 1] ^= 1;
        let mut all = [&forged[..], &bytes[..segment], &bytes].concat();
        net.nodes[SERVER].endpoint.handle_datagrams(net.now, address(1), &mut all, segment);
        net.nodes[SERVER].endpoint.handle_datagrams(net.now, address(1), &mut bytes, segment);
    }
    let first = net.read(SERVER, server);
    assert!(first.len() >= 8 * 512 && data.starts_with(&first), "{} bytes", first.len());
    net.run(Duration::from_secs(2));
    assert_eq!([first, net.read(SERVER, server)].concat(), data);
}

#[test]
fn the_hand_written_message_is_understood() {
    let (mut net, attacker, mut parts) = with_cookie();
    parts.message = message(b"plain");
    net.deliver(to_server(address(1), attacker.initiate(2, &parts)));
    net.transmit();
    let id = net.new_connections()[0];
    assert_eq!(net.read(SERVER, id), b"plain");
}
