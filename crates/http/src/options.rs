//! What is to be asked, and how.

use std::path::PathBuf;
use std::str::FromStr;

use kendall_load::Reuse;

use crate::written::Written;

/// What is to be asked, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Where: `http://…` or `https://…`; `{port}` in it stands for the port of the server's address.
    pub url: String,
    /// What: the one request, or what the requests of the file leave out.
    pub request: Written,
    /// The file of requests, if there are several.
    pub requests_file: Option<PathBuf>,
    /// The version of HTTP.
    pub version: Version,
    /// The most requests at a time on one connection of HTTP/2 or HTTP/3; the server may allow fewer.
    pub streams: u32,
    /// Whether connections are kept for further requests.
    pub reuse: Reuse,
    /// Which servers are believed to be who they say.
    pub trust: Trust,
}

impl Options {
    /// A GET of a URL by HTTP/1.1 over connections that are kept.
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            request: Written::default(),
            requests_file: None,
            version: Version::Http1,
            streams: 10,
            reuse: Reuse::Keep,
            trust: Trust::Machine,
        }
    }
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.1 (RFC 9112).
    Http1,
    /// HTTP/2 (RFC 9113), in the clear by prior knowledge.
    Http2,
    /// HTTP/3 (RFC 9114).
    Http3,
}

impl FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "1" | "1.1" => Ok(Self::Http1),
            "2" => Ok(Self::Http2),
            "3" => Ok(Self::Http3),
            _ => Err(format!("must be 1, 2 or 3, not {text:?}")),
        }
    }
}

/// Which servers are believed to be who they say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those whose certificates lead to a root that this machine trusts.
    Machine,
    /// Those whose certificates lead to one in this PEM file.
    File(PathBuf),
    /// All. For servers of one's own, whose certificates nobody signed.
    Anyone,
}

/// Why there is nothing to ask.
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
