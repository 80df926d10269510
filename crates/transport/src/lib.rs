//! The transport laboratory: CurveCP, TCP, TLS 1.3, QUIC and HTTPS do the same work, so that the transport is the only difference.
//!
//! [`Transport`] is the only trait: connect, listen, and a stream of bytes each way. Everything above it is the same for each kind:
//! the [`protocol`] of requests, the server, and the [`TransportWorkload`] with bulk transfers, echoes and handshakes.
//!
//! `kendall transport` lets flows of several kinds compete for a link, between two namespaces, and measures the cost of handshakes.
//!
//! The laboratory's keys are public, so that a client can check a server's certificate or key at full cost without any setup. They
//! protect nothing.

mod error;
mod flows;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
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
pub use server::{Server, TransportOptions};
pub use transport::{BoxFuture, Connection, Duplex, Listener, Moved, Opening, Transport};
pub use workload::{Operation, TransportWorkload};
