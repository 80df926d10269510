//! A session at the directory server.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, ensure};
use kendall_chat::client::Client;
use kendall_chat::client::security::{Security, read_fingerprint};
use kendall_chat::password::Stretch;
use kendall_talk::PeerTransport;
use tokio::net::lookup_host;
use tokio::time::timeout;
use zeroize::Zeroizing;

use crate::failure::worded;
use crate::password;
use crate::profile::{Account, Profile};

/// How long the server has to answer a connection.
const PATIENCE: Duration = Duration::from_secs(15);

/// How often a session is kept alive: the server's lease is a minute.
pub const STAY_ALIVE: Duration = Duration::from_secs(20);

/// The user who runs a command.
pub struct User {
    /// The profile of the user.
    pub profile: Profile,
    /// The file with the password, unless the terminal asks for it.
    pub password_file: Option<PathBuf>,
    /// What carries the talks that the user begins.
    pub transport: PeerTransport,
}

impl User {
    /// The password of an account.
    ///
    /// # Errors
    /// Fails where it can be neither read nor asked for.
    pub fn password(&self, account: &Account) -> anyhow::Result<Zeroizing<String>> {
        password::read(self.password_file.as_deref(), &format!("Password of {}", account.name))
    }

    /// Logs in to the account of the profile.
    pub(crate) async fn log_in(&self) -> anyhow::Result<Client> {
        let account = self.profile.account()?;
        let password = self.password(&account)?;
        let mut client = connect(&account).await?;
        client.log_in(&account.name, &password, Stretch::default()).await.map_err(worded)?;
        Ok(client)
    }

    /// A new password for the user.
    pub(crate) fn new_password(&self) -> anyhow::Result<Zeroizing<String>> {
        password::read_new(self.password_file.as_deref())
    }
}

/// Connects to the server of an account.
///
/// # Errors
/// Fails where the server cannot be reached, is not the one that was pinned, or speaks another protocol.
pub async fn connect(account: &Account) -> anyhow::Result<Client> {
    let unknown = || format!("cannot find the server \"{}\": write HOST:PORT", account.server);
    let address = lookup_host(&account.server).await.with_context(unknown)?.next().with_context(unknown)?;
    let security = match &account.fingerprint {
        Some(digits) => Security::pinned(read_fingerprint(digits).map_err(anyhow::Error::msg)?),
        None => {
            ensure!(
                address.ip().is_loopback(),
                "the server {address} is on another machine: name the fingerprint of its certificate with --fingerprint; the server \
                 logs it when it starts"
            );
            Security::Plain
        }
    };
    let connecting = timeout(PATIENCE, Client::connect(address, &security)).await;
    connecting
        .with_context(|| format!("the server {address} has not answered within {PATIENCE:?}"))?
        .map_err(worded)
}

/// Where the socket of a talk is bound: on the loopback if the server is there, so that peers on one machine meet.
pub fn local(client: &Client) -> SocketAddr {
    let server = client.server_addr().ip();
    let ip: IpAddr = match server {
        _ if server.is_loopback() => server,
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    SocketAddr::new(ip, 0)
}
