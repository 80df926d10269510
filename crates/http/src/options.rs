//! The options of an HTTP workload.

use std::path::PathBuf;
use std::str::FromStr;

use kendall_load::Reuse;

use crate::written::Written;

/// The options of an HTTP workload.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpOptions {
    /// The URL: `http://…` or `https://…`; `{port}` in it stands for the port of the server's address.
    pub url: String,
    /// The only request, or the defaults of the requests of the file.
    pub request: Written,
    /// The file of requests, if there are several.
    pub requests_file: Option<PathBuf>,
    /// The version of HTTP.
    pub version: Version,
    /// The most requests at a time on one connection of HTTP/2 or HTTP/3; the server may allow fewer.
    pub streams: u32,
    /// Whether connections are kept for further requests.
    pub reuse: Reuse,
    /// The servers whose certificates are trusted.
    pub trust: Trust,
}

impl HttpOptions {
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

/// The servers whose certificates are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Servers with certificates that lead to a root that this machine trusts.
    Machine,
    /// Servers with certificates that lead to one in this PEM file.
    File(PathBuf),
    /// Trusts every certificate. For test servers with self-signed certificates.
    Anyone,
}
