//! The study of CurveCP from 2011, row by row: its results, and those of the same programs and kendall's here.

use std::time::Duration;

use kendall_flows::{Competition, LinkDirection};
use serde::Serialize;

use super::source::{Flow, Source, read_flows};

/// How much later than the TCP flow the other one begins, so that TCP has reached full speed.
const LATER: Duration = Duration::from_secs(3);
/// A round trip of 20 ms; a queue of 120 ms at 10 Mbit/s and of 40 ms at 100. The study does not describe its link.
const SLOW: &str = "delay=10ms rate=10mbit queue=150k";
const FAST: &str = "delay=10ms rate=100mbit queue=500k";

/// A row of the study.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    name: &'static str,
    /// The link.
    pub(crate) link: &'static str,
    measure: Measure,
    /// The sources that take part.
    sources: &'static [&'static str],
    /// The study's results for SSH, SCP and HTTPS, and for CurveCP.
    others: &'static str,
    curve: &'static str,
}

/// The figure of a row for a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Measure {
    /// The goodput of a flow alone.
    Alone,
    /// The total goodput of this many flows, together with one of TCP that began earlier.
    BesideTcp(usize),
    /// The median round trip of small messages on an open connection, without flows.
    Latency,
}

const CURVE: &[&str] = &["nacl", "curve"];
const FILLERS: &[&str] = &["ssh", "scp", "https", "nacl", "curve"];
/// scp does not answer.
const ANSWERERS: &[&str] = &["ssh", "https", "nacl", "curve"];

/// The results of the study: its table, and its statements on several flows and on latency.
pub(crate) const ROWS: [Row; 6] = [
    Row {
        name: "10 Mbit/s alone",
        link: SLOW,
        measure: Measure::Alone,
        sources: FILLERS,
        others: "near the full link",
        curve: "600–800, mean 650",
    },
    Row {
        name: "100 Mbit/s alone",
        link: FAST,
        measure: Measure::Alone,
        sources: FILLERS,
        others: "near 12,500",
        curve: "4,000, limited by the processor",
    },
    Row {
        name: "10 Mbit/s beside TCP",
        link: SLOW,
        measure: Measure::BesideTcp(1),
        sources: CURVE,
        others: "–",
        curve: "about 0",
    },
    Row {
        name: "100 Mbit/s beside TCP",
        link: FAST,
        measure: Measure::BesideTcp(1),
        sources: CURVE,
        others: "–",
        curve: "120",
    },
    // The study does not give the number.
    Row {
        name: "100 Mbit/s, 4 flows beside TCP",
        link: FAST,
        measure: Measure::BesideTcp(4),
        sources: CURVE,
        others: "–",
        curve: "together up to 240",
    },
    Row {
        name: "latency of messages, ms",
        link: FAST,
        measure: Measure::Latency,
        sources: ANSWERERS,
        others: "–",
        curve: "SSH's, to a fraction of a ms",
    },
];

impl Row {
    /// The sources that take part.
    pub(crate) fn sources(&self) -> impl Iterator<Item = Source> {
        self.sources.iter().map(|name| name.parse().expect("these are sources"))
    }

    /// The flows of a run for one source; its own come last.
    pub(crate) fn flows(&self, source: Source) -> Vec<Flow> {
        let own = |count, after| vec![Flow { source, after, way: LinkDirection::Down }; count];
        match self.measure {
            Measure::Alone => own(1, Duration::ZERO),
            Measure::BesideTcp(count) => {
                [read_flows("tcp").expect("this is a flow"), own(count, LATER)].concat()
            }
            Measure::Latency => Vec::new(),
        }
    }

    /// The source of the echoes alongside the flows, if the row needs them.
    pub(crate) fn echo(&self, source: Source) -> Option<Source> {
        (self.measure == Measure::Latency).then_some(source)
    }

    /// The figure of a run for its source.
    fn value(&self, result: &Competition) -> Option<Value> {
        let goodput = |count| {
            let own = result.flows.iter().rev().take(count);
            Value::GoodputBytesPerS(own.map(|flow| flow.goodput_bytes_per_s).sum())
        };
        match self.measure {
            Measure::Alone => Some(goodput(1)),
            Measure::BesideTcp(count) => Some(goodput(count)),
            Measure::Latency => result.loaded.p50_s.map(Value::LatencyP50S),
        }
    }
}

/// The results for a row.
#[derive(Debug, Serialize)]
pub(crate) struct Reproduced {
    row: &'static str,
    link: &'static str,
    /// The study's result, in kB/s.
    published_others: &'static str,
    published_curve: &'static str,
    /// The result of each source here.
    pub(crate) here: Vec<Here>,
}

/// The result of one source.
#[derive(Debug, Serialize)]
pub(crate) struct Here {
    pub(crate) source: Source,
    /// `None` if it could not run; `failures` has the reason.
    #[serde(flatten)]
    value: Option<Value>,
    pub(crate) failures: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Value {
    GoodputBytesPerS(f64),
    LatencyP50S(f64),
}

impl Here {
    pub(crate) fn new(row: &Row, source: Source, result: Result<Competition, String>) -> Self {
        match result {
            Ok(result) => {
                // A flow that is starved is a result; one that failed is not.
                let value = row.value(&result).filter(|_| result.failures.is_empty());
                Self { source, value, failures: result.failures }
            }
            Err(why) => Self { source, value: None, failures: vec![why] },
        }
    }

