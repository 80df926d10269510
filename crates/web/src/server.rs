//! Connections, with limits on their heads, their time and their number, and an end within two seconds.

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

/// The most connections at once; further ones are closed at once, so that the client notices.
const MOST_CONNECTIONS: usize = 512;
/// The time for the head of a request, also for the next request on a connection.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// A longer head is rejected.
const LONGEST_HEAD_BYTES: usize = 16 * 1024;
/// After this time without an acknowledgement the kernel closes the connection.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// The longest life of a connection; a watching browser reconnects.
const LONGEST: Duration = Duration::from_secs(3600);
/// The time that answers have to finish when the server stops.
const END_WITHIN: Duration = Duration::from_millis(700);
/// The pause after an error in accepting, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop` is ready; `leaving` then notifies the event streams.
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
    // Closes the remaining connections.
    let _ =
        tokio::time::timeout(END_WITHIN, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

async fn attend(stream: TcpStream, pages: Router, mut leaving: watch::Receiver<bool>) {
    // Events are small, and have to arrive at once.
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_tcp_user_timeout(&stream, TAKEN_WITHIN.as_millis() as u32);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LONGEST_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
    let mut connection = pin!(connection);
    // A client that disconnects or sends an invalid request ends its own connection only.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = tokio::time::sleep(LONGEST) => {}
        () = left(&mut leaving) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.as_mut().await;
        }
    }
}

/// Waits until the server stops. It does not keep the borrowed value, which would block other waiters.
pub(crate) async fn left(leaving: &mut watch::Receiver<bool>) {
    // An error means that the server has ended.
    drop(leaving.wait_for(|leaving| *leaving).await.map(drop));
}
