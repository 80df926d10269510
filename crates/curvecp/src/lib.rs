//! CurveCP, the encrypted transport over UDP, as a pure state machine.
//!
//! Bytes and instants go in; bytes and the next deadline come out. This crate opens no socket, reads no clock and
//! starts no thread, so hours of protocol time run in milliseconds and every run is a function of its inputs.
//! An instant is a [`Duration`](std::time::Duration) since an origin that the caller chooses.

mod client;
mod config;
mod connection;
mod cookie;
mod endpoint;
mod error;
mod hashing;
mod incoming;
mod keys;
#[path = "layer_double.rs"]
mod layer;
mod limit;
mod name;
mod nonce;
pub mod packet;
mod path;
pub mod seal;
mod server;
mod session;
mod slots;
mod transmit;
mod x25519;

pub use config::{Authorise, ClientConfig, ServerConfig};
pub use connection::CloseReason;
pub use cookie::Capabilities;
pub use endpoint::{Endpoint, Event};
pub use error::Error;
pub use keys::{BoxKey, PublicKey, SecretKey, TAG};
pub use layer::{Failure, LayerState, MessageConfig, MessageLayer, Read, Role};
pub use name::{DomainName, Extension};
pub use nonce::LongTermNonces;
pub use slots::ConnectionId;
pub use transmit::{Transmit, TransmitBuffer};
