//! Sends one POST at a time, with a time limit, over a separate connection.

use std::io;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// The time limit of a message, connection included.
const AT_MOST: Duration = Duration::from_secs(2);

/// A receiver's answer to a message.
pub(crate) enum Posted {
    /// The receiver accepted it.
    Taken,
    /// The receiver will never accept it.
    Refused(String),
    /// The receiver may accept it later.
    Later(String),
}

pub(crate) struct Poster {
    url: Url,
    /// `None` only while it is being dropped.
    runtime: Option<Runtime>,
}

impl Drop for Poster {
    /// Does not wait for the resolution of a name, which no time limit ends.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Poster {
    pub(crate) fn new(url: Url) -> io::Result<Self> {
        Ok(Self { url, runtime: Some(Builder::new_current_thread().enable_all().build()?) })
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it exists until the drop")
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], body: Vec<u8>) -> Posted {
        let exchange = async { tokio::time::timeout(AT_MOST, exchange(&self.url, headers, body)).await };
        match self.runtime().block_on(exchange) {
            Err(_) => Posted::Later(format!("no answer within {} s", AT_MOST.as_secs())),
            Ok(Err(why)) => Posted::Later(why),
            Ok(Ok(status)) if status.is_success() => Posted::Taken,
            Ok(Ok(status)) => {
                let why = format!("it answers {status}");
                // Both protocols define this: too many requests and server errors are temporary, all other errors are permanent.
                let passes = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
                if passes { Posted::Later(why) } else { Posted::Refused(why) }
            }
        }
    }
}

/// Sends a request and reads the head of its answer.
async fn exchange(url: &Url, headers: &[(&str, &str)], body: Vec<u8>) -> Result<StatusCode, String> {
    let words = |error: &dyn std::error::Error| error.to_string();
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(80);
    let stream =
        TcpStream::connect((host.trim_matches(['[', ']']), port)).await.map_err(|error| words(&error))?;
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| words(&error))?;
    let authority = if url.port().is_some() { format!("{host}:{port}") } else { host.to_owned() };
    let target = url.query().map_or_else(|| url.path().to_owned(), |query| format!("{}?{query}", url.path()));
    let mut request = Request::post(target).header("host", authority).header("connection", "close");
    request = request.header("user-agent", concat!("kendall/", env!("CARGO_PKG_VERSION")));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::from(body))).map_err(|error| words(&error))?;
    // The connection moves its bytes in its own task; the exchange gets its errors.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await.map_err(|error| words(&error))?.status())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Tokio resolves names on a thread for blocking work.
    #[test]
    fn a_resolution_that_hangs_does_not_delay_the_end() {
        let poster = Poster::new("http://127.0.0.1:1/".parse().unwrap()).unwrap();
        let (begin, has_begun) = channel();
        let (end, may_end) = channel::<()>();
        poster.runtime().spawn_blocking(move || {
            begin.send(()).unwrap();
            let _ = may_end.recv();
        });
        has_begun.recv().unwrap();
        drop(poster);
        drop(end);
    }
}
