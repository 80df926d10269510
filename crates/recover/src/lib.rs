//! File recovery: a client holds a file encrypted under a short password, and sends it with the password's digest;
//! the server finds the password, decrypts the file and returns it.
//!
//! For files whose owner asks. [`Finder`] finds passwords, [`Keys`] derives the keys of the cipher from them, [`serve`] runs
//! the server, [`request()`] asks one for a file, [`RecoverWorkload`] loads one. However long files are, they are moved in
//! pieces, and wait within a budget of memory.

pub mod cipher;
mod client;
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
pub use search::{Finder, FinderError, FinderOptions, Found, Hash, Hunt, Progress, Strategy, Wanted, Way};
pub use server::{Options, Recover, ServerError, bind, serve};
pub use spool::SpoolOptions;
pub use words::Words;
pub use workload::{Algorithm, ParameterError, Parameters, RecoverWorkload};
