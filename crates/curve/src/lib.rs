//! CurveCP over UDP sockets.

mod clock;
mod endpoint;
mod error;
mod key_directory;
mod nonces;
#[cfg(test)]
#[path = "../tests/reference/mod.rs"]
mod reference;
mod shared;
mod socket;
mod stream;

pub use curvecp;
pub use endpoint::Endpoint;
pub use error::CurveError;
pub use key_directory::KeyDirectory;
pub use nonces::{FileNonces, RandomNonces};
pub use shared::Stage;
pub use stream::{Connection, Stream};
