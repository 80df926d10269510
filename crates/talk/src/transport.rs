//! The transport of a talk, and the stream that it provides.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::str::FromStr;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::quic::QuicStream;

/// The protocol that carries a talk. The peer that calls chooses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PeerTransport {
    /// CurveCP.
    #[default]
    CurveCp,
    /// QUIC (RFC 9000), in which both peers prove their keys.
    Quic,
}

impl fmt::Display for PeerTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CurveCp => "curvecp",
            Self::Quic => "quic",
        })
    }
}

impl FromStr for PeerTransport {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "curvecp" => Ok(Self::CurveCp),
            "quic" => Ok(Self::Quic),
            _ => Err(format!("must be curvecp or quic, not {text:?}")),
        }
    }
}

/// An encrypted stream to a peer that has proved its key.
#[derive(Debug)]
pub enum PeerStream {
    /// Over CurveCP.
    CurveCp(kendall_curve::Stream),
    /// Over QUIC.
    Quic(QuicStream),
}

/// The connection of a [`PeerStream`], which may outlive the stream.
#[derive(Clone, Debug)]
pub enum PeerConnection {
    /// Over CurveCP.
    CurveCp(kendall_curve::Connection),
    /// Over QUIC.
    Quic(quinn::Connection, quinn::Endpoint),
}

impl PeerStream {
    /// The connection of the stream.
    pub fn connection(&self) -> PeerConnection {
        match self {
            Self::CurveCp(stream) => PeerConnection::CurveCp(stream.connection().clone()),
            Self::Quic(stream) => {
                let (connection, endpoint) = stream.connection();
                PeerConnection::Quic(connection, endpoint)
            }
        }
    }
}

impl PeerConnection {
    /// The address from which the peer's packets arrive.
    pub fn address(&self) -> Option<SocketAddr> {
        match self {
            Self::CurveCp(connection) => connection.address(),
            Self::Quic(connection, _) => {
                let address = connection.remote_address();
                Some(SocketAddr::new(address.ip().to_canonical(), address.port()))
            }
        }
    }

    /// Ends the connection of a stream that both sides have shut down, and waits until the peer knows.
    pub async fn closed(&self) {
        match self {
            Self::CurveCp(connection) => _ = connection.closed().await,
            Self::Quic(connection, endpoint) => {
                connection.close(quinn::VarInt::from_u32(0), b"");
                endpoint.wait_idle().await;
            }
        }
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::CurveCp(stream) => Pin::new(stream).poll_read(context, into),
            Self::Quic(stream) => Pin::new(stream).poll_read(context, into),
        }
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::CurveCp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Quic(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::CurveCp(stream) => Pin::new(stream).poll_flush(context),
            Self::Quic(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::CurveCp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Quic(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
