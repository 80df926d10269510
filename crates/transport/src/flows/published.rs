//! The study of CurveCP from 2011, row by row: what it printed, and what the same programs and ours get here.

use std::time::Duration;

use kendall_flows::{Competition, Way};
use serde::Serialize;

use super::source::{Flow, Source, read_flows};

/// How much later than the TCP flow the other one begins, so that TCP is at full speed by then.
const LATER: Duration = Duration::from_secs(3);
/// A round trip of 20 ms; a queue of 120 ms at 10 Mbit/s and of 40 ms at 100. The study does not say what its link was.
const SLOW: &str = "delay=10ms rate=10mbit queue=150k";
const FAST: &str = "delay=10ms rate=100mbit queue=500k";

/// A row of the study's table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    name: &'static str,
    /// The link.
    pub(crate) link: &'static str,
    is_beside_tcp: bool,
    /// What the study printed of SSH, SCP and HTTPS, and of CurveCP.
    others: &'static str,
    curve: &'static str,
}

/// The study's table.
pub(crate) const ROWS: [Row; 4] = [
    Row {
        name: "10 Mbit/s alone",
        link: SLOW,
        is_beside_tcp: false,
        others: "near the full link",
        curve: "600–800, mean 650",
    },
    Row {
        name: "100 Mbit/s alone",
        link: FAST,
        is_beside_tcp: false,
        others: "near 12,500",
        curve: "4,000, limited by the processor",
    },
    Row { name: "10 Mbit/s beside TCP", link: SLOW, is_beside_tcp: true, others: "–", curve: "about 0" },
    Row { name: "100 Mbit/s beside TCP", link: FAST, is_beside_tcp: true, others: "–", curve: "120" },
];

impl Row {
    /// The sources whose goodput stands in the row.
    pub(crate) fn sources(&self) -> Vec<Source> {
        let names =
            if self.is_beside_tcp { &["nacl", "curve"][..] } else { &["ssh", "https", "nacl", "curve"] };
        names.iter().map(|name| name.parse().expect("these are sources")).collect()
    }

    /// The flows of a run for one source; its own is the last.
    pub(crate) fn flows(&self, source: Source) -> Vec<Flow> {
        let first = if self.is_beside_tcp { read_flows("tcp").expect("this is a flow") } else { Vec::new() };
        let after = if self.is_beside_tcp { LATER } else { Duration::ZERO };
        first.into_iter().chain([Flow { source, after, way: Way::Down }]).collect()
    }
}

/// What was measured for a row.
#[derive(Debug, Serialize)]
pub(crate) struct Reproduced {
    row: &'static str,
    link: &'static str,
    /// What the study printed, in kB/s.
    published_others: &'static str,
    published_curve: &'static str,
    /// What each source gets here.
    pub(crate) here: Vec<Here>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Here {
    pub(crate) source: Source,
    /// `None` where it could not run, which `failures` says.
    pub(crate) goodput_bytes_per_s: Option<f64>,
    pub(crate) failures: Vec<String>,
}

impl Here {
    pub(crate) fn new(source: Source, result: Result<Competition, String>) -> Self {
        match result {
            Ok(result) => {
                let rate = result.flows.last().map(|flow| flow.goodput_bytes_per_s);
                // A flow that is starved is a result; one that failed is not.
                let goodput_bytes_per_s = rate.filter(|_| result.failures.is_empty());
                Self { source, goodput_bytes_per_s, failures: result.failures }
            }
            Err(why) => Self { source, goodput_bytes_per_s: None, failures: vec![why] },
        }
    }
}

impl Reproduced {
    pub(crate) fn new(row: &Row, here: Vec<Here>) -> Self {
        Self { row: row.name, link: row.link, published_others: row.others, published_curve: row.curve, here }
    }

    /// The cells of a table; rates in kB/s.
    pub(crate) fn cells(&self) -> Vec<String> {
        let rate = |name: &str| {
            let here = self.here.iter().find(|here| here.source.to_string() == name);
            let rate = here.and_then(|here| here.goodput_bytes_per_s);
            rate.map_or_else(|| "–".to_owned(), |rate| format!("{:.0}", rate / 1e3))
        };
        let fixed = [self.row, self.published_others].map(str::to_owned);
        let here = [rate("ssh"), rate("https")];
        let curve = [self.published_curve.to_owned(), rate("nacl"), rate("curve")];
        fixed.into_iter().chain(here).chain(curve).collect()
    }
}

/// The heads of the columns of [`Reproduced::cells`].
pub(crate) const HEADS: [&str; 7] =
    ["kB/s", "SSH, SCP, HTTPS in 2011", "ssh", "https", "CurveCP in 2011", "nacl", "curve"];

/// What the reader has to know of the comparison.
pub(crate) const NOTE: &str = "The first and the fifth column are of a study of 2011, on other machines and links. Its sizes \
     are not expected here, only its direction: the reference programs of CurveCP (nacl) do not fill a fast link and give way to TCP.";
