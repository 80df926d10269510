//! Connections, each with bounds on its head, its time and its number, and an end for all of them within two seconds.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

/// This many connections are served at once; one more is closed at once, so that its client knows.
const MOST_CONNECTIONS: usize = 512;
/// The head of a request, or of the next one on a connection that is kept, is there by then.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// A longer head is refused.
const LONGEST_HEAD_BYTES: usize = 16 * 1024;
/// Who takes nothing of what is sent for this long is cut off by the kernel.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// A connection lasts no longer; who watches comes again.
const LONGEST: Duration = Duration::from_secs(3600);
/// What is being answered when the server stops has this long to come to its end.
const END_WITHIN: Duration = Duration::from_millis(700);
/// After an error in accepting, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is ready; `leaving` then tells those who stream.
pub(crate) async fn serve(
    listener: TcpListener,
    pages: Router,
    stop: impl Future<Output = ()>,
    leaving: watch::Sender<bool>,
) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match (accepted, Arc::clone(&places).try_acquire_owned()) {
            (Ok((stream, _)), Ok(place)) => {
                let (pages, leaving) = (pages.clone(), leaving.subscribe());
                connections.spawn(async move {
                    attend(stream, pages, leaving).await;
                    drop(place);
                });
            }
            (Ok(_), Err(_)) => {}
            (Err(_), _) => tokio::time::sleep(PAUSE).await,
        }
    }
    drop(listener);
    leaving.send_replace(true);
    // What is left then is cut off.
    let _ =
        tokio::time::timeout(END_WITHIN, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

async fn attend(stream: TcpStream, pages: Router, mut leaving: watch::Receiver<bool>) {
    // Events are small, and are to be there at once.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, TAKEN_WITHIN.as_millis() as u32);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LONGEST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
    let mut connection = pin!(connection);
    // A client that goes away, or sends what is no request, costs its own connection.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = tokio::time::sleep(LONGEST) => {}
        () = left(&mut leaving) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.as_mut().await;
        }
    }
}

/// Waits until the server stops. What is looked at is not held on to, so that others can wait, too.
pub(crate) async fn left(leaving: &mut watch::Receiver<bool>) {
    // An error means that the server is gone.
    drop(leaving.wait_for(|leaving| *leaving).await.map(drop));
}
