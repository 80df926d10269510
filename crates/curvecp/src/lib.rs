//! CurveCP, the encrypted transport over UDP, as a pure state machine.
//!
//! Bytes and instants go in; bytes and the next deadline come out. This crate opens no socket, reads no clock and
//! starts no thread, so hours of protocol time run in milliseconds and every run is a function of its inputs.
//! An instant is a [`Duration`](std::time::Duration) since an origin that the caller chooses.

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
