//! How to connect.

use std::fs::File;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::{Client, ConnectOptions, Event};
use clap::Args;

use crate::address::NatsAddress;
use crate::error::NatsError;

/// How long connecting may take, and how long an answer of the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between attempts to connect again.
const AGAIN: Duration = Duration::from_secs(1);

/// The files that a connection can need, as options of a command line.
#[derive(Args, Clone, Debug, Default)]
pub struct NatsFiles {
    /// File with the credentials for the NATS server, as nsc writes it; user and password can be in its URL instead
    #[arg(id = "nats-creds", long = "nats-creds", value_name = "FILE")]
    pub credentials: Option<PathBuf>,

    /// File with the certificate of the authority that signed that of the NATS server, in PEM [default: the system's authorities]
    #[arg(id = "nats-ca", long = "nats-ca", value_name = "FILE")]
    pub authority: Option<PathBuf>,
}

/// How to connect to a NATS server.
#[derive(Clone, Debug)]
pub struct NatsAccess {
    /// The address.
    pub address: NatsAddress,
    /// The files.
    pub files: NatsFiles,
}

impl NatsAccess {
    /// Access without a file.
    pub fn new(address: NatsAddress) -> Self {
        Self { address, files: NatsFiles::default() }
    }

    /// Connects. A connection that breaks later is made again without end. `name` is that of this client in the server's log.
    ///
    /// # Errors
    /// Fails where a file cannot be read, and where the server does not admit this client within five seconds.
    pub async fn connect(&self, name: &str) -> Result<Client, NatsError> {
        let NatsAddress { servers, user, has_tls } = &self.address;
        let mut options = ConnectOptions::new()
            .name(name)
            .connection_timeout(PATIENCE)
            .request_timeout(Some(PATIENCE))
            .ping_interval(PATIENCE)
            .max_reconnects(None)
            .reconnect_delay_callback(|attempt| AGAIN.min(Duration::from_millis(20) * attempt.min(50) as u32))
            .require_tls(*has_tls)
            .event_callback(async |event| log(&event));
        if let Some((user, password)) = user {
            options = options.user_and_password(user.clone(), password.clone());
        }
        if let Some(path) = &self.files.credentials {
            let broken = |source| NatsError::Credentials { path: path.clone(), source };
            options = options.credentials_file(path).await.map_err(broken)?;
        }
        if let Some(path) = &self.files.authority {
            File::open(path).map_err(|source| NatsError::Certificates { path: path.clone(), source })?;
            options = options.add_root_certificates(path.clone()).require_tls(true);
        }
        let failed = |reason: String| NatsError::Connect { address: self.address.to_string(), reason };
        options.connect(servers.clone()).await.map_err(|error| failed(error.to_string()))
    }
}

fn log(event: &Event) {
    match event {
        Event::Connected => tracing::info!("connected to the NATS server"),
        Event::Disconnected => tracing::warn!("lost the connection to the NATS server; connecting again"),
        other => tracing::debug!(%other, "NATS server"),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use kendall_testbed::Nats;

    use super::*;

    async fn refused(access: &NatsAccess) -> String {
        access.connect("test").await.expect_err("it is refused").to_string()
    }

    #[tokio::test]
    async fn only_a_client_with_the_password_is_admitted() {
        let users = "authorization { user: me, password: sesame }";
        let Some(nats) = Nats::with(users) else { return };
        let access = |user: &str| NatsAccess::new(nats.url_of(user).parse().unwrap());
        access("me:sesame@").connect("test").await.unwrap();
        let why = refused(&access("me:wrong@")).await;
        assert!(why.contains("cannot connect to the NATS server") && !why.contains("wrong"), "{why}");
        let files = NatsFiles { credentials: Some(nats.folder().join("missing")), authority: None };
        let why = refused(&NatsAccess { files, ..access("") }).await;
        assert!(why.contains("cannot read the credentials"), "{why}");
    }

    #[tokio::test]
    async fn a_server_with_tls_is_checked_against_the_authority() {
        let folder = kendall_testbed::tempdir().unwrap();
        let [key, certificate, missing] =
            ["key.pem", "cert.pem", "missing.pem"].map(|name| folder.path().join(name));
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        fs::write(&certificate, made.cert.pem()).unwrap();
        let tls = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}");
        let Some(nats) = Nats::with(&tls) else { return };
        let access = |authority| {
            let address = nats.url().replace("nats://", "tls://").parse().unwrap();
            NatsAccess { address, files: NatsFiles { credentials: None, authority } }
        };
        access(Some(certificate)).connect("test").await.unwrap();
        let why = refused(&access(None)).await;
        assert!(why.contains("cannot connect"), "{why}");
        let why = refused(&access(Some(missing))).await;
        assert!(why.contains("cannot read the certificates"), "{why}");
    }
}
