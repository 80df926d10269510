//! What clients speak over, as a link tells it apart: a relay carries streams, or datagrams.

use serde::{Deserialize, Serialize};

/// How a relayed stream differs from one over the link itself.
pub const TCP_DIFFERS: &str = "handshakes are not delayed; a loss delays the stream by a round trip, but slows down no \
                               sender; a full queue stops the sender instead of dropping";
/// How relayed datagrams differ from packets over the link itself.
pub const UDP_DIFFERS: &str = "datagrams carry no marks of congestion; a damaged one does not arrive, as its checksum \
                               is wrong";

/// What is relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Streams.
    Tcp,
    /// Datagrams.
    Udp,
}

impl Transport {
    /// A relay of it, in words for the record.
    pub fn relay(self) -> &'static str {
        match self {
            Self::Tcp => "relay of TCP",
            Self::Udp => "relay of UDP",
        }
    }

    /// How what is relayed differs from what crosses the link itself.
    pub fn differs(self) -> &'static str {
        match self {
            Self::Tcp => TCP_DIFFERS,
            Self::Udp => UDP_DIFFERS,
        }
    }
}
