//! Flows in the user's notation: "curve", "3xtcp", "quic+5", "ssh".

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use kendall_flows::{ECHO_PORT, LinkDirection};
use serde::{Deserialize, Serialize};

use super::peer::Peer;
use super::tunnel::Tunnel;
use crate::kind::Kind;

/// The most flows of a run.
const MOST: usize = 64;

/// The source of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Source {
    /// A transport of the laboratory.
    Ours(Kind),
    /// A third-party program.
    Peer(Peer),
    /// TCP within a tunnel.
    Tunnel(Tunnel),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(kind) => kind.fmt(f),
            Self::Peer(peer) => f.write_str(peer.name()),
            Self::Tunnel(tunnel) => f.write_str(tunnel.name()),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::all().find(|source| source.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|source| source.to_string()).collect();
            format!("{text:?} is not a source of bytes; write one of {}", names.join(", "))
        })
    }
}

impl Source {
    /// Every source.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        let ours = Kind::ALL.map(Self::Ours).into_iter();
        ours.chain(Peer::ALL.map(Self::Peer)).chain(Tunnel::ALL.map(Self::Tunnel))
    }

    /// The laboratory's transport that carries its bytes; `None` for a third-party program.
    pub(crate) fn kind(self) -> Option<Kind> {
        match self {
            Self::Ours(kind) => Some(kind),
            Self::Tunnel(_) => Some(Kind::Tcp),
            Self::Peer(_) => None,
        }
    }

    /// The address to which its client connects, with the server's address on the link.
    pub(crate) fn address(self, on_link: IpAddr) -> SocketAddr {
        let address = match self {
            Self::Tunnel(tunnel) => tunnel.server(),
            Self::Ours(_) | Self::Peer(_) => on_link,
        };
        SocketAddr::new(address, self.port())
    }

    /// The address to which the client of its echoes connects.
    pub(crate) fn echo_address(self, on_link: IpAddr) -> SocketAddr {
        match self {
            // A tunnel's only server answers echoes, too.
            Self::Tunnel(_) => self.address(on_link),
            Self::Ours(_) | Self::Peer(_) => SocketAddr::new(on_link, ECHO_PORT),
        }
    }

    /// The port of its server, on the link and within a tunnel.
    pub(crate) fn port(self) -> u16 {
        let place = Self::all().position(|one| one == self).expect("all are in it");
        ECHO_PORT + 1 + u16::try_from(place).expect("there are few")
    }
}

impl TryFrom<String> for Source {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Source> for String {
    fn from(source: Source) -> Self {
        source.to_string()
    }
}

/// A flow of a run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Flow {
    /// The flow's source.
    pub(crate) source: Source,
    /// The time between the start of the first flows and the start of this flow.
    pub(crate) after: Duration,
    /// The direction of its bytes.
    #[serde(default)]
    pub(crate) way: LinkDirection,
}

/// A flow that begins at once: "curve", "up:curve".
impl FromStr for Flow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (way, name) =
            text.strip_prefix("up:").map_or((LinkDirection::Down, text), |name| (LinkDirection::Up, name));
        let source: Source = name.parse()?;
        if source.kind().is_none() && way == LinkDirection::Up {
            return Err(format!("{source} sends from server to client only"));
        }
        Ok(Self { source, after: Duration::ZERO, way })
    }
}

/// Parses flows with commas between them: "3xtcp,curve+5,up:quic" is three of TCP, one of CurveCP that begins 5 s later, and one of
/// QUIC from client to server.
pub(crate) fn read_flows(text: &str) -> Result<Vec<Flow>, String> {
    let mut flows = Vec::new();
    for one in text.split(',') {
        let (count, rest) = match one.split_once('x') {
            Some((count, rest)) if !count.is_empty() && count.bytes().all(|byte| byte.is_ascii_digit()) => {
                (count.parse().map_err(|_| format!("{count} flows are too many"))?, rest)
            }
            _ => (1_usize, one),
        };
        let (name, after) = rest.split_once('+').unwrap_or((rest, "0"));
        let after_s: f64 = after.parse().map_err(|_| format!("{after:?} is not a number of seconds"))?;
        let after = Duration::try_from_secs_f64(after_s)
            .map_err(|_| format!("a flow cannot begin after {after} seconds"))?;
        let flow = Flow { after, ..name.parse()? };
        if count == 0 || count > MOST - flows.len() {
            return Err(format!("a run has 1 to {MOST} flows"));
        }
        flows.extend(vec![flow; count]);
    }
    Ok(flows)
}

/// Parses kinds that compete, with commas between them: "curve,up:tcp".
pub(crate) fn read_contenders(text: &str) -> Result<Vec<Flow>, String> {
    text.split(',').map(str::parse).collect()
}

/// Parses the name of a source that can answer.
pub(crate) fn read_echo(name: &str) -> Result<Source, String> {
    match name.parse()? {
        Source::Peer(Peer::Scp) => Err("scp copies and does not answer; write another kind".to_owned()),
        source => Ok(source),
    }
}

/// Parses names of sources to connect with, with commas between them.
pub(crate) fn read_connections(text: &str) -> Result<Vec<Source>, String> {
    text.split(',').map(str::parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_counted_named_and_delayed() {
        let flows = read_flows("2xtcp,curve+1.5,ssh,2xup:quic+1").unwrap();
        let words: Vec<String> = flows
            .iter()
            .map(|flow| format!("{} {}+{}", flow.way.name(), flow.source, flow.after.as_secs_f64()))
            .collect();
        assert_eq!(
            words,
            ["down tcp+0", "down tcp+0", "down curve+1.5", "down ssh+0", "up quic+1", "up quic+1"]
        );
    }

    #[test]
    fn invalid_flows_are_rejected() {
        for (text, word) in [
            ("udp", "write one of curve"),
            ("tcp+x", "seconds"),
            ("tcp+-1", "begin"),
            ("0xtcp", "1 to 64"),
            ("65xtcp", "1 to 64"),
            ("tcp,18446744073709551615xtcp", "1 to 64"),
            ("up:ssh", "server to client only"),
            ("down:tcp", "write one of"),
            ("", "write one of"),
        ] {
            assert!(read_flows(text).unwrap_err().contains(word), "{text}");
        }
    }

    #[test]
    fn every_source_reads_back() {
        for source in Source::all() {
            assert_eq!(source.to_string().parse(), Ok(source));
        }
    }
}
