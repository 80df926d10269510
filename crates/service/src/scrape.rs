//! The metrics endpoint: answers `GET /metrics` over HTTP/1.1.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::shared::{Shared, System};

/// Scrapers at a time; further ones wait in the kernel's backlog.
const MAX_SCRAPERS: usize = 16;
/// The time one scraper gets for its request and the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// After a failed accept.
const RETRY_AFTER: Duration = Duration::from_millis(100);

/// Answers scrapers for ever; without a listener, waits for ever.
pub(crate) async fn run<S: System>(listener: Option<TcpListener>, shared: Arc<Shared<S>>) {
    let Some(listener) = listener else { return std::future::pending().await };
    let scrapers = Arc::new(Semaphore::new(MAX_SCRAPERS));
    loop {
        let permit =
            Arc::clone(&scrapers).acquire_owned().await.expect("the semaphore of scrapers is never closed");
        let Ok((stream, _)) = listener.accept().await else {
            sleep(RETRY_AFTER).await;
            continue;
        };
        let shared = Arc::clone(&shared);
        tokio::spawn(async move {
            let service = service_fn(|request| {
                let response = respond(&request, &shared);
                async { Ok::<_, Infallible>(response) }
            });
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .keep_alive(false)
                .serve_connection(TokioIo::new(stream), service);
            // A scraper that fails or dawdles harms only itself.
            let _ = timeout(PATIENCE, connection).await;
            drop(permit);
        });
    }
}

fn respond<S: System>(request: &Request<Incoming>, shared: &Shared<S>) -> Response<Full<Bytes>> {
    let (status, text) = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/metrics") => (StatusCode::OK, shared.metrics_text()),
        (&Method::GET | &Method::HEAD, _) => (StatusCode::NOT_FOUND, "the metrics are at /metrics\n".into()),
        _ => (StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered\n".into()),
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
