//! The five packets, byte for byte: the position of each field, and the legal lengths.
//!
//! Decoding checks magic and length and nothing more; a decoded packet borrows its box from the datagram, so that it can
//! be opened in place. Encoding writes all that precedes the box.
//!
//! | packet | direction | bytes | before the box |
//! | --- | --- | --- | --- |
//! | Hello | to server | 224 | magic, extensions, C', 64 zeros, counter |
//! | Cookie | to client | 200 | magic, extensions, 16 bytes of nonce |
//! | Initiate | to server | 560 to 1,184 | magic, extensions, C', cookie, counter |
//! | client Message | to server | 112 to 1,440 | magic, extensions, C', counter |
//! | server Message | to client | 80 to 1,440 | magic, extensions, counter |
//!
//! All lengths except the Cookie's are multiples of 16. The reference's client Messages have up to 1,184 bytes and its server
//! Messages up to 1,152; only two endpoints of this crate send each other longer ones. The receiver's extension precedes the sender's.

use crate::{Extension, PublicKey, TAG};

/// The longest packet. With 48 bytes of IPv6 and UDP headers it fits the MTU of Ethernet, 1,500 bytes; the reference's
/// longest, 1,184 bytes, fits the smallest MTU of IPv6, 1,280.
pub const MAX_PACKET: usize = 1440;
/// The shortest message.
pub const MIN_MESSAGE: usize = 16;
/// The longest message in an Initiate packet.
pub const MAX_INITIATE_MESSAGE: usize = 640;
/// Bytes of a Hello.
pub const HELLO: usize = HelloHeader::LENGTH + TAG + 64;
/// Bytes of a Cookie packet.
pub const COOKIE: usize = CookieHeader::LENGTH + TAG + 32 + 96;
/// Bytes of an Initiate's box before the message: tag, client's key, vouch, domain name.
pub const INITIATE_BEFORE_MESSAGE: usize = TAG + 32 + 64 + 256;

/// The constant beginnings of nonces.
pub mod prefix {
    /// The prefix of the nonce of the Hello's box.
    pub const HELLO: &[u8; 16] = b"CurveCP-client-H";
    /// The prefix of the nonce of the Cookie packet's box.
    pub const COOKIE: &[u8; 8] = b"CurveCPK";
    /// The prefix of the nonce of the Initiate's box.
    pub const INITIATE: &[u8; 16] = b"CurveCP-client-I";
    /// The prefix of the nonce of the vouch.
    pub const VOUCH: &[u8; 8] = b"CurveCPV";
    /// The prefix of the nonce of the client Message's box.
    pub const CLIENT_MESSAGE: &[u8; 16] = b"CurveCP-client-M";
    /// The prefix of the nonce of the server Message's box.
    pub const SERVER_MESSAGE: &[u8; 16] = b"CurveCP-server-M";
    /// The prefix of the nonce of the box inside the cookie, which only the server that made it can open.
    pub const MINUTE: &[u8; 8] = b"minute-k";
}

const HELLO_MAGIC: &[u8; 8] = b"QvnQ5XlH";
const COOKIE_MAGIC: &[u8; 8] = b"RL3aNMXK";
const INITIATE_MAGIC: &[u8; 8] = b"QvnQ5XlI";
const CLIENT_MESSAGE_MAGIC: &[u8; 8] = b"QvnQ5XlM";
const SERVER_MESSAGE_MAGIC: &[u8; 8] = b"RL3aNMXM";

/// A Hello before its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelloHeader {
    /// The server's extension.
    pub to: Extension,
    /// The client's extension.
    pub from: Extension,
    /// The client's short-term key C'.
    pub client: PublicKey,
    /// The end of the nonce.
    pub counter: u64,
}

/// A Cookie packet before its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CookieHeader {
    /// The client's extension.
    pub to: Extension,
    /// The server's extension.
    pub from: Extension,
    /// The end of the nonce.
    pub nonce: [u8; 16],
}

