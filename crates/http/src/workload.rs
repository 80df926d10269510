//! The workload: requests to one HTTP server, and the transport to it.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use kendall_load::{ConnectionKind, Dialog, Dialogs, Request, RequestClass, Route, Wire, Workload};
use rustls::pki_types::ServerName;

use crate::error::HttpError;
use crate::http1::Http1;
use crate::http2::Http2;
use crate::http3::{self, Http3};
use crate::options::{HttpOptions, Version};
use crate::origin::Scheme;
use crate::requests::Requests;
use crate::streams::Streams;
use crate::tls;

/// Requests to one HTTP server.
pub struct HttpWorkload {
    requests: Arc<Requests>,
    way: Own,
}

/// The transport of a version.
enum Own {
    Http1(Wire),
    Http2(Streams<Http2>),
    Http3(Streams<Http3>),
}

impl HttpWorkload {
    /// The requests that the options describe, drawn from a seed, for the server at this address.
    ///
    /// # Errors
    /// Fails on a URL, a request or a file that is not valid, and if TLS cannot be set up.
    pub fn new(address: SocketAddr, options: &HttpOptions, seed: u64) -> Result<Self, HttpError> {
        let requests = Arc::new(Requests::new(address, options, seed)?);
        let &HttpOptions { version, reuse, streams, .. } = options;
        let origin = requests.origin();
        let secured = || {
            let name = ServerName::try_from(origin.host.clone())
                .map_err(|error| HttpError::Url { url: options.url.clone(), why: error.to_string() })?;
            Ok::<_, HttpError>((tls::config(&options.trust, version)?, name))
        };
        let of = requests.clone();
        let way = match (version, origin.scheme) {
            (Version::Http1, Scheme::Http) => {
                Own::Http1(Wire { to: address, kind: ConnectionKind::TCP, reuse })
            }
            (Version::Http1, Scheme::Https) => {
                let (config, name) = secured()?;
                let kind = ConnectionKind::tls(Arc::new(config), name);
                Own::Http1(Wire { to: address, kind, reuse })
            }
            (Version::Http2, Scheme::Http) => {
                Own::Http2(Streams::new(of, address, ConnectionKind::TCP, streams, reuse))
            }
            (Version::Http2, Scheme::Https) => {
                let (config, name) = secured()?;
                let kind = ConnectionKind::tls(Arc::new(config), name);
                Own::Http2(Streams::new(of, address, kind, streams, reuse))
            }
            (Version::Http3, Scheme::Http) => return Err(HttpError::InTheClear { url: options.url.clone() }),
            (Version::Http3, Scheme::Https) => {
                let (config, _) = secured()?;
                let dial = http3::Dial::new(config, origin.host.clone())?;
                Own::Http3(Streams::new(of, address, dial, streams, reuse))
            }
        };
        Ok(Self { requests, way })
    }
}

impl Workload for HttpWorkload {
    fn request(&self, index: u64) -> Request {
        let which = self.requests.which(index);
        let bytes = match &self.way {
            Own::Http1(wire) => self.requests.http1(which, index, wire.reuse),
            // Their streams fill in heads and bodies.
            Own::Http2(_) | Own::Http3(_) => Bytes::new(),
        };
        Request::new(which as u32, bytes)
    }

    fn classes(&self) -> Vec<RequestClass> {
        let class = |(name, share)| RequestClass { share: Some(share), ..RequestClass::new(name, 1.0) };
        self.requests.shares().map(class).collect()
    }

    fn route(&self) -> Route<'_> {
        match &self.way {
            Own::Http1(wire) => Route::Bytes(wire.clone(), self),
            Own::Http2(streams) => Route::Tasks(streams),
            Own::Http3(streams) => Route::Tasks(streams),
        }
    }
}

impl Dialogs for HttpWorkload {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Http1::new(self.requests.clone()))
    }
}
