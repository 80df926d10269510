//! A session at the directory server.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use kendall_chat::client::Client;
use kendall_chat::client::security::{Security, read_fingerprint};
use kendall_chat::password::Stretch;
use kendall_chat::protocol::Push;
use kendall_talk::PeerTransport;
use tokio::net::lookup_host;
use tokio::time::{interval, timeout};
use zeroize::Zeroizing;

use crate::failure::worded;
use crate::output::note;
use crate::password;
use crate::profile::{Account, Profile};

/// How long the server has to answer a connection.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long the last packets of a connection may take.
pub const FAREWELL: Duration = Duration::from_secs(2);

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

/// Keeps a session while its user talks with a peer. A talk needs no directory, so an error of it does not end the talk.
pub(crate) async fn stay(client: &mut Client) -> Infallible {
    let Err(error) = keep_session(client).await;
    note(&format!("{error:#}; the talk goes on"));
    std::future::pending().await
}

async fn keep_session(client: &mut Client) -> anyhow::Result<Infallible> {
    let mut alive = interval(STAY_ALIVE);
    loop {
        tokio::select! {
            // Messages that are not taken pile up, until the server ends the session.
            push = client.next_push() => if let Push::SessionEnded { why } = push.map_err(worded)? {
                bail!("the server ended the session: {why:?}");
            },
            _ = alive.tick() => client.stay_alive().await.map_err(worded)?,
        }
    }
}

/// Ends the session of a command that is done. If this fails, the session ends with the connection, and the work stays done.
pub(crate) async fn log_out(mut client: Client) {
    _ = timeout(FAREWELL, client.log_out()).await;
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
