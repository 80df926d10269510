//! Connections to a NATS server, for agents that send a load and for workers that search: the address with its user, files of
//! credentials and certificates, and errors that show no password.

mod access;
mod address;
mod error;

pub use access::{NatsAccess, NatsFiles};
pub use address::NatsAddress;
pub use error::NatsError;
