//! The errors of an HTTP workload.

use std::path::PathBuf;

/// The reason why an HTTP workload cannot be created.
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
    #[error("{} contains no usable certificate: {why}", path.display())]
    Certificates { path: PathBuf, why: String },
    #[error(
        "this machine has no list of trusted roots ({why}); give one with ca, or trust any certificate with insecure"
    )]
    NoRoots { why: String },
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] rustls::Error),
}

impl HttpError {
    /// The error of a request, with its position in a file if it has one.
    pub(crate) fn request(place: Option<&String>, why: String) -> Self {
        match place {
            Some(place) => Self::InFile { place: place.clone(), why },
            None => Self::Request { why },
        }
    }
}
