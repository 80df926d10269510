//! Exit codes of the subcommands, and addresses that they read.

use std::net::{SocketAddr, ToSocketAddrs};

/// Exit status after Ctrl-C, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// An address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|_| "write HOST:PORT, such as 127.0.0.1:5003")?;
    addresses.next().ok_or_else(|| "the host has no address".into())
}
