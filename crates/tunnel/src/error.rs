//! Errors of a tunnel, worded for users.

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use kendall_curve::CurveError;
use kendall_remote::RemoteError;

/// An error of a tunnel.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The TUN device cannot be made.
    #[error("cannot create the TUN device {name}: {source}. {}", remedy(source))]
    Device {
        /// The name of the device.
        name: String,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// The TUN device failed while the tunnel was up.
    #[error("the TUN device failed: {0}; was it removed?")]
    DeviceLost(io::Error),
    /// The pool of addresses is too small.
    #[error(
        "the pool {pool} has no address for a client: give one of at least /{longest}, such as {example}"
    )]
    Pool {
        /// The pool as the user wrote it.
        pool: String,
        /// The longest prefix.
        longest: u8,
        /// A pool that would do.
        example: &'static str,
    },
    /// The file of assigned addresses is not valid.
    #[error("{}, line {line}: write a public key of 64 hexadecimal digits, a space, and a number", path.display())]
    AddressesLine {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The file of assigned addresses cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// The action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The error that the operating system reported.
        source: io::Error,
    },
    /// All addresses are taken.
    #[error(
        "all {0} addresses of the pool are assigned: serve a larger one, or remove keys that are no longer used"
    )]
    Exhausted(u32),
    /// The addresses of the tunnel are in use at this machine.
    #[error(
        "the tunnel's network {network} overlaps a route of this machine ({route}): ask for another pool at the server"
    )]
    Overlap {
        /// The network of the tunnel.
        network: String,
        /// The route.
        route: String,
    },
    /// The server assigned a network with its own address in it.
    #[error(
        "the tunnel's network {network} has the server's own address {server} in it, so packets to the server would go into the \
         tunnel: ask for another pool at the server"
    )]
    ServerInside {
        /// The network of the tunnel.
        network: String,
        /// The address of the server.
        server: IpAddr,
    },
    /// The server assigned a network of the Internet.
    #[error(
        "the server assigned {network}, which is not a private network: ask for another pool at the server, or add --route \
         {network} to send these addresses through the tunnel"
    )]
    NotPrivate {
        /// The network of the tunnel.
        network: String,
    },
    /// A route cannot be set.
    #[error("`{command}` failed: {reason}")]
    Route {
        /// The command.
        command: String,
        /// The reason that the server gave.
        reason: String,
    },
    /// The server refused the client.
    #[error("the server refused: {0}")]
    Refused(String),
    /// The peer broke the protocol.
    #[error("{0}")]
    Protocol(String),
    /// The connection is lost.
    #[error("the connection was lost: {0}")]
    Lost(io::Error),
    /// Finding or reaching the server.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The connection.
    #[error(transparent)]
    Curve(#[from] CurveError),
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => "A tunnel needs the right CAP_NET_ADMIN: run it as root",
        io::ErrorKind::NotFound => "Load the kernel's module: modprobe tun",
        io::ErrorKind::ResourceBusy | io::ErrorKind::InvalidInput => {
            "A device of that name may exist: choose another name with --device"
        }
        _ => "See ip(8) for the devices of this machine",
    }
}

impl TunnelError {
    /// Whether a client that redials may meet better luck.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Lost(_)
                | Self::Curve(_)
                | Self::Remote(RemoteError::NoAnswer { .. } | RemoteError::Address { .. })
        )
    }
}

impl From<kendall_remote::BadMessage> for TunnelError {
    fn from(error: kendall_remote::BadMessage) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<kendall_remote::frame::FrameTooLong> for TunnelError {
    fn from(error: kendall_remote::frame::FrameTooLong) -> Self {
        Self::Protocol(error.to_string())
    }
}
