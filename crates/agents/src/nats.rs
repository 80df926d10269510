//! The connection to the NATS server.

use std::path::PathBuf;

use async_nats::{Client, ConnectOptions, ServerAddr};
use clap::Args;

/// The credentials for a NATS server, for agents and for what uses them.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct NatsOptions {
    /// The credentials for the NATS server, as nsc writes them. User and password can be in its URL instead, and tls:// requires TLS
    #[arg(long, value_name = "FILE")]
    pub(crate) nats_creds: Option<PathBuf>,
}

/// The reason why there is no connection to a NATS server.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NatsError {
    #[error("{shown} is not the URL of a NATS server; write nats://HOST:PORT, or tls://HOST:PORT")]
    Url { shown: String },
    #[error("cannot read the credentials {}: {source}", path.display())]
    Credentials { path: PathBuf, source: std::io::Error },
    #[error("cannot connect to the NATS server at {shown}: {why}")]
    Connect { shown: String, why: String },
}

/// A URL without what precedes its host, which may be a password.
fn without_secrets(url: &str) -> String {
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://{host}"),
        _ => url.to_owned(),
    }
}

pub(crate) async fn connect(url: &str, options: &NatsOptions) -> Result<Client, NatsError> {
    let shown = without_secrets(url);
    let address: ServerAddr = url.parse().map_err(|_| NatsError::Url { shown: shown.clone() })?;
    let mut with = ConnectOptions::new().name("kendall");
    if let (Some(user), Some(password)) = (address.username(), address.password()) {
        with = with.user_and_password(user.into(), password.into());
    }
    if let Some(path) = &options.nats_creds {
        let failed = |source| NatsError::Credentials { path: path.clone(), source };
        with = with.credentials_file(path).await.map_err(failed)?;
    }
    with.connect(address).await.map_err(|error| NatsError::Connect { shown, why: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        assert_eq!(without_secrets("nats://me:secret@h:4222"), "nats://h:4222");
        assert_eq!(without_secrets("nats://h:4222"), "nats://h:4222");
    }
}
