//! Settings of an endpoint: for its server role, and for each connection that it opens.

use crate::layer::MessageConfig;
use crate::{Capabilities, DomainName, Extension, PublicKey, SecretKey};
use std::net::SocketAddr;
use std::time::Duration;

/// Decides whether a client may connect, by its long-term public key and address. It runs after the client has proved
/// that it owns the key.
pub type Authorise = Box<dyn FnMut(&PublicKey, SocketAddr) -> bool + Send>;

/// The server role of an endpoint.
pub struct ServerConfig {
    /// The long-term secret key.
    pub secret: SecretKey,
    /// The extension that packets must carry.
    pub extension: Extension,
    /// The domain name that Initiates must carry.
    pub name: DomainName,
    /// The message layer of each connection.
    pub message: MessageConfig,
    /// Connections at once, at most.
    pub max_connections: usize,
    /// When all connections are taken, a new client replaces the one that was silent longest, if it was silent for at
    /// least this long.
    pub evictable_after: Duration,
    /// Hellos answered per second in the long run, and Initiates without a connection that are opened.
    pub hellos_per_s: u32,
    /// Hellos answered at once after a calm, and Initiates opened.
    pub hello_burst: u32,
    /// Which clients may connect; all, if absent.
    pub authorise: Option<Authorise>,
}

impl ServerConfig {
    /// A server for all clients, with 10,000 connections and 4,000 Hellos per second: these cost about a fifth of a core.
    pub fn new(secret: SecretKey, extension: Extension, name: DomainName) -> Self {
        Self {
            secret,
            extension,
            name,
            message: MessageConfig::default(),
            max_connections: 10_000,
            evictable_after: Duration::from_secs(10),
            hellos_per_s: 4_000,
            hello_burst: 1_000,
            authorise: None,
        }
    }
}

impl std::fmt::Debug for ServerConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (extension, name) = (&self.extension, &self.name);
        f.debug_struct("ServerConfig")
            .field("extension", extension)
            .field("name", name)
            .finish_non_exhaustive()
    }
}

/// A connection to open.
#[derive(Clone, Debug)]
pub struct ClientConfig {
    /// The client's long-term key, by which the server knows it; a fresh one makes an anonymous client.
    pub identity: SecretKey,
    /// The server's long-term public key.
    pub server: PublicKey,
    /// The server's extension.
    pub server_extension: Extension,
    /// The server's domain name.
    pub name: DomainName,
    /// One to eight addresses of the server, tried in random order, each a quarter of a second after
    /// the one before, until one answers. If that one then does not open the connection, the others get their turn.
    pub addresses: Vec<SocketAddr>,
    /// The client's extension. Random if absent, which lets one socket carry many connections to one server.
    pub extension: Option<Extension>,
    /// The capabilities that the Hello announces to a server of ours; zeros announce nothing.
    pub capabilities: Capabilities,
    /// The message layer of the connection.
    pub message: MessageConfig,
}
