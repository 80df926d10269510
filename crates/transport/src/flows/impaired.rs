//! The impairments of a link, one condition after another, and the result of a flow of each kind.

use std::time::Duration;

use kendall_flows::Competition;
use kendall_stats::number::significant;
use serde::Serialize;

/// The share of the measured time that passes before the client's address changes.
const MOVING_AFTER: f64 = 1.0 / 3.0;
/// A pause that ends this close to the end of the run counts as endless.
const TICKS: f64 = 0.3;

/// A condition of the link or of the client's network.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition {
    name: &'static str,
    /// The settings appended to those of the link.
    adds: &'static str,
    shows: Shows,
}

/// The figure that shows how a flow sustains a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shows {
    Goodput,
    LongestPause,
    /// The pause after a change of the client's address.
    PauseOfMove,
}

/// The conditions, in the order of the columns.
pub(crate) const CONDITIONS: [Condition; 7] = [
    Condition { name: "no loss", adds: "", shows: Shows::Goodput },
    Condition { name: "1 % lost", adds: " loss=1%", shows: Shows::Goodput },
    Condition { name: "2 % lost", adds: " loss=2%", shows: Shows::Goodput },
    Condition { name: "5 % lost", adds: " loss=5%", shows: Shows::Goodput },
    Condition { name: "5 % reordered", adds: " reorder=5%", shows: Shows::Goodput },
    Condition { name: "1 s of 5 silent", adds: " > rate=1gbit 4s, 0 1s", shows: Shows::LongestPause },
    Condition { name: "new address", adds: "", shows: Shows::PauseOfMove },
];

impl Condition {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// A link in this condition.
    pub(crate) fn link(&self, link: &str) -> String {
        format!("{link}{}", self.adds)
    }

    /// The instant at which the client's address changes, if it does.
    pub(crate) fn moving_after(&self, warm_up: Duration, time: Duration) -> Option<Duration> {
        (self.shows == Shows::PauseOfMove).then(|| warm_up + time.mul_f64(MOVING_AFTER))
    }

    /// The figure of a run; `time` is the length of its measured span.
    fn value(&self, result: &Competition, time: Duration) -> Option<Value> {
        let flow = result.flows.first()?;
        Some(match self.shows {
            Shows::Goodput => Value::GoodputBytesPerS(flow.goodput_bytes_per_s),
            Shows::LongestPause | Shows::PauseOfMove => {
                let left_s = time.mul_f64(1.0 - MOVING_AFTER).as_secs_f64();
                let is_over = self.shows == Shows::PauseOfMove && flow.longest_pause_s > left_s - TICKS;
                if is_over { Value::NeverGoesOn } else { Value::LongestPauseS(flow.longest_pause_s) }
            }
        })
    }
}

/// The result of a flow of one kind in one condition.
#[derive(Debug, Serialize)]
pub(crate) struct Impaired {
    pub(crate) kind: String,
    condition: &'static str,
    link: String,
    /// `None` if it could not run; `failures` has the reason.
    value: Option<Value>,
    pub(crate) failures: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Value {
    GoodputBytesPerS(f64),
    LongestPauseS(f64),
    NeverGoesOn,
}

impl Impaired {
    pub(crate) fn new(
        kind: &str,
        condition: &Condition,
        link: String,
        time: Duration,
        result: Result<Competition, String>,
    ) -> Self {
        let (value, failures) = match result {
            Ok(result) => {
                let value = condition.value(&result, time).filter(|_| result.failures.is_empty());
                (value, result.failures)
            }
            Err(why) => (None, vec![why]),
        };
        Self { kind: kind.to_owned(), condition: condition.name, link, value, failures }
    }

    fn cell(&self) -> String {
        match self.value {
            Some(Value::GoodputBytesPerS(rate)) => significant(rate * 8.0 / 1e6, 3),
            Some(Value::LongestPauseS(pause)) => format!("{pause:.1} s"),
            Some(Value::NeverGoesOn) => "ends".to_owned(),
            None => "–".to_owned(),
        }
    }
}

/// The rows of a table, one per kind.
pub(crate) fn rows(results: &[Impaired]) -> Vec<Vec<String>> {
    let heads = CONDITIONS.iter().map(|condition| condition.name.to_owned());
    let head = ["Mbit/s, or longest pause".to_owned()].into_iter().chain(heads).collect();
    let kinds = results.chunk_by(|one, other| one.kind == other.kind).map(|row| {
        let cells = row.iter().map(Impaired::cell);
        row.first().map(|first| first.kind.clone()).into_iter().chain(cells).collect()
    });
    [head].into_iter().chain(kinds).collect()
}

#[cfg(test)]
mod tests {
    use kendall_flows::{FlowResult, Latency};
    use kendall_link::LinkSettings;

    use super::*;

    const TIME: Duration = Duration::from_secs(9);

    fn result(goodput_bytes_per_s: f64, longest_pause_s: f64) -> Competition {
        let latency =
            Latency { echoes: 0, p50_s: None, p95_s: None, max_s: None, round_trips_per_min: None, lost: 0 };
        Competition {
            flows: vec![FlowResult {
                source: "ssh".into(),
                goodput_bytes_per_s,
                share: 1.0,
                longest_pause_s,
            }],
            goodput_bytes_per_s,
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

    #[test]
    fn every_condition_is_one_of_a_link_of_one_hop_and_of_several() {
        for link in ["delay=10ms rate=10mbit queue=64k", "delay=1ms > delay=2ms rate=10mbit"] {
            for condition in &CONDITIONS {
                LinkSettings::read_row(&condition.link(link)).unwrap();
            }
        }
    }

    #[test]
    fn a_flow_ends_with_its_address_where_it_pauses_until_the_end() {
        let shown = |condition: &Condition, pause_s| {
            let result = Ok(result(1.25e6, pause_s));
            Impaired::new("ssh", condition, String::new(), TIME, result).cell()
        };
        let [first, .., outage, moved] = &CONDITIONS;
        assert_eq!(moved.moving_after(Duration::from_secs(2), TIME), Some(Duration::from_secs(5)));
        assert_eq!((first.moving_after(TIME, TIME), outage.moving_after(TIME, TIME)), (None, None));
        assert_eq!([shown(moved, 0.1), shown(moved, 5.9), shown(outage, 5.9)], ["0.1 s", "ends", "5.9 s"]);
        assert_eq!(shown(first, 0.1), "10.0");
    }

    #[test]
    fn a_row_has_a_cell_for_each_condition_and_a_dash_for_what_failed() {
        let results: Vec<Impaired> = ["ssh", "nacl"]
            .into_iter()
            .flat_map(|kind| {
                CONDITIONS.iter().map(move |condition| {
                    let result =
                        if kind == "ssh" { Ok(result(1.25e6, 1.2)) } else { Err("not installed".into()) };
                    Impaired::new(kind, condition, String::new(), TIME, result)
                })
            })
            .collect();
        let rows = rows(&results);
        assert!(rows.iter().all(|row| row.len() == 1 + CONDITIONS.len()));
        assert_eq!(rows[1], ["ssh", "10.0", "10.0", "10.0", "10.0", "10.0", "1.2 s", "1.2 s"]);
        assert_eq!(rows[2][1..], ["–"; 7]);
    }
}