/// An Initiate before its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitiateHeader {
    /// The server's extension.
    pub to: Extension,
    /// The client's extension.
    pub from: Extension,
    /// The client's short-term key C'.
    pub client: PublicKey,
    /// The server's cookie, returned as it came.
    pub cookie: [u8; 96],
    /// The end of the nonce.
    pub counter: u64,
}

/// A client Message before its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientMessageHeader {
    /// The server's extension.
    pub to: Extension,
    /// The client's extension.
    pub from: Extension,
    /// The client's short-term key C'.
    pub client: PublicKey,
    /// The end of the nonce.
    pub counter: u64,
}

/// A server Message before its box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMessageHeader {
    /// The client's extension.
    pub to: Extension,
    /// The server's extension.
    pub from: Extension,
    /// The end of the nonce.
    pub counter: u64,
}

impl HelloHeader {
    /// Bytes before the box.
    pub const LENGTH: usize = 144;

    /// Writes the header to the start of `out`.
    ///
    /// # Panics
    /// Where `out` is shorter than the header; so do all of these.
    pub fn write(&self, out: &mut [u8]) {
        let (to, from, counter) = (&self.to.0, &self.from.0, &self.counter.to_le_bytes());
        concat(out, &[HELLO_MAGIC, to, from, &self.client.0, &[0; 64], counter]);
    }
}

impl CookieHeader {
    /// Bytes before the box.
    pub const LENGTH: usize = 56;

    /// Writes the header to the start of `out`.
    pub fn write(&self, out: &mut [u8]) {
        concat(out, &[COOKIE_MAGIC, &self.to.0, &self.from.0, &self.nonce]);
    }
}

impl InitiateHeader {
    /// Bytes before the box.
    pub const LENGTH: usize = 176;

    /// Writes the header to the start of `out`.
    pub fn write(&self, out: &mut [u8]) {
        let (to, from, counter) = (&self.to.0, &self.from.0, &self.counter.to_le_bytes());
        concat(out, &[INITIATE_MAGIC, to, from, &self.client.0, &self.cookie, counter]);
    }
}

impl ClientMessageHeader {
    /// Bytes before the box.
    pub const LENGTH: usize = 80;
    /// The longest message.
    pub const MAX_MESSAGE: usize = MAX_PACKET - Self::LENGTH - TAG;

    /// Writes the header to the start of `out`.
    pub fn write(&self, out: &mut [u8]) {
        let (to, from, counter) = (&self.to.0, &self.from.0, &self.counter.to_le_bytes());
        concat(out, &[CLIENT_MESSAGE_MAGIC, to, from, &self.client.0, counter]);
    }
}

impl ServerMessageHeader {
    /// Bytes before the box.
    pub const LENGTH: usize = 48;
    /// The longest message.
    pub const MAX_MESSAGE: usize = MAX_PACKET - Self::LENGTH - TAG;

    /// Writes the header to the start of `out`.
    pub fn write(&self, out: &mut [u8]) {
        concat(out, &[SERVER_MESSAGE_MAGIC, &self.to.0, &self.from.0, &self.counter.to_le_bytes()]);
    }
}

