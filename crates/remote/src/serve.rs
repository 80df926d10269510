//! A server: admits clients by their keys, limits sessions, and ends them cleanly.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kendall_curve::curvecp::{DomainName, Extension, ServerConfig};
use kendall_curve::{Endpoint, KeyDirectory, Stream};
use tokio::io::AsyncWriteExt;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::authorized::AuthorizedKeys;
use crate::error::RemoteError;
use crate::opening::encode_refused;
use crate::refusal_log::RefusalLog;

/// Settings of a server of sessions.
#[derive(Debug)]
pub struct Sessions {
    /// The domain name that clients have to name.
    pub name: String,
    /// The server's key.
    pub keys: KeyDirectory,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// The clients that it admits; it does not answer others.
    pub authorized: Arc<AuthorizedKeys>,
    /// The most sessions at once; further clients are rejected with a reason.
    pub most: usize,
    /// Sessions at once of one key, at most; its further ones are refused, too.
    pub most_per_key: usize,
}

/// The largest number of connections of clients that are being refused, in addition to the sessions.
const REFUSALS: usize = 64;

/// How long the last packets of connections may take when the server ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// A signal to end, as a session waits for it.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// Waits until the session has to end.
    pub async fn requested(mut self) {
        // The sender is dropped only with the server.
        _ = self.0.wait_for(|stop| *stop).await;
    }
}

/// Serves sessions until `stop`: then it asks all sessions to end, and this returns when they have.
///
/// `bound` is called with the address; `session` serves one client, whose name in the file of keys it gets.
///
/// # Errors
/// [`RemoteError::Curve`] where the address cannot be used or the socket fails.
pub async fn serve<S, F>(
    sessions: Sessions,
    bound: impl FnOnce(SocketAddr),
    session: S,
    stop: impl Future<Output = ()>,
) -> Result<(), RemoteError>
where
    S: Fn(Stream, String, Stop) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let Sessions { name, keys, listen, authorized, most, most_per_key } = sessions;
    let name = DomainName::new(&name).map_err(kendall_curve::CurveError::from)?;
    let mut config = ServerConfig::new(keys.secret().clone(), Extension::default(), name);
    config.max_connections = most + REFUSALS;
    let admitted = authorized.clone();
    let mut refusals = RefusalLog::default();
    config.authorise = Some(Box::new(move |key, address| {
        let is_known = admitted.name_of(key).is_some();
        if !is_known {
            refusals.warn(Instant::now(), key, address);
        }
        is_known
    }));
    let endpoint = Endpoint::server(listen, config, keys.nonces()?)?;
    bound(endpoint.address());
    let places = Arc::new(Semaphore::new(most));
    // As many as keys that were admitted.
    let mut places_of: HashMap<[u8; 32], Arc<Semaphore>> = HashMap::new();
    let (end, ended) = watch::channel(false);
    let mut running = JoinSet::new();
    let mut stop = std::pin::pin!(stop);
    let result = loop {
        let stream = tokio::select! {
            () = &mut stop => break Ok(()),
            Some(_) = running.join_next() => continue,
            accepted = endpoint.accept() => match accepted {
                Ok(stream) => stream,
                Err(error) => break Err(error.into()),
            },
        };
        let key = stream.connection().peer();
        // A client may have been removed since the handshake.
        let Some(client) = authorized.name_of(&key) else { continue };
        let own = places_of.entry(key.0).or_insert_with(|| Arc::new(Semaphore::new(most_per_key))).clone();
        let Ok(own) = own.try_acquire_owned() else {
            tracing::warn!("{client} ({key:?}) is refused: it has {most_per_key} sessions");
            running.spawn(refuse(
                stream,
                format!("your key has {most_per_key} sessions there already; try again later"),
            ));
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            tracing::warn!("{client} ({key:?}) is refused: there are {most} sessions");
            running.spawn(refuse(stream, format!("it has {most} sessions already; try again later")));
            continue;
        };
        let serving = session(stream, client, Stop(ended.clone()));
        running.spawn(async move {
            serving.await;
            drop((place, own));
        });
    };
    end.send_replace(true);
    while running.join_next().await.is_some() {}
    // Clients learn now that their connections are over, not by a time-out.
    _ = timeout(FAREWELL, endpoint.idle()).await;
    result
}

async fn refuse(mut stream: Stream, why: String) {
    let mut bytes = Vec::new();
    encode_refused(&mut bytes, &why);
    if stream.write_all(&bytes).await.is_ok() {
        _ = stream.shutdown().await;
    }
}
