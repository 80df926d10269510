//! CurveCP, the encrypted transport over UDP, as a pure state machine.
//!
//! Bytes and instants go in; bytes and the next deadline come out. This crate opens no socket, reads no clock and
//! starts no thread, so hours of protocol time run in milliseconds and every run is a function of its inputs.
//! An instant is a [`Duration`](std::time::Duration) since an origin that the caller chooses; randomness comes from a
//! generator that the caller hands over.
//!
//! [`Endpoint`] is the whole: all connections of one UDP socket, as a client, a server or both. Below it are two layers
//! that can be used alone: the packets ([`packet`], [`seal`]) and the messages inside them ([`MessageLayer`],
//! [`message`]). On the wire it is D. J. Bernstein's CurveCP of 2011, to the byte: it talks to the tools of NaCl.
//!
//! # The protocol
//!
//! A server is known by its long-term public key S, its addresses, 16 bytes of *extension* and a domain name; a client by
//! its long-term key C. Each connection has two short-term key pairs, C' and S', which are erased at its end: an
//! attacker who records the packets and steals the long-term keys later reads nothing of them. Connections that begin within a second
//! may have the same S': C' is each one's own, and so is the key that the two make.
//!
//! | packet | bytes | sealed between | what is in the box |
//! | --- | --- | --- | --- |
//! | Hello → | 224 | C' and S | zeros, or what the client announces |
//! | ← Cookie | 200 | S and C' | S', and a *cookie*: the state of the server, sealed for itself |
//! | Initiate → | 560 to 1,184 | C' and S' | C, a *vouch* for C' by C, the domain name, the first message |
//! | Message → | 112 to 1,184, or 1,440 | C' and S' | a message |
//! | ← Message | 80 to 1,152, or 1,440 | S' and C' | a message |
//!
//! The server keeps nothing before a valid Initiate, answers a Hello with fewer bytes than it has, and never answers a
//! packet that is not authentic. A box is XSalsa20-Poly1305 under a key from X25519; its nonce is a constant text and a
//! counter, or 16 bytes that never repeat where a long-term key is involved. Messages have few lengths, so that lengths reveal
//! little: 192, 320, 576 or 1,088 bytes, and between two endpoints of this crate one more, which is the longest that the path was
//! found to carry (RFC 8899).
//!
//! # A packet, worked
//!
//! The first packet of a client, byte for byte, and taken apart by hand as its server would. It is of a session that was made with
//! libsodium and is kept in `testdata/session.txt`:
//!
//! ```
//! use curvecp::packet::Packet;
//! use curvecp::{SecretKey, TAG};
//!
//! let packet = [
//!     "51766e5135586c48", // 0: magic, `QvnQ5XlH`: a Hello
//!     "56622feed36d0c02aa1ca1ab5cffe191", // 8: the server's extension, which names the receiver
//!     "fdcc31c61c00e45bb474a19749698566", // 24: the client's extension, which names the sender
//!     "e6d07786e6fbc0c67f176eadbdf1bf8df63c0c880a61ea02290c2bb84ec88301", // 40: C', the client's short-term public key
//!     "0000000000000000000000000000000000000000000000000000000000000000", // 72: zeros, so that the answer is shorter than the question
//!     "0000000000000000000000000000000000000000000000000000000000000000",
//!     "0100000000000000", // 136: counter, little-endian: the end of the nonce
//!     "4e733aabf0ffe02f92a9312075d5178d", // 144: the box: its tag of 16 bytes
//!     "ad0a78a6dfcd1b086dfb39ef1ff812e05974d0fb1b7e13374db07f7b54233a9f", // 160: 64 bytes of text, sealed between C' and S
//!     "2f8044189e66850bcdbb9a030986efaf5097ff5ad995f4aec33fa17811a36d8b",
//! ];
//! # let recorded = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/session.txt"));
//! # assert!(recorded.lines().any(|line| line.strip_prefix("hello ") == Some(&packet.concat())));
//! let bytes = |digits: &str| -> Vec<u8> {
//!     (0..digits.len()).step_by(2).map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap()).collect()
//! };
//! let mut hello = bytes(&packet.concat());
//! assert_eq!(hello.len(), 224);
//!
//! // The parser finds the same fields.
//! let Some(Packet::Hello(header, sealed)) = Packet::decode(&mut hello) else { panic!("not a Hello") };
//! assert_eq!(header.client.0, *bytes(packet[3]));
//! assert_eq!(header.counter, 1);
//! assert_eq!(sealed.len(), TAG + 64);
//!
//! // The box: its key is X25519 of C' and S, which both sides can compute and no one else. The server has the secret half
//! // of S; the nonce is a constant text and the counter.
//! let server = SecretKey::from_bytes(bytes("ec18eac8d758b1eba52d3c10d39adc6dd9806472cb4ae069635d383d9086a513").try_into().unwrap());
//! let key = server.box_key(&header.client).unwrap();
//! let nonce = [&b"CurveCP-client-H"[..], &header.counter.to_le_bytes()].concat().try_into().unwrap();
//! let text = key.open(&nonce, sealed).expect("the box is authentic");
//! assert_eq!(text, [0; 64]); // A client of this crate may announce itself here; the reference sends zeros.
//! ```
//!
//! The server answers with a Cookie, 24 bytes shorter, and has forgotten the Hello when that has left.

mod client;
mod config;
pub mod congestion;
mod connection;
mod cookie;
mod endpoint;
mod error;
pub mod feedback;
mod hashing;
mod incoming;
mod keys;
mod layer;
mod limit;
pub mod message;
mod name;
mod nonce;
mod pacer;
pub mod packet;
mod path;
mod random;
mod recovery;
mod refusals;
pub mod seal;
mod server;
mod session;
mod slots;
mod stream;
mod transmit;
mod x25519;

pub use config::{Authorise, ClientConfig, ServerConfig};
pub use connection::CloseReason;
pub use cookie::Capabilities;
pub use endpoint::{Endpoint, Event};
pub use error::Error;
pub use keys::{BoxKey, PublicKey, SecretKey, TAG};
pub use layer::{Failure, LayerState, LayerStats, MessageConfig, MessageLayer, Role};
pub use name::{DomainName, Extension};
pub use nonce::LongTermNonces;
pub use recovery::{GRANULARITY, INITIAL_RTT, RateSample, Rtt};
pub use refusals::{Network, Refusals};
pub use slots::ConnectionId;
pub use stream::Read;
pub use transmit::{Transmit, TransmitBuffer};
