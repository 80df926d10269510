//! The metrics endpoint: answers `GET /metrics` over HTTP/1.1.
//!
//! A connection without a request blocks no scraper: every connection is accepted at once, and if there are too many, the oldest
//! one without a request is closed.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use crate::shared::{Shared, System};

/// The most open connections; for a further one another is closed.
const MAX_CONNECTIONS: usize = 64;
/// The time for the head of a request, from the opening of the connection.
const HEAD_DEADLINE: Duration = Duration::from_secs(2);
/// The time for a scraper's request and the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// The delay after a failed accept.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Answers scrapers for ever; without a listener, waits for ever.
pub(crate) async fn run<S: System>(listener: Option<TcpListener>, shared: Arc<Shared<S>>) {
    let Some(listener) = listener else { return std::future::pending().await };
    let mut open = Connections::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            sleep(RETRY_AFTER).await;
            continue;
        };
        open.make_room();
        let asked = Arc::new(AtomicBool::new(false));
        let (shared, has_asked) = (Arc::clone(&shared), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            let service = service_fn(|request| {
                has_asked.store(true, Ordering::Relaxed);
                let response = respond(&request, &shared);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_DEADLINE)
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // A scraper that fails or is slow only affects itself.
            let _ = timeout(PATIENCE, connection).await;
        });
        open.0.push_back(Connection { task: task.abort_handle(), asked });
    }
}

/// The open connections, the oldest first.
#[derive(Default)]
struct Connections(VecDeque<Connection>);

struct Connection {
    task: AbortHandle,
    /// Whether a request was received.
    asked: Arc<AtomicBool>,
}

impl Connections {
    /// Closes the oldest connection without a request, or the oldest of all, if there are too many for a further one.
    fn make_room(&mut self) {
        self.0.retain(|connection| !connection.task.is_finished());
        if self.0.len() < MAX_CONNECTIONS {
            return;
        }
        let idle = self.0.iter().position(|connection| !connection.asked.load(Ordering::Relaxed));
        if let Some(closed) = self.0.remove(idle.unwrap_or(0)) {
            closed.task.abort();
        }
    }
}

fn respond<S: System>(request: &Request<Incoming>, shared: &Shared<S>) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, shared.metrics_text()),
        (&Method::GET | &Method::HEAD, _) => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".into()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are supported\n".into()),
    };
    let kind = match status {
        StatusCode::OK => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, kind)
        .body(Full::new(Bytes::from(text)))
        .expect("the header is a valid one")
}
