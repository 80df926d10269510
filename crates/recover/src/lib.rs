//! File recovery: a client holds a file encrypted under a short password, and sends it with the password's digest;
//! the server finds the password, decrypts the file and returns it.
//!
//! For owners who ask for their own files. [`Finder`] finds passwords, [`Keys`] derives the keys of the cipher from them,
//! [`serve`] runs the server, [`request()`] sends one request for a file, [`RecoverWorkload`] generates load. Files of any
//! length are transferred in pieces, and wait within a memory budget.

pub mod cipher;
mod client;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
pub mod keys;
pub mod protocol;
mod request;
mod row;
pub mod search;
mod server;
pub mod spool;
mod subcommands;
pub mod trace;
pub mod words;
mod workload;

pub use client::{Client, Pattern};
pub use kendall_service::{Config, ServiceError};
pub use keys::Keys;
pub use protocol::Dialect;
pub use request::{Ask, RequestError, Stage, request};
pub use row::ROW;
pub use search::{
    Finder, FinderError, FinderOptions, FoundPassword, Hash, Hunt, PasswordQuery, PasswordSource, Progress,
    Strategy,
};
pub use server::{Recover, RecoverOptions, ServerError, bind, serve};
pub use spool::SpoolOptions;
pub use words::Words;
pub use workload::{Algorithm, ParameterError, Parameters, RecoverWorkload};
