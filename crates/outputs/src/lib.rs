//! The output of other load generators as plain data.
//!
//! [`read`] recognises a format by its content, never by the name of a file: the text of wrk, wrk2, oha, hey and vegeta, the JSON of oha,
//! k6, vegeta, fortio and hyperfine, the CSV of hey and Locust. Each tool is one file with one or more rows of the table `FORMATS`.
//! Numbers are converted to seconds and to requests per second here, so that no caller knows the units of a tool.
//!
//! This crate does no I/O, and does not judge what it reads.
//!
//! ```
//! let text = "Running 10s test @ http://localhost/\n  2 threads and 8 connections\n  Thread Stats   Avg      Stdev     Max   +/- Stdev\n    \
//!             Latency     4.00ms    1.00ms  20.00ms   75.00%\n  20000 requests in 10.00s, 16.00MB read\nRequests/sec:   2000.00\n";
//! let outputs = kendall_outputs::read(text).unwrap().unwrap();
//! assert_eq!((outputs[0].tool, outputs[0].rate_per_s, outputs[0].mean_s), ("wrk", 2000.0, Some(0.004)));
//! assert!(kendall_outputs::read("rate,mean_ms\n100,5\n").unwrap().is_none());
//! ```

mod fortio;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzzing;
mod hey;
mod hyperfine;
mod k6;
mod locust;
mod oha;
mod source;
mod summary;
mod vegeta;
mod wrk;

use source::{Missing, Source};

/// The result of one run of a tool. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Output {
    /// The tool: "wrk".
    pub tool: &'static str,
    /// The name of the measurement, if one file can have several: the command of hyperfine.
    pub name: Option<String>,
    /// How requests were sent; `None` if the output does not contain it.
    pub load: Option<Load>,
    /// The number of connections, workers or users that sent them.
    pub connections: Option<u64>,
    /// Completed requests per second.
    pub rate_per_s: f64,
    /// The number of requests, including those that failed.
    pub requests: Option<u64>,
    /// The requests that failed, by kind: "status 503", "timeout".
    pub errors: Vec<(String, u64)>,
    /// The measured time.
    pub duration_s: Option<f64>,
    /// Mean response time.
    pub mean_s: Option<f64>,
    /// Quantiles of the response time as (level, seconds), ascending; 0.99 is the level of p99.
    pub quantiles_s: Vec<(f64, f64)>,
    /// The times of single runs, if the output lists few of them: those of hyperfine.
    pub times_s: Vec<f64>,
}

/// How requests were sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// On a schedule, independent of the server.
    Open {
        /// The rate of the schedule, if the output contains it.
        rate_per_s: Option<f64>,
    },
    /// Each connection sends its next request after an answer.
    Closed {
        /// Mean time between an answer and the next request of that connection.
        think_s: f64,
    },
}

/// The reason why the output of a tool cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutputError {
    /// The output is from a known tool, but a part is missing or wrong.
    #[error(
        "the input is {form} of {tool}, but {missing}; was it cut short? Use the complete output of {tool}: {command}"
    )]
    Incomplete {
        /// The tool.
        tool: &'static str,
        /// The form of its output.
        form: &'static str,
        /// The part that is missing.
        missing: String,
        /// The command that makes the output.
        command: &'static str,
    },
    /// JSON that ends too early.
    #[error("the input is JSON that ends early, at line {line}; use the complete output")]
    CutShort {
        /// The line of its end.
        line: usize,
    },
    /// The output of a known tool in a form with too little information.
    #[error("the input is {what}, which has too little information; use {instead}")]
    Other {
        /// The form.
        what: &'static str,
        /// The form to use instead.
        instead: &'static str,
    },
}

/// One form of one tool's output.
struct Format {
    tool: &'static str,
    form: &'static str,
    /// The command that makes it.
    command: &'static str,
    /// Whether a text is of this form, even if parts are missing.
    is: fn(&Source<'_>) -> bool,
    read: fn(&Source<'_>) -> Result<Vec<Output>, Missing>,
}

/// All forms. The first that recognises a text reads it.
const FORMATS: [&Format; 13] = [
    &wrk::WRK2,
    &wrk::WRK,
    &oha::JSON,
    &oha::TEXT,
    &hey::TEXT,
    &hey::CSV,
    &k6::LEGACY,
    &k6::SUMMARY,
    &vegeta::JSON,
    &vegeta::TEXT,
    &fortio::JSON,
    &hyperfine::JSON,
    &locust::STATS,
];

/// Forms of known tools with too little information, by a piece of their text, and the form to use instead.
const TOO_LITTLE: [(&str, &str, &str); 3] = [
    (
        "Timestamp,User Count,Type,Name,",
        "Locust's history",
        "the file that ends in _stats.csv, of the same --csv",
    ),
    (
        "Method,Name,Error,Occurrences",
        "Locust's list of failures",
        "the file that ends in _stats.csv, of the same --csv",
    ),
    ("{\"type\":\"Metric\",", "k6's stream of samples", "the file that --summary-export writes"),
];

/// The tools with known outputs, and the command that makes each output.
pub fn known() -> impl Iterator<Item = (&'static str, &'static str)> {
    FORMATS.iter().map(|format| (format.tool, format.command))
}

/// The names of the tools in words: "wrk2, wrk, oha, …".
pub fn tools() -> String {
    let mut names: Vec<&str> = FORMATS.iter().map(|format| format.tool).collect();
    names.dedup();
    names.join(", ")
}

/// Parses the output of a load generator; `None` if the text has the format of no known tool.
///
/// # Errors
/// Fails if it is of a known tool and a part is missing or is not a number.
pub fn read(text: &str) -> Result<Option<Vec<Output>>, OutputError> {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    if let Some((_, what, instead)) = TOO_LITTLE.iter().find(|(piece, ..)| text.starts_with(piece)) {
        return Err(OutputError::Other { what, instead });
    }
    let source = Source::of(text).map_err(|line| OutputError::CutShort { line })?;
    let Some(format) = FORMATS.iter().find(|format| (format.is)(&source)) else { return Ok(None) };
    let incomplete = |missing: Missing| OutputError::Incomplete {
        tool: format.tool,
        form: format.form,
        missing: missing.0,
        command: format.command,
    };
    let mut outputs = (format.read)(&source).map_err(incomplete)?;
    for output in &mut outputs {
        output.tool = format.tool;
        output.quantiles_s.sort_by(|a, b| a.0.total_cmp(&b.0));
        output.quantiles_s.dedup_by(|a, b| a.0 == b.0);
        output.errors.retain(|(_, count)| *count > 0);
    }
    Ok(Some(outputs))
}

impl Output {
    /// The share of the requests that failed.
    pub fn lost(&self) -> Option<f64> {
        let failed: f64 = self.errors.iter().map(|(_, count)| *count as f64).sum();
        let requests = self.requests.filter(|requests| *requests > 0)?;
        Some((failed / requests as f64).min(1.0))
    }

    /// A quantile, if the output contains it.
    pub fn quantile_s(&self, level: f64) -> Option<f64> {
        self.quantiles_s.iter().find(|(known, _)| (known - level).abs() < 1e-9).map(|(_, time_s)| *time_s)
    }
}
