//! What a run says of itself, as server-sent events: all that is known first, then what is new, with a number by which a
//! browser that lost the connection goes on where it was.

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

/// This many watch at once; one more is told to come again.
pub(crate) const MOST_WATCHERS: usize = 128;
/// A browser that lost the connection comes again after this.
const RETRY: Duration = Duration::from_secs(1);
/// Where nothing happens, something is sent so often, by which both sides know that the other is there.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// One who watches.
struct Watcher {
    seen: watch::Receiver<Arc<RunStatus>>,
    /// What it has got so far.
    mark: String,
    first: bool,
    leaving: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

/// Events after a mark until the browser goes away or the server stops.
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
        // Numbers and texts have a form in JSON.
        let data = serde_json::to_string(&seen.event(&watcher.mark)).ok()?;
        let event = Event::default().id(seen.mark()).data(data);
        let event = if watcher.first { event.retry(RETRY) } else { event };
        watcher.first = false;
        watcher.mark = seen.mark();
        Some((Ok::<_, Infallible>(event), watcher))
    });
    let heartbeat = KeepAlive::new().interval(HEARTBEAT);
    let mut response = Sse::new(events).keep_alive(heartbeat).into_response();
    // A proxy in between is not to wait for more.
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
