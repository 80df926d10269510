//! Why an HTTP workload cannot be made.

use std::path::PathBuf;

/// Why an HTTP workload cannot be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum HttpError {
    #[error("the URL {url:?} cannot be loaded: {why}")]
    Url { url: String, why: String },
    #[error("the request cannot be sent: {why}")]
    Request { why: String },
    #[error("{place}: {why}")]
    InFile { place: String, why: String },
    #[error("HTTP/3 is always encrypted; write https://, not {url:?}")]
    InTheClear { url: String },
    #[error("{} holds no certificate that can be used: {why}", path.display())]
    Certificates { path: PathBuf, why: String },
    #[error(
        "this machine has no list of roots to trust ({why}); name one with ca, or believe anyone with insecure"
    )]
    NoRoots { why: String },
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl HttpError {
    /// What is wrong with a request, at its place in a file if it has one.
    pub(crate) fn request(place: Option<&String>, why: String) -> Self {
        match place {
            Some(place) => Self::InFile { place: place.clone(), why },
            None => Self::Request { why },
        }
    }
}
