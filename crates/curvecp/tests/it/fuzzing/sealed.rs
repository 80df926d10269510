//! What is behind the boxes: an attacker who has keys sends any content inside each of the five packets.

use super::recorded;
use crate::net::attacker::{Attacker, Parts, message};
use crate::net::{CLIENT, DELAY, Datagram, Net, SERVER, address, client_config, secret, server_config};
use curvecp::packet::{
    ClientMessageHeader, CookieHeader, HelloHeader, InitiateHeader, Packet, ServerMessageHeader, prefix,
};
use curvecp::{DomainName, PublicKey, SecretKey, TAG};
use kendall_testbed::fuzz::Script;
use std::time::Duration;

/// The first byte chooses the packet, the rest is what it holds.
pub(super) fn sealed(input: &[u8]) {
    let mut script = Script(input);
    match script.number(1) % 5 {
        0 => hello(&mut script),
        1 => initiate(&mut script),
        2 => client_messages(&mut script),
        3 => cookie(&mut script),
        _ => server_messages(&mut script),
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let of = |kind: u8, content: &[u8]| [&[kind], content].concat();
    let framed = |message: &[u8]| [&[message.len() as u8 / 16], message].concat();
    let text = [&[0; 16][..], &recorded("message")].concat();
    vec![
        of(0, &[0; 64]),
        of(1, &text),
        of(2, &framed(&message(b"data"))),
        of(3, &[1; 128]),
        of(4, &framed(&message(b"data"))),
    ]
}

fn nonce(prefix: &[u8], end: &[u8]) -> [u8; 24] {
    [prefix, end].concat().try_into().unwrap()
}

fn to_server(bytes: Vec<u8>) -> Datagram {
    Datagram { from: address(7), to: address(0), bytes }
}

/// A Hello with any content is answered by one Cookie.
fn hello(script: &mut Script<'_>) {
    let (mut net, attacker) = (Net::new(server_config(), 0), Attacker::new(7));
    let mut packet = attacker.hello(5);
    let key = attacker.short.box_key(&secret(1).public_key()).unwrap();
    packet[HelloHeader::LENGTH + TAG..].copy_from_slice(&script.array::<64>());
    key.seal(&nonce(prefix::HELLO, &5_u64.to_le_bytes()), &mut packet[HelloHeader::LENGTH..]);
    net.deliver(to_server(packet));
    net.run(DELAY);
    assert_eq!(net.bytes_to(address(7)), 200);
}

/// A server with a Cookie given to the attacker.
fn greeted() -> (Net, Attacker, Parts) {
    let (mut net, attacker) = (Net::new(server_config(), 0), Attacker::new(7));
    net.deliver(to_server(attacker.hello(1)));
    net.transmit();
    let parts = attacker.open_cookie(&net.log[0].1.bytes);
    (net, attacker, parts)
}

/// An Initiate of which each part is right or anything.
fn initiate(script: &mut Script<'_>) {
    let (mut net, attacker, mut parts) = greeted();
    let wrong = script.number(1);
    if wrong & 1 != 0 {
        parts.identity = PublicKey(script.array());
    }
    if wrong & 2 != 0 {
        parts.vouched = PublicKey(script.array());
    }
    if wrong & 4 != 0 {
        parts.cookie = script.array();
    }
    if wrong & 8 != 0 {
        let name: String = script.bytes(20).iter().map(|byte| char::from(byte & 127)).collect();
        parts.name = DomainName::new(&name).unwrap_or(parts.name);
    }
    let length = (16 * (script.number(1) as usize % 45)).min(1184 - 544);
    parts.message = script.bytes(length).to_vec();
    parts.message.resize(length, 0);
    let is_right = attacker.identity.public_key() == parts.identity;
    net.deliver(to_server(attacker.initiate(2, &parts)));
    net.run(Duration::from_secs(5));
    if wrong & 1 != 0 && !is_right {
        assert_eq!(net.new_connections(), [], "a vouch of another key opens no connection");
    }
    let received = 224 + InitiateHeader::LENGTH + 368 + length;
    assert!(net.bytes_to(address(7)) <= 200 + 3 * received);
}

/// Messages of any content on an open connection, of which each has its length in blocks of 16 bytes first.
fn client_messages(script: &mut Script<'_>) {
    let (mut net, attacker, parts) = greeted();
    net.deliver(to_server(attacker.initiate(2, &parts)));
    let key = attacker.short.box_key(&parts.server_short).unwrap();
    for counter in 3..40_u64 {
        let Some(blocks) = script.byte() else { break };
        let length = 16 * usize::from(blocks % 68 + 1);
        let mut packet = vec![0; ClientMessageHeader::LENGTH + TAG + length];
        let (to, from, client) = (crate::net::EXTENSION, attacker.extension, attacker.short.public_key());
        ClientMessageHeader { to, from, client, counter }.write(&mut packet);
        let text = script.bytes(length);
        packet[ClientMessageHeader::LENGTH + TAG..][..text.len()].copy_from_slice(text);
        let end = nonce(prefix::CLIENT_MESSAGE, &counter.to_le_bytes());
        key.seal(&end, &mut packet[ClientMessageHeader::LENGTH..]);
        net.deliver(to_server(packet));
        net.run(DELAY);
        for id in net.new_connections() {
            net.read(SERVER, id);
        }
    }
    net.run(Duration::from_secs(100));
}

/// A client that has sent its Hello, which a server of the attacker answers with this Cookie text.
fn answered(text: &[u8; 128]) -> (Net, curvecp::ConnectionId, HelloHeader) {
    let mut net = Net::new(server_config(), 1);
    let id = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
    net.lose = Box::new(|_| true);
    net.transmit();
    let mut hello = net.log[0].1.bytes.clone();
    let Some(Packet::Hello(header, _)) = Packet::decode(&mut hello) else { panic!("not a Hello") };
    let mut packet = vec![0; 200];
    CookieHeader { to: header.from, from: header.to, nonce: [9; 16] }.write(&mut packet);
    packet[CookieHeader::LENGTH + TAG..].copy_from_slice(text);
    let key = secret(1).box_key(&header.client).unwrap();
    key.seal(&nonce(prefix::COOKIE, &[9; 16]), &mut packet[CookieHeader::LENGTH..]);
    net.deliver(Datagram { from: address(0), to: address(1), bytes: packet });
    (net, id, header)
}

/// A Cookie with any content.
fn cookie(script: &mut Script<'_>) {
    let (mut net, _, _) = answered(&script.array());
    net.run(Duration::from_secs(40));
}

/// Messages of any content from a server that has its key.
fn server_messages(script: &mut Script<'_>) {
    let short = SecretKey::from_bytes([8; 32]);
    let mut text = [0; 128];
    text[..32].copy_from_slice(&short.public_key().0);
    let (mut net, id, hello) = answered(&text);
    net.write(CLIENT, id, &[3; 700]);
    net.run(DELAY);
    let key = short.box_key(&hello.client).unwrap();
    for counter in 3..40_u64 {
        let Some(blocks) = script.byte() else { break };
        let length = 16 * usize::from(blocks % 68 + 1);
        let mut packet = vec![0; ServerMessageHeader::LENGTH + TAG + length];
        ServerMessageHeader { to: hello.from, from: hello.to, counter }.write(&mut packet);
        let text = script.bytes(length);
        packet[ServerMessageHeader::LENGTH + TAG..][..text.len()].copy_from_slice(text);
        let end = nonce(prefix::SERVER_MESSAGE, &counter.to_le_bytes());
        key.seal(&end, &mut packet[ServerMessageHeader::LENGTH..]);
        net.deliver(Datagram { from: address(0), to: address(1), bytes: packet });
        net.run(DELAY);
        net.read(CLIENT, id);
    }
    net.run(Duration::from_secs(100));
}
