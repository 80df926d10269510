//! The reason why the site cannot be served.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The reason why the site cannot be served.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum WebError {
    #[error(
        "cannot listen on {address}: {source}; choose another address with --listen, port 0 for a free one"
    )]
    Bind { address: SocketAddr, source: io::Error },
    #[error("{} cannot be read: {source}; name the folder that holds results", folder.display())]
    NoFolder { folder: PathBuf, source: io::Error },
    #[error("{} is one run; name the folder that holds results, which is usually two levels above", .0.display())]
    OneRun(PathBuf),
    #[error("a token has at least {least} characters, of A–Z, a–z, 0–9, - and _")]
    Token { least: usize },
    #[error("cannot draw a random token: {0}")]
    Chance(io::Error),
    #[error("cannot serve: {0}")]
    Runtime(io::Error),
}
