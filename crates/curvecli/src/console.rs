//! What the subcommands print, and addresses that they read.

use std::io::{self, Write};
use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::Context;

/// Exit status after Ctrl-C, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Writes to standard output. A reader that is gone is no error.
pub(crate) fn out(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("cannot write the output"),
    }
}

/// Writes a line to standard error, if it can be.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// An address to listen on.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let mut addresses = text.to_socket_addrs().map_err(|_| "write HOST:PORT, such as 127.0.0.1:5003")?;
    addresses.next().ok_or_else(|| "the host has no address".into())
}