    fn cell(&self) -> Option<String> {
        Some(match self.value? {
            Value::GoodputBytesPerS(rate) => format!("{:.0}", rate / 1e3),
            Value::LatencyP50S(time) => format!("{:.2}", time * 1e3),
        })
    }
}

impl Reproduced {
    pub(crate) fn new(row: &Row, here: Vec<Here>) -> Self {
        Self { row: row.name, link: row.link, published_others: row.others, published_curve: row.curve, here }
    }

    /// The cells of a table: rates in kB/s, times in ms.
    pub(crate) fn cells(&self) -> Vec<String> {
        let cell = |name: &str| {
            let here = self.here.iter().find(|here| here.source.to_string() == name);
            here.and_then(Here::cell).unwrap_or_else(|| "–".to_owned())
        };
        let fixed = [self.row, self.published_others].map(str::to_owned);
        let here = [cell("ssh"), cell("scp"), cell("https")];
        let curve = [self.published_curve.to_owned(), cell("nacl"), cell("curve")];
        fixed.into_iter().chain(here).chain(curve).collect()
    }
}

/// The heads of the columns of [`Reproduced::cells`].
pub(crate) const HEADS: [&str; 8] =
    ["kB/s", "SSH, SCP, HTTPS in 2011", "ssh", "scp", "https", "CurveCP in 2011", "nacl", "curve"];

/// The note for readers on the comparison.
pub(crate) const NOTE: &str = "The columns \"in 2011\" are of a study, on other machines and links. Its sizes are not expected here, only its \
     direction: the reference programs of CurveCP (nacl) do not fill a fast link and give way to TCP. The link's own round trip is in the \
     latency of messages; ssh and nacl also pass them through pipes to programs at both ends.";

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> &'static Row {
        ROWS.iter().find(|row| row.name.contains(name)).unwrap()
    }

    fn names(flows: &[Flow]) -> Vec<String> {
        flows.iter().map(|flow| flow.source.to_string()).collect()
    }

    #[test]
    fn several_flows_run_beside_an_earlier_one_of_tcp_and_count_together() {
        let row = row("4 flows");
        let flows = row.flows("nacl".parse().unwrap());
        assert_eq!(names(&flows), ["tcp", "nacl", "nacl", "nacl", "nacl"]);
        assert!(flows[1..].iter().all(|flow| flow.after > flows[0].after));
        assert_eq!(row.echo("nacl".parse().unwrap()), None);
        let result = result(&[9e6, 1e4, 2e4, 3e4, 4e4], None);
        assert_eq!(row.value(&result), Some(Value::GoodputBytesPerS(1e5)));
    }

    #[test]
    fn latency_is_that_of_echoes_of_the_source_without_flows() {
        let row = row("latency");
        for source in row.sources() {
            assert_eq!((row.flows(source), row.echo(source)), (Vec::new(), Some(source)));
        }
        assert!(row.sources().all(|source| crate::flows::source::read_echo(&source.to_string()).is_ok()));
        assert_eq!(row.value(&result(&[], Some(0.0213))), Some(Value::LatencyP50S(0.0213)));
        assert_eq!(row.value(&result(&[], None)), None);
    }

    #[test]
    fn a_row_has_a_cell_under_each_head_and_dashes_for_what_did_not_run() {
        let row = row("10 Mbit/s alone");
        let here = vec![
            Here::new(row, "scp".parse().unwrap(), Ok(result(&[1.19e6], None))),
            Here::new(row, "nacl".parse().unwrap(), Err("it is not installed".into())),
        ];
        let cells = Reproduced::new(row, here).cells();
        assert_eq!(
            cells,
            ["10 Mbit/s alone", "near the full link", "–", "1190", "–", "600–800, mean 650", "–", "–"]
        );
        assert_eq!(cells.len(), HEADS.len());
    }

    fn result(goodputs: &[f64], p50_s: Option<f64>) -> Competition {
        let flow = |&goodput_bytes_per_s: &f64| kendall_flows::FlowResult {
            source: String::new(),
            goodput_bytes_per_s,
            share: 0.0,
            longest_pause_s: 0.0,
        };
        let latency = kendall_flows::Latency {
            echoes: 1,
            p50_s,
            p95_s: None,
            max_s: None,
            round_trips_per_min: None,
            lost: 0,
        };
        Competition {
            flows: goodputs.iter().map(flow).collect(),
            goodput_bytes_per_s: 0.0,
            jain: 1.0,
            sender_cpu_s_per_gb: None,
            receiver_cpu_s_per_gb: None,
            wire_bytes_per_byte: None,
            hops: Vec::new(),
            hops_up: Vec::new(),
            idle: latency.clone(),
            loaded: latency,
            failures: Vec::new(),
        }
    }
}
