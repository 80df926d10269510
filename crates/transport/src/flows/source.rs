//! Flows as the user writes them: "curve", "3xtcp", "quic+5", "ssh".

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use kendall_flows::Way;
use serde::{Deserialize, Serialize};

use super::peer::Peer;
use crate::kind::Kind;

/// The most flows of a run.
const MOST: usize = 64;

/// What makes a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum Source {
    /// A transport of the laboratory.
    Ours(Kind),
    /// A program that others wrote.
    Peer(Peer),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ours(kind) => kind.fmt(f),
            Self::Peer(peer) => f.write_str(peer.name()),
        }
    }
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(kind) = text.parse() {
            return Ok(Self::Ours(kind));
        }
        let peer = Peer::ALL.into_iter().find(|peer| peer.name() == text);
        peer.map(Self::Peer).ok_or_else(|| {
            let names: Vec<String> = Self::all().map(|source| source.to_string()).collect();
            format!("{text:?} is not a source of bytes; write one of {}", names.join(", "))
        })
    }
}

impl Source {
    /// Every source.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Kind::ALL.map(Self::Ours).into_iter().chain(Peer::ALL.map(Self::Peer))
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
    /// What makes it.
    pub(crate) source: Source,
    /// How much later than the first flows it begins.
    pub(crate) after: Duration,
    /// Which way its bytes go.
    #[serde(default)]
    pub(crate) way: Way,
}

/// Reads flows with commas between them: "3xtcp,curve+5,up:quic" is three of TCP, one of CurveCP that begins 5 s later, and one of QUIC
/// from client to server.
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
        let (way, name) = name.strip_prefix("up:").map_or((Way::Down, name), |name| (Way::Up, name));
        let flow = Flow { source: name.parse()?, after, way };
        if let (Source::Peer(peer), Way::Up) = (flow.source, way) {
            return Err(format!("{} sends from server to client only", peer.name()));
        }
        if count == 0 || flows.len() + count > MOST {
            return Err(format!("a run has 1 to {MOST} flows"));
        }
        flows.extend(vec![flow; count]);
    }
    Ok(flows)
}

/// Reads names of sources with commas between them.
pub(crate) fn read_sources(text: &str) -> Result<Vec<Source>, String> {
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
    fn what_is_not_a_flow_is_refused_in_words() {
        for (text, word) in [
            ("udp", "write one of curve"),
            ("tcp+x", "seconds"),
            ("tcp+-1", "begin"),
            ("0xtcp", "1 to 64"),
            ("65xtcp", "1 to 64"),
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
