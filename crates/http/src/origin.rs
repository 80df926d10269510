//! The destination of requests.

use std::net::{SocketAddr, ToSocketAddrs};

use kendall_system::conceal_url;
use url::Url;

use crate::error::HttpError;

/// The destination of requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) scheme: Scheme,
    /// The host as in certificates.
    pub(crate) host: String,
    /// Host and port as in requests; without the port where the scheme implies it.
    pub(crate) authority: String,
    port: u16,
}

/// Whether the connection is unencrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Origin {
    /// The destination of a URL, and the URL, parsed.
    pub(crate) fn read(text: &str) -> Result<(Self, Url), HttpError> {
        let refuse = |why| HttpError::Url { url: conceal_url(text), why };
        let url = Url::parse(text).map_err(|error| refuse(error.to_string()))?;
        Ok((Self::of(&url).map_err(refuse)?, url))
    }

    /// The destination of a URL, or the reason why it has none.
    pub(crate) fn of(url: &Url) -> Result<Self, String> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(format!("its scheme is {other}, neither http nor https")),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it contains a user; set the header authorization instead".into());
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("it has no host")?;
        let authority = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let port = url.port_or_known_default().ok_or("it has no port")?;
        Ok(Self { scheme, host: host.trim_matches(['[', ']']).into(), authority, port })
    }

    fn address(&self) -> Result<SocketAddr, String> {
        let Self { host, port, .. } = self;
        let found = (host.as_str(), *port).to_socket_addrs();
        let addresses: Vec<SocketAddr> =
            found.map_err(|error| format!("its host cannot be found: {error}"))?.collect();
        // For a name that has both, such as localhost, the address on which servers listen by default.
        let address = addresses.iter().find(|address| address.is_ipv4()).or_else(|| addresses.first());
        address.copied().ok_or_else(|| "its host has no address".into())
    }
}

/// The address of the server that a URL names.
///
/// # Errors
/// Fails if the URL has none, or one that cannot be resolved.
pub fn address(url: &str) -> Result<SocketAddr, HttpError> {
    let (origin, _) = Origin::read(url)?;
    origin.address().map_err(|why| HttpError::Url { url: url.into(), why })
}
