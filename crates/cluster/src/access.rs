//! The connection to NATS: address, credentials, certificates, and the queue.

use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use async_nats::jetstream::{self, consumer, stream};
use async_nats::{Client, ConnectOptions, Event};
use url::Url;

use crate::error::ClusterError;
use crate::protocol::{MOST_BYTES, Queue, STREAM, WORK};

/// How long connecting may take, and how long an answer of the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between attempts to connect again.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a chunk is with a worker that gives no sign before it is delivered to another one. A worker that tests gives one
/// every [`PROGRESS`].
const ACK_WAIT: Duration = Duration::from_secs(5);
/// How often a worker shows that it still tests a chunk.
pub(crate) const PROGRESS: Duration = Duration::from_millis(1500);
/// What the queue may hold; far more than coordinators publish.
const MOST_CHUNKS: i64 = 1_000_000;
/// The most workers that wait for a chunk at the same time.
const MOST_WAITING: i64 = 16_384;
const MOST_QUEUE_BYTES: i64 = 1 << 30;
/// A chunk that no worker took for this long is dropped; its coordinator publishes it again.
const MOST_AGE: Duration = Duration::from_secs(3600);

/// The address of a cluster: one or several servers of NATS, separated by commas, and the user.
#[derive(Clone, PartialEq, Eq)]
pub struct ClusterAddress {
    servers: Vec<String>,
    user: Option<(String, String)>,
    has_tls: bool,
}

impl FromStr for ClusterAddress {
    type Err = ClusterError;

    fn from_str(text: &str) -> Result<Self, ClusterError> {
        // The text can have a password.
        let invalid = || ClusterError::Address(text.rsplit('@').next().unwrap_or_default().to_owned());
        let (mut servers, mut user, mut has_tls) = (Vec::new(), None, false);
        for server in text.split(',') {
            let mut url = Url::parse(server.trim()).map_err(|_| invalid())?;
            let has_host = url.host_str().is_some_and(|host| !host.is_empty());
            let has_more =
                !matches!(url.path(), "" | "/") || url.query().is_some() || url.fragment().is_some();
            if !matches!(url.scheme(), "nats" | "tls") || !has_host || has_more {
                return Err(invalid());
            }
            has_tls |= url.scheme() == "tls";
            if !url.username().is_empty() {
                let plain = |text: &str| percent_decoded(text).ok_or_else(invalid);
                user = Some((plain(url.username())?, plain(url.password().unwrap_or_default())?));
            }
            url.set_username("").and_then(|()| url.set_password(None)).map_err(|()| invalid())?;
            servers.push(url.to_string());
        }
        Ok(Self { servers, user, has_tls })
    }
}

/// The text of a part of a URL.
fn percent_decoded(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        if first != b'%' {
            bytes.push(first);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = after;
    }
    String::from_utf8(bytes).ok()
}

/// Without credentials.
impl fmt::Display for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.servers.join(","))
    }
}

impl fmt::Debug for ClusterAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// How to connect to a cluster.
#[derive(Clone, Debug)]
pub struct ClusterAccess {
    /// The address.
    pub address: ClusterAddress,
    /// A file of credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// A file with the certificate of the authority that signed the server's; the system's authorities if left out.
    pub authority: Option<PathBuf>,
}

impl ClusterAccess {
    /// Access without a file.
    pub fn new(address: ClusterAddress) -> Self {
        Self { address, credentials: None, authority: None }
    }

    /// Connects. A connection that breaks later is made again without end.
    pub(crate) async fn connect(&self, name: &str) -> Result<Client, ClusterError> {
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(PATIENCE)
            .request_timeout(Some(PATIENCE))
            .ping_interval(PATIENCE)
            .max_reconnects(None)
            .reconnect_delay_callback(|attempt| AGAIN.min(Duration::from_millis(20) * attempt.min(50) as u32))
            .require_tls(self.address.has_tls)
            .event_callback(async |event| log(&event));
        if let Some((user, password)) = &self.address.user {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(path) = &self.credentials {
            let broken = |source| ClusterError::Credentials { path: path.clone(), source };
            options = options.credentials_file(path).await.map_err(broken)?;
        }
        if let Some(path) = &self.authority {
            File::open(path).map_err(|source| ClusterError::Certificates { path: path.clone(), source })?;
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        let failed = |reason: String| ClusterError::Connect { address: self.address.to_string(), reason };
        options.connect(self.address.servers.clone()).await.map_err(|error| failed(error.to_string()))
    }
}

fn log(event: &Event) {
    match event {
        Event::Connected => tracing::info!("connected to the cluster"),
        Event::Disconnected => tracing::warn!("lost the connection to the cluster; connecting again"),
        other => tracing::debug!(%other, "cluster"),
    }
}

/// Creates the queue and its consumers, if they do not exist.
pub(crate) async fn create_queue(context: &jetstream::Context) -> Result<stream::Stream, ClusterError> {
    let config = stream::Config {
        name: STREAM.into(),
        subjects: vec![WORK.into()],
        retention: stream::RetentionPolicy::WorkQueue,
        discard: stream::DiscardPolicy::New,
        max_messages: MOST_CHUNKS,
        max_bytes: MOST_QUEUE_BYTES,
        max_message_size: MOST_BYTES as i32,
        max_age: MOST_AGE,
        duplicate_window: Duration::from_secs(120),
        storage: stream::StorageType::File,
        ..stream::Config::default()
    };
    let failed = |error: &dyn fmt::Display| ClusterError::Queue(error.to_string());
    let stream = context.get_or_create_stream(config).await.map_err(|error| failed(&error))?;
    for queue in Queue::ALL {
        create_consumer(&stream, queue).await?;
    }
    Ok(stream)
}

/// Creates the consumer of a queue, if it does not exist.
pub(crate) async fn create_consumer(stream: &stream::Stream, queue: Queue) -> Result<(), ClusterError> {
    let config = consumer::pull::Config {
        durable_name: Some(queue.name().into()),
        filter_subject: queue.filter(),
        ack_policy: consumer::AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: MOST_CHUNKS,
        max_waiting: MOST_WAITING,
        ..consumer::pull::Config::default()
    };
    let created = stream.get_or_create_consumer(queue.name(), config).await;
    created.map(drop).map_err(|error| ClusterError::Queue(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_user_and_several_servers() {
        let address: ClusterAddress = "nats://ada:p%40ss@one:4222,nats://two".parse().unwrap();
        assert_eq!(address.to_string(), "nats://one:4222,nats://two");
        assert_eq!(address.user, Some(("ada".into(), "p@ss".into())));
        assert!(!address.has_tls && "tls://[::1]:4222".parse::<ClusterAddress>().unwrap().has_tls);
    }

    #[test]
    fn errors_do_not_show_the_password() {
        for wrong in [
            "",
            "host:4222",
            "http://host",
            "nats://",
            "nats://host/queue",
            "nats://u:%zz@host",
            "nats://u:secret@host/x",
        ] {
            let error = wrong.parse::<ClusterAddress>().unwrap_err().to_string();
            assert!(
                error.contains("is not the address of a cluster") && !error.contains("secret"),
                "{error}"
            );
        }
    }
}
