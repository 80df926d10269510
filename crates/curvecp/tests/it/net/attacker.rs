//! A client written by hand from the published packet formats: it can send what no correct client sends.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

use super::{EXTENSION, NAME, secret};
use curvecp::packet::{HelloHeader, InitiateHeader, Packet, prefix};
use curvecp::{BoxKey, DomainName, Extension, PublicKey, SecretKey, TAG};

pub struct Attacker {
    pub short: SecretKey,
    pub identity: SecretKey,
    pub extension: Extension,
    hello_key: BoxKey,
}

/// What an Initiate is made of, to be spoiled part by part.
#[derive(Clone)]
pub struct Parts {
    pub cookie: [u8; 96],
    pub server_short: PublicKey,
    pub identity: PublicKey,
    pub vouched: PublicKey,
    pub vouch_by: SecretKey,
    pub vouch_for: PublicKey,
    pub name: DomainName,
    pub message: Vec<u8>,
}

fn nonce(prefix: &[u8], end: &[u8]) -> [u8; 24] {
    [prefix, end].concat().try_into().unwrap()
}

impl Attacker {
    pub fn new(seed: u8) -> Self {
        Self::with_short(SecretKey::from_bytes([seed; 32]), seed)
    }

    /// One of many clients, each with its own short-term key.
    pub fn numbered(number: u32) -> Self {
        let mut short = [7; 32];
        short[8..12].copy_from_slice(&number.to_le_bytes());
        Self::with_short(SecretKey::from_bytes(short), 7)
    }

    fn with_short(short: SecretKey, seed: u8) -> Self {
        let hello_key = short.box_key(&secret(1).public_key()).unwrap();
        Self { short, identity: secret(seed.wrapping_add(100)), extension: Extension([seed; 16]), hello_key }
    }

    pub fn hello(&self, counter: u64) -> Vec<u8> {
        let mut packet = vec![0; 224];
        let (to, from, client) = (EXTENSION, self.extension, self.short.public_key());
        HelloHeader { to, from, client, counter }.write(&mut packet);
        self.hello_key.seal(&nonce(prefix::HELLO, &counter.to_le_bytes()), &mut packet[144..]);
        packet
    }

    /// Opens a Cookie packet and prepares a correct Initiate with it.
    pub fn open_cookie(&self, packet: &[u8]) -> Parts {
        let mut packet = packet.to_vec();
        let Some(Packet::Cookie(header, sealed)) = Packet::decode(&mut packet) else {
            panic!("not a Cookie")
        };
        let text =
            self.hello_key.open(&nonce(prefix::COOKIE, &header.nonce), sealed).expect("the Cookie is ours");
        Parts {
            cookie: text[32..].try_into().unwrap(),
            server_short: PublicKey(text[..32].try_into().unwrap()),
            identity: self.identity.public_key(),
            vouched: self.short.public_key(),
            vouch_by: self.identity.clone(),
            vouch_for: secret(1).public_key(),
            name: DomainName::new(NAME).unwrap(),
            message: message(b"attack"),
        }
    }

    pub fn initiate(&self, counter: u64, parts: &Parts) -> Vec<u8> {
        let mut packet = vec![0; InitiateHeader::LENGTH + TAG];
        let (to, from, client) = (EXTENSION, self.extension, self.short.public_key());
        InitiateHeader { to, from, client, cookie: parts.cookie, counter }.write(&mut packet);
        let mut vouch = [&[0; TAG][..], &parts.vouched.0].concat();
        let unique = [counter as u8; 16];
        let vouch_key = parts.vouch_by.box_key(&parts.vouch_for).unwrap();
        vouch_key.seal(&nonce(prefix::VOUCH, &unique), &mut vouch);
        for part in [&parts.identity.0[..], &unique, &vouch, parts.name.as_bytes(), &parts.message] {
            packet.extend_from_slice(part);
        }
        let shared = self.short.box_key(&parts.server_short).unwrap();
        shared.seal(&nonce(prefix::INITIATE, &counter.to_le_bytes()), &mut packet[InitiateHeader::LENGTH..]);
        packet
    }
}

/// A message of 192 bytes with the ID 1 and this data at the start of the stream.
pub fn message(data: &[u8]) -> Vec<u8> {
    let mut message = vec![0; 192];
    message[0] = 1;
    message[38] = data.len() as u8;
    message[192 - data.len()..].copy_from_slice(data);
    message
}
