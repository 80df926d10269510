//! The requests that a client sends. The i-th is a pure function of (seed, i).
//!
//! There is a fixed number of different requests, drawn from families of patterns over the words at the start of a synthetic
//! database's law, or read from a file. A law of popularity draws which of them is sent: the k-th has a probability
//! proportional to 1 / kˢ, Zipf's law, and with s = 0 all are equally likely.

mod family;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use kendall_load::{ConnectionKind, Dialog, Dialogs, Request, RequestClass, Reuse, Route, Wire, Workload};
use kendall_stats::random::{Purpose, stream, unit};

use crate::client::Client;
use crate::protocol::{CannotCarry, Dialect};
use family::Patterns;
pub use family::{Family, Mix, Wrapping};

/// The most different requests.
pub const MOST_PATTERNS: usize = 1_000_000;

/// The parameters of the requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// The source of the requests.
    pub requests: Requests,
    /// Zipf's exponent: the larger, the more requests have the first patterns.
    pub popularity: f64,
    /// The framing of requests.
    pub dialect: Dialect,
    /// Whether a connection carries many requests.
    pub reuse: Reuse,
}

/// The source of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Requests {
    /// The requests are drawn at random.
    Drawn {
        /// The number of different requests.
        patterns: usize,
        /// The shares of the families.
        mix: Mix,
        /// Whether patterns are written for servers that match whole sentences.
        wrapping: Wrapping,
        /// The number of types of a request; all if 0.
        types_asked: u32,
        /// The number of types, numbered from 0.
        types: u32,
    },
    /// The requests are in a file, one line `types;pattern` each, the most popular first.
    File(PathBuf),
}

/// The reason why parameters are not valid.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ParameterError {
    #[error("there are {0} different requests; there must be 1 to {MOST_PATTERNS}")]
    Patterns(usize),
    #[error("popularity is {0}; it must be 0 (all requests equally likely) or more, and finite")]
    Popularity(f64),
    #[error("requests cannot name {asked} different types, since the data have {types}; name fewer")]
    Types { asked: u32, types: u32 },
    #[error("cannot read {}: {reason}", path.display())]
    File { path: PathBuf, reason: io::Error },
    #[error("{}, line {line}: no `;`; write TYPES;PATTERN, as in `1,2;this man`", path.display())]
    NoSemicolon { path: PathBuf, line: usize },
    #[error("{}, line {line}: {reason}", path.display())]
    Request { path: PathBuf, line: usize, reason: CannotCarry },
}

/// The workload of text search against one server.
#[derive(Clone, Debug)]
pub struct TextSearchWorkload {
    server: SocketAddr,
    dialect: Dialect,
    reuse: Reuse,
    seed: u64,
    source: Source,
    /// For each request, the cumulated probability.
    cumulated: Vec<f64>,
}

#[derive(Clone, Debug)]
enum Source {
    Drawn(Patterns),
    Written(Vec<Bytes>),
}

impl TextSearchWorkload {
    /// The requests of one seed, for one server.
    ///
    /// # Errors
    /// Fails on invalid parameters, and on a file that cannot be read or whose lines are not requests.
    pub fn new(server: SocketAddr, parameters: &Parameters, seed: u64) -> Result<Self, ParameterError> {
        let Parameters { ref requests, popularity, dialect, reuse } = *parameters;
        if !(popularity >= 0.0 && popularity.is_finite()) {
            return Err(ParameterError::Popularity(popularity));
        }
        let (source, patterns) = match requests {
            Requests::File(path) => {
                let requests = read(path, dialect)?;
                let count = requests.len();
                (Source::Written(requests), count)
            }
            Requests::Drawn { patterns, mix, wrapping, types_asked: asked, types } => {
                if asked > types {
                    return Err(ParameterError::Types { asked: *asked, types: *types });
                }
                (Source::Drawn(Patterns::new(mix.clone(), *wrapping, *asked, *types, seed)), *patterns)
            }
        };
        if !(1..=MOST_PATTERNS).contains(&patterns) {
            return Err(ParameterError::Patterns(patterns));
        }
        Ok(Self { server, dialect, reuse, seed, source, cumulated: zipf(patterns, popularity) })
    }

    /// The number of the i-th request among the different ones, from 0, the most popular.
    pub fn rank(&self, index: u64) -> usize {
        let drawn = unit(&mut stream(self.seed, Purpose::Request, index));
        self.cumulated.partition_point(|&sum| sum <= drawn).min(self.cumulated.len() - 1)
    }
}

/// The cumulated probabilities of Zipf's law.
fn zipf(count: usize, exponent: f64) -> Vec<f64> {
    let mut cumulated: Vec<f64> = (1..=count)
        .scan(0.0, |sum, rank| {
            *sum += libm::pow(rank as f64, -exponent);
            Some(*sum)
        })
        .collect();
    let all = cumulated[count - 1];
    cumulated.iter_mut().for_each(|sum| *sum /= all);
    cumulated
}

/// The largest file of requests.
const MOST_BYTES: u64 = 64 << 20;

fn read(path: &Path, dialect: Dialect) -> Result<Vec<Bytes>, ParameterError> {
    let path = path.to_owned();
    let text = match kendall_files::read_text(&path, MOST_BYTES) {
        Ok(text) => text,
        Err(reason) => return Err(ParameterError::File { path, reason }),
    };
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty());
    lines
        .map(|(index, request)| {
            let line = index + 1;
            if !request.contains(';') {
                return Err(ParameterError::NoSemicolon { path: path.clone(), line });
            }
            let bytes = dialect.encode_request(request);
            bytes.map(Bytes::from).map_err(|reason| ParameterError::Request {
                path: path.clone(),
                line,
                reason,
            })
        })
        .collect()
}

impl Workload for TextSearchWorkload {
    fn request(&self, index: u64) -> Request {
        let rank = self.rank(index);
        match &self.source {
            Source::Written(requests) => Request::new(0, requests[rank].clone()),
            Source::Drawn(patterns) => {
                let (class, text) = patterns.request(rank as u64);
                let bytes = self.dialect.encode_request(&text).expect("what is drawn is a short line");
                Request::new(class, bytes.into())
            }
        }
    }

    /// One class for each family that is drawn; one for all requests of a file. Its share is that of its patterns by their
    /// popularity, which differs slightly from its weight in the mix.
    fn classes(&self) -> Vec<RequestClass> {
        let Source::Drawn(patterns) = &self.source else { return vec![RequestClass::new("all", 1.0)] };
        let mut shares = vec![0.0; patterns.families().count()];
        let mut before = 0.0;
        for (rank, &up_to) in (0..).zip(&self.cumulated) {
            shares[patterns.class(rank)] += up_to - before;
            before = up_to;
        }
        // The sum is 1 except for rounding.
        let class = |(family, share): (Family, f64)| RequestClass {
            share: Some(share.min(1.0)),
            ..RequestClass::new(family.name(), 1.0)
        };
        patterns.families().zip(shares).map(class).collect()
    }

    fn route(&self) -> Route<'_> {
        let wire = Wire { to: self.server, kind: ConnectionKind::TCP, reuse: self.reuse };
        Route::Bytes(wire, self)
    }
}

impl Dialogs for TextSearchWorkload {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Client::new(self.dialect))
    }
}

#[cfg(test)]
mod tests;
