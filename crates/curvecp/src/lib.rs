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
//! attacker who records the packets and steals the long-term keys later reads nothing of them.
//!
//! | packet | bytes | sealed between | what is in the box |
//! | --- | --- | --- | --- |
//! | Hello → | 224 | C' and S | zeros, or what the client announces |
//! | ← Cookie | 200 | S and C' | S', and a *cookie*: the state of the server, sealed for itself |
//! | Initiate → | 560 to 1,184 | C' and S' | C, a *vouch* for C' by C, the domain name, the first message |
//! | Message → | 112 to 1,184 | C' and S' | a message |
//! | ← Message | 80 to 1,152 | S' and C' | a message |
//!
//! The server keeps nothing before a valid Initiate, answers a Hello with fewer bytes than it has, and never answers a
//! packet that is not authentic. A box is XSalsa20-Poly1305 under a key from X25519; its nonce is a constant text and a
//! counter, or 16 bytes that never repeat where a long-term key is involved.
//!
//! # A packet, worked
//!
//! The first packet of a client, taken apart by hand as its server would:
//!
//! ```
//! use curvecp::{ClientConfig, DomainName, Endpoint, Extension, PublicKey, SecretKey, TransmitBuffer};
//! use rand::{Rng, SeedableRng, rngs::StdRng};
//! use std::time::Duration;
//!
//! let server = SecretKey::from_bytes([1; 32]);
//! let mut nonces = StdRng::seed_from_u64(7);
//! let mut client = Endpoint::new(
//!     Duration::ZERO,
//!     None, // no server role
//!     Box::new(StdRng::seed_from_u64(8)), // a real client takes the generator of its system
//!     Box::new(move || { let mut nonce = [0; 16]; nonces.fill_bytes(&mut nonce); nonce }),
//! );
//! client.connect(Duration::ZERO, ClientConfig {
//!     identity: SecretKey::from_bytes([2; 32]),
//!     server: server.public_key(),
//!     server_extension: Extension(*b"server extension"),
//!     name: DomainName::new("machine.example")?,
//!     addresses: vec!["192.0.2.1:4000".parse().unwrap()],
//!     extension: Some(Extension(*b"client extension")),
//!     capabilities: *b"announcement",
//!     message: Default::default(),
//! })?;
//! let mut buffer = TransmitBuffer::new(64);
//! assert!(client.poll_transmit(Duration::ZERO, &mut buffer));
//! let transmit = buffer.transmits().next().unwrap();
//! assert_eq!(transmit.destination, "192.0.2.1:4000".parse().unwrap());
//! let mut hello = transmit.bytes.to_vec();
//!
//! assert_eq!(hello.len(), 224);
//! assert_eq!(&hello[..8], b"QvnQ5XlH");              // magic: a Hello
//! assert_eq!(&hello[8..24], b"server extension");    // the receiver's
//! assert_eq!(&hello[24..40], b"client extension");   // the sender's
//! let short_term = PublicKey(hello[40..72].try_into().unwrap()); // C'
//! assert_eq!(hello[72..136], [0; 64]);               // so that the answer is shorter than the question
//! let counter = &hello[136..144];                    // the end of the nonce, little-endian
//!
//! // The box: 16 bytes of tag, then 64 of text. Only the owners of C' and S have its key.
//! let nonce = [&b"CurveCP-client-H"[..], counter].concat().try_into().unwrap();
//! let key = server.box_key(&short_term).unwrap();
//! let text = key.open(&nonce, &mut hello[144..]).expect("the box is authentic");
//! assert_eq!(&text[..12], b"announcement");          // the reference sends and expects zeros here
//! assert_eq!(text[12..], [0; 52]);
//! # Ok::<(), curvecp::Error>(())
//! ```

mod client;
mod config;
pub mod congestion;
mod connection;
mod cookie;
mod endpoint;
mod error;
pub mod extension;
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
pub use slots::ConnectionId;
pub use stream::Read;
pub use transmit::{Transmit, TransmitBuffer};
