//! The kinds of transport that the laboratory compares, by name.

use std::fmt;
use std::str::FromStr;

use kendall_linkmodel as linkmodel;
use serde::{Deserialize, Serialize};

use crate::kinds::{curve, https, quic, tcp, tls};
use crate::transport::Transport;

/// A kind of transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// CurveCP.
    Curve,
    /// TCP, in the clear.
    Tcp,
    /// TLS 1.3 over TCP.
    Tls,
    /// QUIC: TLS 1.3 over UDP, one stream for each connection.
    Quic,
    /// A request of HTTP/1.1 over TLS 1.3, whose bodies are the streams.
    Https,
}

impl Kind {
    /// Every kind of transport, in the order of reports.
    pub const ALL: [Self; 5] = [Self::Curve, Self::Tcp, Self::Tls, Self::Quic, Self::Https];

    /// The transport's name in files, URLs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Curve => curve::NAME,
            Self::Tcp => tcp::NAME,
            Self::Tls => tls::NAME,
            Self::Quic => quic::NAME,
            Self::Https => https::NAME,
        }
    }

    /// The protocol of the kernel under it.
    pub fn carrier(self) -> linkmodel::Transport {
        match self {
            Self::Curve | Self::Quic => linkmodel::Transport::UDP,
            Self::Tcp | Self::Tls | Self::Https => linkmodel::Transport::TCP,
        }
    }

    /// The transport itself.
    pub fn transport(self) -> &'static dyn Transport {
        match self {
            Self::Curve => &curve::Curve,
            Self::Tcp => &tcp::Tcp,
            Self::Tls => &tls::Tls,
            Self::Quic => &quic::Quic,
            Self::Https => &https::Https,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == text)
            .ok_or_else(|| format!("must be one of {}, not {text:?}", Self::ALL.map(Self::name).join(", ")))
    }
}