/// A datagram that has the magic and a length of one of the five packets: its header and its sealed box.
#[derive(Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A client asks for a cookie.
    Hello(HelloHeader, &'a mut [u8]),
    /// The server's answer to a Hello.
    Cookie(CookieHeader, &'a mut [u8]),
    /// A client opens a connection with a cookie.
    Initiate(InitiateHeader, &'a mut [u8]),
    /// A message of a client.
    ClientMessage(ClientMessageHeader, &'a mut [u8]),
    /// A message of a server.
    ServerMessage(ServerMessageHeader, &'a mut [u8]),
}

impl<'a> Packet<'a> {
    /// Recognises a datagram; `None` where magic or length is of no packet.
    pub fn decode(datagram: &'a mut [u8]) -> Option<Self> {
        let length = datagram.len();
        let message = |before: usize, longest| {
            let longest = before + longest;
            length.is_multiple_of(16) && (before + MIN_MESSAGE..=longest).contains(&length)
        };
        let magic = datagram.first_chunk::<8>()?;
        Some(match magic {
            HELLO_MAGIC if length == HELLO => {
                let (mut header, sealed) = Fields::split(datagram, HelloHeader::LENGTH);
                let [to, from] = [Extension(header.take()), Extension(header.take())];
                let client = PublicKey(header.take());
                let _zeros: [u8; 64] = header.take();
                Self::Hello(HelloHeader { to, from, client, counter: header.counter() }, sealed)
            }
            COOKIE_MAGIC if length == COOKIE => {
                let (mut header, sealed) = Fields::split(datagram, CookieHeader::LENGTH);
                let [to, from] = [Extension(header.take()), Extension(header.take())];
                Self::Cookie(CookieHeader { to, from, nonce: header.take() }, sealed)
            }
            INITIATE_MAGIC
                if message(InitiateHeader::LENGTH + INITIATE_BEFORE_MESSAGE, MAX_INITIATE_MESSAGE) =>
            {
                let (mut header, sealed) = Fields::split(datagram, InitiateHeader::LENGTH);
                let [to, from] = [Extension(header.take()), Extension(header.take())];
                let (client, cookie) = (PublicKey(header.take()), header.take());
                Self::Initiate(InitiateHeader { to, from, client, cookie, counter: header.counter() }, sealed)
            }
            CLIENT_MESSAGE_MAGIC
                if message(ClientMessageHeader::LENGTH + TAG, ClientMessageHeader::MAX_MESSAGE) =>
            {
                let (mut header, sealed) = Fields::split(datagram, ClientMessageHeader::LENGTH);
                let [to, from] = [Extension(header.take()), Extension(header.take())];
                let client = PublicKey(header.take());
                Self::ClientMessage(
                    ClientMessageHeader { to, from, client, counter: header.counter() },
                    sealed,
                )
            }
            SERVER_MESSAGE_MAGIC
                if message(ServerMessageHeader::LENGTH + TAG, ServerMessageHeader::MAX_MESSAGE) =>
            {
                let (mut header, sealed) = Fields::split(datagram, ServerMessageHeader::LENGTH);
                let [to, from] = [Extension(header.take()), Extension(header.take())];
                Self::ServerMessage(ServerMessageHeader { to, from, counter: header.counter() }, sealed)
            }
            _ => return None,
        })
    }
}

/// The client's short-term key in a datagram that belongs to a connection, where it has the beginning of an Initiate or of a
/// client Message. A server with several endpoints at one address finds the connection's by it.
pub fn client_of(datagram: &[u8]) -> Option<PublicKey> {
    let fields = datagram.first_chunk::<72>()?;
    let names_client = fields.starts_with(INITIATE_MAGIC) || fields.starts_with(CLIENT_MESSAGE_MAGIC);
    names_client.then(|| PublicKey(*fields.last_chunk().expect("72 bytes end in 32")))
}

/// Reads the fields of a header one after another, from behind the magic.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn split(datagram: &'a mut [u8], header: usize) -> (Self, &'a mut [u8]) {
        let (header, sealed) = datagram.split_at_mut(header);
        (Self(&header[8..]), sealed)
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("the length of the packet was checked");
        self.0 = rest;
        *field
    }

    fn counter(mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
}

fn concat(out: &mut [u8], fields: &[&[u8]]) {
    let mut at = 0;
    for field in fields {
        out[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    }
}

/// The counter in the last eight bytes of a header of a Message.
pub(crate) fn counter_of(header: &[u8]) -> u64 {
    u64::from_le_bytes(*header.last_chunk().expect("a header ends in a counter"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lengths_are_those_of_the_protocol() {
        assert_eq!((HELLO, COOKIE), (224, 200));
        let kind = |magic: &[u8; 8], length: usize| {
            let mut datagram = vec![0; length];
            datagram[..8].copy_from_slice(magic);
            Packet::decode(&mut datagram).is_some()
        };
        let legal = |magic: &[u8; 8]| (8..2000).filter(|&length| kind(magic, length)).collect::<Vec<_>>();
        let every_16 = |from: usize, to: usize| (from..=to).step_by(16).collect::<Vec<_>>();
        assert_eq!(legal(HELLO_MAGIC), [224]);
        assert_eq!(legal(COOKIE_MAGIC), [200]);
        assert_eq!(legal(INITIATE_MAGIC), every_16(560, 1184));
        assert_eq!(legal(CLIENT_MESSAGE_MAGIC), every_16(112, 1440));
        assert_eq!(legal(SERVER_MESSAGE_MAGIC), every_16(80, 1440));
        assert_eq!(legal(b"QvnQ5XlJ"), []);
    }

    fn extension() -> impl Strategy<Value = Extension> {
        any::<[u8; 16]>().prop_map(Extension)
    }

    proptest! {
        #[test]
        fn any_bytes_are_decoded_without_panic(mut datagram in proptest::collection::vec(any::<u8>(), 0..1300)) {
            prop_assert!(Packet::decode(&mut datagram).is_none());
        }

        #[test]
        fn any_bytes_behind_a_magic_are_decoded_without_panic(
            mut datagram in proptest::collection::vec(any::<u8>(), 8..1300), kind in 0usize..5
        ) {
            let magics = [HELLO_MAGIC, COOKIE_MAGIC, INITIATE_MAGIC, CLIENT_MESSAGE_MAGIC, SERVER_MESSAGE_MAGIC];
            datagram[..8].copy_from_slice(magics[kind]);
            Packet::decode(&mut datagram);
        }

        #[test]
        fn decoding_returns_what_was_encoded(
            to in extension(), from in extension(), client: [u8; 32], counter: u64, nonce: [u8; 16], half: [u8; 32],
            blocks in 1usize..=40
        ) {
            let client = PublicKey(client);
            let mut cookie = [1; 96];
            cookie[..32].copy_from_slice(&half);
            let (mut datagram, mut box_) = (vec![7; 1184], vec![7; 1184]);
            let m = blocks * 16;

            let header = HelloHeader { to, from, client, counter };
            header.write(&mut datagram);
            prop_assert_eq!(Packet::decode(&mut datagram[..224]), Some(Packet::Hello(header, &mut box_[..80])));
            let header = CookieHeader { to, from, nonce };
            header.write(&mut datagram);
            prop_assert_eq!(
                Packet::decode(&mut datagram[..200]).map(|packet| matches!(packet, Packet::Cookie(h, b) if h == header && b.len() == 144)),
                Some(true)
            );
            let header = InitiateHeader { to, from, client, cookie, counter };
            header.write(&mut datagram);
            prop_assert_eq!(client_of(&datagram), Some(client));
            let sealed = &mut box_[..368 + m];
            prop_assert_eq!(Packet::decode(&mut datagram[..544 + m]), Some(Packet::Initiate(header, sealed)));
            let header = ClientMessageHeader { to, from, client, counter };
            header.write(&mut datagram);
            prop_assert_eq!(
                Packet::decode(&mut datagram[..96 + m]).map(|packet| matches!(packet, Packet::ClientMessage(h, b) if h == header && b.len() == 16 + m)),
                Some(true)
            );
            let header = ServerMessageHeader { to, from, counter };
            header.write(&mut datagram);
            prop_assert_eq!(
                Packet::decode(&mut datagram[..64 + m]).map(|packet| matches!(packet, Packet::ServerMessage(h, b) if h == header && b.len() == 16 + m)),
                Some(true)
            );
        }
    }
}
