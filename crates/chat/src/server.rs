//! The directory server: its options, and its sockets.

mod comparison;
pub mod durable;
pub(crate) mod hall;
pub mod keys;
mod meeting_point;
mod sessions;
pub mod store;
mod wire;
mod work;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kendall_record::RecordError;
use kendall_service::{Config, InSessions, Server, ServiceError, SessionLimits, WhenFull};
use tokio::runtime::Runtime;

use crate::directory::Limits;
use crate::password::server::Passwords;
use hall::Hall;
use keys::{Identity, KeyError};
use store::Store;
use work::Office;

pub use sessions::Chat;

/// The requests of a connection that are in service at a time.
const REQUESTS: usize = 8;
/// Messages of a connection that may wait until its client takes them, and their bytes.
const MESSAGES: usize = 1024;
const MESSAGE_BYTES: usize = 256 * 1024;
/// A connection whose session has ended stays open for this long.
const AFTER_LEASE: Duration = Duration::from_secs(5);

/// The options of the directory server.
pub struct DirectoryOptions {
    /// The options that every server has. Its workers wait for the store, so there may be more than processors.
    pub service: Config,
    /// The bounds of the directory.
    pub limits: Limits,
    /// The store of the accounts.
    pub store: Arc<dyn Store>,
    /// The runtime of the store's futures: with I/O, timers and at least one thread.
    pub runtime: Runtime,
    /// The keys of the passwords.
    pub passwords: Passwords,
    /// The certificate; without it, the server listens on the loopback only.
    pub identity: Option<Identity>,
}

/// An error that prevents the directory server from starting, or from finishing.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ChatError {
    #[error(
        "cannot listen on {address} without TLS: others could read which users talk to each other, and with --auth argon2id the \
         passwords; add --tls, or listen on 127.0.0.1"
    )]
    PlainBeyondLoopback { address: SocketAddr },
    #[error("cannot start the runtime of the store: {0}")]
    Runtime(io::Error),
    #[error("cannot open the store of accounts: {0}; choose another with --store")]
    Store(String),
    #[error(
        "cannot open the meeting point of the clients, UDP at the address of the server: {0}; choose another address with --listen"
    )]
    MeetingPoint(io::Error),
    #[error(
        "the keys of a store that outlives the server must, too; name a folder for them with --keys, for example --keys \
         chat-keys, or set --throwaway on for an experiment"
    )]
    NoKeys,
    #[error(
        "there is no folder for accounts, because neither XDG_DATA_HOME nor HOME is set; name a store with --store"
    )]
    NoFolder,
    #[error("cannot make a folder for accounts in {path}: {source}; name a store with --store")]
    Folder { path: PathBuf, source: io::Error },
    #[error("a certificate needs its key; give both --certificate and --certificate-key, or neither")]
    HalfCertificate,
    #[error(transparent)]
    Keys(#[from] KeyError),
    #[error(transparent)]
    Service(#[from] ServiceError),
    #[error(transparent)]
    Counts(#[from] RecordError),
}

/// A server that listens.
pub type ChatServer = Server<InSessions<Chat>>;

/// Opens the sockets of the directory server: TCP for its clients, and UDP of the same number, where clients meet.
///
/// # Errors
/// Fails if the address is not of the loopback and there is no certificate, and if an address is taken.
pub fn bind(options: DirectoryOptions) -> Result<ChatServer, ChatError> {
    let DirectoryOptions { mut service, limits, store, runtime, passwords, identity } = options;
    if identity.is_none() && !service.listen.ip().is_loopback() {
        return Err(ChatError::PlainBeyondLoopback { address: service.listen });
    }
    let session_limits = SessionLimits {
        messages: MESSAGES,
        bytes: MESSAGE_BYTES,
        when_full: WhenFull::EndSession,
        requests: REQUESTS,
        idle: limits.lease + AFTER_LEASE,
    };
    let hall = Arc::new(Hall::new(limits));
    let (relay, seen) = meeting_point::bind(&runtime, service.listen)?;
    service.listen = relay.address().map_err(ChatError::MeetingPoint)?;
    let handle = relay.handle();
    meeting_point::run(&runtime, relay, seen, Arc::clone(&hall));
    let decoy = passwords.decoy();
    let chat = Chat::new(Office { hall, passwords, store, runtime, decoy }, handle);
    Ok(match identity {
        Some(identity) => Server::bind_secured_sessions(service, session_limits, identity.tls, chat)?,
        None => Server::bind_sessions(service, session_limits, chat)?,
    })
}
