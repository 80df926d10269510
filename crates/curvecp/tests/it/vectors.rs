//! A session made with libsodium, packet by packet: ours opens theirs, and seals the same bytes.

use curvecp::packet::{
    ClientMessageHeader, CookieHeader, HelloHeader, InitiateHeader, Packet, ServerMessageHeader, prefix,
};
use curvecp::seal::DirectionKey;
use curvecp::{BoxKey, DomainName, Extension, PublicKey, SecretKey, TAG};

fn field(label: &str) -> Vec<u8> {
    let session = include_str!("../../testdata/session.txt");
    let line = session.lines().find_map(|line| line.strip_prefix(label)?.strip_prefix(' ')).expect(label);
    (0..line.len()).step_by(2).map(|i| u8::from_str_radix(&line[i..i + 2], 16).unwrap()).collect()
}

fn secret(label: &str) -> SecretKey {
    SecretKey::from_bytes(field(label).try_into().unwrap())
}

/// The key between two owners, which both derive alike.
fn key(a: &str, b: &str) -> BoxKey {
    let (a, b) = (secret(a), secret(b));
    let key = a.box_key(&b.public_key()).unwrap();
    let mut boxed = [1; TAG];
    b.box_key(&a.public_key()).unwrap().seal(&[0; 24], &mut boxed);
    assert!(key.open(&[0; 24], &mut boxed).is_some());
    key
}

fn nonce(prefix: &[u8], end: &[u8]) -> [u8; 24] {
    [prefix, end].concat().try_into().unwrap()
}

/// The extensions of the session, from its Hello: the server's, the client's.
fn extensions() -> (Extension, Extension) {
    let hello = field("hello");
    (Extension(hello[8..24].try_into().unwrap()), Extension(hello[24..40].try_into().unwrap()))
}

/// Opens a box and checks that sealing gives it again.
fn open(key: &BoxKey, nonce: [u8; 24], sealed: &mut [u8]) -> Vec<u8> {
    let original = sealed.to_vec();
    let text = key.open(&nonce, sealed).expect("the box is authentic").to_vec();
    key.seal(&nonce, sealed);
    assert_eq!(sealed, original);
    text
}

#[test]
fn the_hello() {
    let (mut packet, (to, from), client) =
        (field("hello"), extensions(), secret("client_short").public_key());
    let mut again = packet.clone();
    let Some(Packet::Hello(header, sealed)) = Packet::decode(&mut packet) else { panic!() };
    assert_eq!(header, HelloHeader { to, from, client, counter: 1 });
    let text = open(&key("client_short", "server"), nonce(prefix::HELLO, &1_u64.to_le_bytes()), sealed);
    assert_eq!(text, [0; 64]);
    again[..HelloHeader::LENGTH].fill(9);
    header.write(&mut again);
    assert_eq!(again, field("hello"));
}

#[test]
fn the_cookie_packet() {
    let (mut packet, (from, to)) = (field("cookie_packet"), extensions());
    let Some(Packet::Cookie(header, sealed)) = Packet::decode(&mut packet) else { panic!() };
    assert_eq!((header.to, header.from), (to, from));
    let text = open(&key("client_short", "server"), nonce(prefix::COOKIE, &header.nonce), sealed);
    assert_eq!(text[..32], secret("server_short").public_key().0);
    assert_eq!(text[32..], field("cookie"));
    packet[..CookieHeader::LENGTH].fill(9);
    header.write(&mut packet);
    assert_eq!(packet, field("cookie_packet"));
}

#[test]
fn the_initiate() {
    let (mut packet, (to, from), client) =
        (field("initiate"), extensions(), secret("client_short").public_key());
    let Some(Packet::Initiate(header, sealed)) = Packet::decode(&mut packet) else { panic!() };
    let cookie = field("cookie").try_into().unwrap();
    assert_eq!(header, InitiateHeader { to, from, client, cookie, counter: 2 });
    let text =
        open(&key("client_short", "server_short"), nonce(prefix::INITIATE, &2_u64.to_le_bytes()), sealed);
    assert_eq!(PublicKey(text[..32].try_into().unwrap()), secret("client").public_key());
    let mut vouch = text[48..96].to_vec();
    let vouched = open(&key("client", "server"), nonce(prefix::VOUCH, &text[32..48]), &mut vouch);
    assert_eq!(vouched, client.0);
    assert_eq!(&text[96..352], DomainName::new("machine.example").unwrap().as_bytes());
    assert_eq!(text[352..], field("message"));
    packet[..InitiateHeader::LENGTH].fill(9);
    header.write(&mut packet);
    assert_eq!(packet, field("initiate"));
}

#[test]
fn both_messages() {
    let (to_server, to_client) = extensions();
    let key = key("client_short", "server_short");
    let mut packet = field("client_message");
    let Some(Packet::ClientMessage(header, sealed)) = Packet::decode(&mut packet) else { panic!() };
    let client = secret("client_short").public_key();
    assert_eq!(header, ClientMessageHeader { to: to_server, from: to_client, client, counter: 3 });
    let text =
        DirectionKey::new(key.clone(), prefix::CLIENT_MESSAGE).open(3, sealed).expect("the box is authentic");
    assert_eq!(text, field("message"));
    DirectionKey::new(key.clone(), prefix::CLIENT_MESSAGE).seal(3, sealed);
    packet[..ClientMessageHeader::LENGTH].fill(9);
    header.write(&mut packet);
    assert_eq!(packet, field("client_message"));

    let mut packet = field("server_message");
    let Some(Packet::ServerMessage(header, sealed)) = Packet::decode(&mut packet) else { panic!() };
    assert_eq!(header, ServerMessageHeader { to: to_client, from: to_server, counter: 4 });
    let text =
        DirectionKey::new(key.clone(), prefix::SERVER_MESSAGE).open(4, sealed).expect("the box is authentic");
    assert_eq!(text, field("message"));
    DirectionKey::new(key, prefix::SERVER_MESSAGE).seal(4, sealed);
    packet[..ServerMessageHeader::LENGTH].fill(9);
    header.write(&mut packet);
    assert_eq!(packet, field("server_message"));
}
