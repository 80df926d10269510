//! The system `http`: any HTTP server as a target of load, such as `http://127.0.0.1:8080/path`.
//!
//! One request or several with weights, each a class; every answer is checked by its status and optionally its body.
//! HTTP/1.1 is a pure state machine that the generator drives over its own sockets; HTTP/2 and HTTP/3 bring their own
//! futures. HTTP servers are third-party programs: they write no stamps, so all times are the client's.

mod chunked;
mod error;
mod expect;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod host;
mod http1;
mod http2;
mod http3;
mod options;
mod origin;
mod pattern;
mod requests;
mod row;
mod streams;
mod tls;
mod workload;
mod written;

pub use error::HttpError;
pub use expect::{Expect, Statuses, Sum, Text};
pub use host::{HostError, host};
pub use options::{HttpOptions, Trust, Version};
pub use origin::address;
pub use row::ROW;
pub use workload::HttpWorkload;
pub use written::Written;
