//! The transport laboratory: CurveCP, TCP, TLS 1.3, QUIC and HTTPS do the same work, so that what differs is the transport.
//!
//! [`Transport`] is the one trait: connect, listen, and a stream of bytes each way. Everything above it is the same for each kind:
//! the [`protocol`] of requests, the server, and the [`TransportWorkload`] that loads it with bulk transfers, echoes and handshakes.
//!
//! `kendall transport` lets flows of several kinds compete for a link, between two namespaces, and counts what handshakes cost.
//!
//! The laboratory's keys are public, so that a client can check a server's certificate or key at full cost without any set-up.
//! They protect nothing.

mod error;
mod flows;
mod kind;
mod kinds;
mod laboratory;
pub mod protocol;
mod row;
mod server;
mod stamping;
mod transport;
mod workload;

pub use error::TransportError;
pub use kind::Kind;
pub use row::ROW;
pub use server::{Options, Server};
pub use transport::{BoxFuture, Connection, Duplex, Listener, Moved, Opening, Transport};
pub use workload::{Operation, TransportWorkload};
