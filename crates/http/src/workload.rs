//! The workload: requests to one HTTP server, and the way to it.

use std::net::SocketAddr;
use std::sync::Arc;

use kendall_load::{Dialog, Dialogs, Request, RequestClass, Reuse, Transport, Way, Wire, Workload};
use rustls::pki_types::ServerName;

use crate::http1::Http1;
use crate::options::{HttpError, Options};
use crate::origin::Scheme;
use crate::requests::Requests;
use crate::tls;

/// Requests to one HTTP server.
#[derive(Debug)]
pub struct HttpWorkload {
    requests: Arc<Requests>,
    reuse: Reuse,
    way: Own,
}

/// The way of a version.
#[derive(Debug)]
enum Own {
    Http1(Wire),
}

impl HttpWorkload {
    /// The requests that the options describe, drawn from a seed, for the server at this address.
    ///
    /// # Errors
    /// Fails on a URL, a request or a file that cannot be used, and where TLS cannot be set up.
    pub fn new(address: SocketAddr, options: &Options, seed: u64) -> Result<Self, HttpError> {
        let requests = Arc::new(Requests::new(address, options, seed)?);
        let &Options { version, reuse, .. } = options;
        let origin = requests.origin();
        let transport = match origin.scheme {
            Scheme::Http => Transport::Tcp,
            Scheme::Https => {
                let name = ServerName::try_from(origin.host.clone())
                    .map_err(|error| HttpError::Url { url: options.url.clone(), why: error.to_string() })?;
                Transport::Tls { config: Arc::new(tls::config(&options.trust, version)?), name }
            }
        };
        let way = Own::Http1(Wire { to: address, transport, reuse });
        Ok(Self { requests, reuse, way })
    }
}

impl Workload for HttpWorkload {
    fn request(&self, index: u64) -> Request {
        let which = self.requests.which(index);
        let bytes = match self.way {
            Own::Http1(_) => self.requests.http1(which, index, self.reuse),
        };
        Request { class: which as u32, bytes }
    }

    fn classes(&self) -> Vec<RequestClass> {
        self.requests.names().map(|name| RequestClass { name: name.into(), weight: 1.0 }).collect()
    }

    fn way(&self) -> Way<'_> {
        match &self.way {
            Own::Http1(wire) => Way::Bytes(wire.clone(), self),
        }
    }
}

impl Dialogs for HttpWorkload {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Http1::new(self.requests.clone()))
    }
}
