//! The reference's programs, where they are installed: Debian's package nacl-tools.
#![allow(dead_code, reason = "each test program uses its part")]

use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The domain name of every server in these tests.
pub(crate) const NAME: &str = "server.example";
/// The extension of every server, which is the default of ours.
pub(crate) const EXTENSION: &str = "00000000000000000000000000000000";

/// Whether the programs are here.
pub(crate) fn is_here() -> bool {
    kendall_testbed::has_peer("curvecpprintkey", "--help")
}

/// A running program of the reference, stopped when dropped.
pub(crate) struct Peer {
    pub(crate) child: Child,
    /// Of a server, where it listens.
    pub(crate) address: SocketAddr,
}

impl Peer {
    /// `curvecpserver` on a free port. `message` is the shell command that starts its handler, `curvecpmessage` and a
    /// program.
    pub(crate) fn server(keys: &Path, message: &str) -> Self {
        let address = free_address();
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let child = Command::new("curvecpserver")
            .args([NAME, keys.to_str().unwrap(), &ip, &port, EXTENSION, "sh", "-c", message])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address }
    }

    /// `curvecpclient`, connected to a server.
    pub(crate) fn client(server_key: &str, address: SocketAddr, message: &str) -> Self {
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        let child = Command::new("curvecpclient")
            .args([NAME, server_key, &ip, &port, EXTENSION, "sh", "-c", message])
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, address }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// An address that no socket uses at present.
fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).unwrap()
}
