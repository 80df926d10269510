//! CurveCP over UDP sockets: an encrypted, authenticated stream of bytes to a server that is known by its public key.
//!
//! The protocol itself is the crate [`curvecp`], which has no sockets and no clock. This one adds both, the random numbers
//! of the system, key directories that are those of NaCl's tools, and programs that use a connection.
//!
//! An [`Endpoint`] is one UDP socket with a task of the tokio runtime that drives it. Its connections are [`Stream`]s; what
//! is known of one is its [`Connection`]. A [`ServerGroup`] is a server on several threads. All buffers are bounded: a write waits while the peer does not read.
//!
//! ```
//! use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, SecretKey, ServerConfig};
//! use kendall_curve::{Endpoint, KeyDirectory, RandomNonces};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("key");
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let keys = KeyDirectory::create(&path)?;
//! let name = DomainName::new("server.example")?;
//! let config = ServerConfig::new(keys.secret().clone(), Extension::default(), name.clone());
//! let server = Endpoint::server("127.0.0.1:0".parse()?, config, keys.nonces()?)?;
//!
//! let client = Endpoint::client("127.0.0.1:0".parse()?, RandomNonces)?;
//! let mut asking = client.connect(ClientConfig {
//!     identity: SecretKey::from_bytes([7; 32]), // a real client draws one, or takes one of a directory
//!     server: keys.public_key(),
//!     server_extension: Extension::default(),
//!     name,
//!     addresses: vec![server.address()],
//!     extension: None,
//!     capabilities: Default::default(),
//!     message: Default::default(),
//! })?;
//! asking.write_all(b"6 times 7").await?;
//! asking.shutdown().await?;
//!
//! let mut answering = server.accept().await?;
//! let mut question = String::new();
//! answering.read_to_string(&mut question).await?;
//! assert_eq!(question, "6 times 7");
//! answering.write_all(b"42").await?;
//! answering.shutdown().await?;
//!
//! let mut answer = String::new();
//! asking.read_to_string(&mut answer).await?;
//! assert_eq!(answer, "42");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod clock;
mod endpoint;
mod error;
mod filter;
mod flood;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod group;
mod key_directory;
mod key_files;
mod member;
mod nonces;
mod program;
#[cfg(test)]
#[path = "../tests/it/reference/mod.rs"]
mod reference;
mod shared;
mod socket;
mod stream;

pub use curvecp;
pub use endpoint::Endpoint;
pub use error::CurveError;
pub use group::ServerGroup;
pub use key_directory::KeyDirectory;
pub use nonces::{FileNonces, RandomNonces};
pub use program::{Descriptors, copy_standard_streams, run_program};
pub use shared::Stage;
pub use stream::{Connection, Stream};

/// The system's random number generator, of which keys are drawn.
pub fn system_random() -> impl rand::CryptoRng + Send {
    rand::rand_core::UnwrapErr(rand::rngs::SysRng)
}
