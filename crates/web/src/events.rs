//! The state of a run as server-sent events: first everything known, then the changes. Each event has a number, from which a
//! browser that lost the connection continues.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use tokio::sync::{OwnedSemaphorePermit, watch};

use crate::server::left;
use crate::watch::RunStatus;

/// The most watchers at once; a further one gets an error and has to try again.
pub(crate) const MOST_WATCHERS: usize = 128;
/// The time after which a browser that lost the connection reconnects.
const RETRY: Duration = Duration::from_secs(1);
/// The interval of keep-alive messages, by which both sides notice that the other is gone.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// A watcher.
struct Watcher {
    seen: watch::Receiver<Arc<RunStatus>>,
    /// What it has received so far.
    mark: String,
    first: bool,
    leaving: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Events after a mark, until the browser disconnects or the server stops.
pub(crate) fn events(
    seen: watch::Receiver<Arc<RunStatus>>,
    mark: String,
    leaving: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) -> Response {
    let watcher = Watcher { seen, mark, first: true, leaving, _place: place };
    let events = stream::unfold(watcher, |mut watcher| async move {
        if !watcher.first {
            tokio::select! {
                changed = watcher.seen.changed() => changed.ok()?,
                () = left(&mut watcher.leaving) => return None,
            }
        }
        let seen = Arc::clone(&watcher.seen.borrow_and_update());
        // Numbers and texts always serialise to JSON.
        let data = serde_json::to_string(&seen.event(&watcher.mark)).ok()?;
        let event = Event::default().id(seen.mark()).data(data);
        let event = if watcher.first { event.retry(RETRY) } else { event };
        watcher.first = false;
        watcher.mark = seen.mark();
        Some((Ok::<_, Infallible>(event), watcher))
    });
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    let mut response = Sse::new(events).keep_alive(heartbeat).into_response();
    // Stops proxies from buffering the stream.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
