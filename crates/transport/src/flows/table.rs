//! Results as text.

use std::fmt::Write as _;

use kendall_flows::{Competition, Handshakes};
use kendall_stats::number::{percent, significant, time};

use super::impaired::{self, Impaired};
use super::published::{HEADS, NOTE, Reproduced};

/// A table whose first column is text and whose others are numbers.
fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let length = |text: &String| text.chars().count();
    let width = |column| rows.iter().filter_map(|row| row.get(column)).map(length).max().unwrap_or_default();
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = widths[column];
            let _ = match column {
                0 => write!(text, "{cell:<width$}"),
                _ => write!(text, "  {cell:>width$}"),
            };
        }
        text.truncate(text.trim_end().len());
        text.push('\n');
    }
    text
}

fn words(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| (*cell).to_owned()).collect()
}

fn or_dash(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), show)
}

fn megabits(bytes_per_s: f64) -> String {
    significant(bytes_per_s * 8.0 / 1e6, 3)
}

pub(crate) fn competition(result: &Competition) -> String {
    let mut rows = vec![words(&["flow", "Mbit/s", "share", "longest pause"])];
    for (number, flow) in (1..).zip(&result.flows) {
        let name = format!("{number} {}", flow.source);
        let pause = format!("{:.1} s", flow.longest_pause_s);
        rows.push(vec![name, megabits(flow.goodput_bytes_per_s), percent(flow.share), pause]);
    }
    rows.push(vec!["all".into(), megabits(result.goodput_bytes_per_s), String::new()]);
    let mut text = table(&rows);
    let seconds = |value: f64| format!("{} s", significant(value, 3));
    let _ = writeln!(text, "\nJain's index {}", significant(result.jain, 3));
    let wire = or_dash(result.wire_bytes_per_byte, |bytes| significant(bytes, 4));
    let _ = writeln!(text, "bytes on the wire per byte of data {wire}");
    let _ = writeln!(
        text,
        "processor time per GB: sender {}, receiver {}",
        or_dash(result.sender_cpu_s_per_gb, seconds),
        or_dash(result.receiver_cpu_s_per_gb, seconds)
    );
    let down = (1..).zip(&result.hops).map(|(number, hop)| (number, "", hop));
    let up = (1..).zip(&result.hops_up).map(|(number, hop)| (number, " to the server", hop));
    for (number, way, hop) in down.chain(up) {
        let _ = writeln!(
            text,
            "queue of hop {number}{way}: mean {}, at most {}; {} packets dropped, {} lost",
            time(hop.queue_delay_mean_s),
            time(hop.queue_delay_max_s),
            hop.dropped_packets,
            hop.lost_packets
        );
    }
    for (when, echoes) in [("without flows", &result.idle), ("beside flows", &result.loaded)] {
        let _ = writeln!(
            text,
            "echoes {when}: p50 {}, p95 {}, at most {}; {} round trips per minute ({} answered, {} lost)",
            or_dash(echoes.p50_s, time),
            or_dash(echoes.p95_s, time),
            or_dash(echoes.max_s, time),
            or_dash(echoes.round_trips_per_min, |trips| format!("{trips:.0}")),
            echoes.echoes,
            echoes.lost
        );
    }
    for failure in &result.failures {
        let _ = writeln!(text, "failed: {failure}");
    }
    text
}

/// The share of a flow of each row when it competes with a flow of each column.
pub(crate) fn matrix(kinds: &[String], share: impl Fn(&str, &str) -> Option<f64>) -> String {
    let head = ["share of".to_owned()].into_iter().chain(kinds.iter().map(|kind| format!("beside {kind}")));
    let mut rows = vec![head.collect()];
    for own in kinds {
        let cells = kinds.iter().map(|other| or_dash(share(own, other), |share| significant(share, 2)));
        rows.push([own.clone()].into_iter().chain(cells).collect());
    }
    table(&rows)
}

pub(crate) fn impaired(results: &[Impaired]) -> String {
    table(&impaired::rows(results))
}

pub(crate) fn published(results: &[Reproduced]) -> String {
    let rows: Vec<Vec<String>> =
        [words(&HEADS)].into_iter().chain(results.iter().map(Reproduced::cells)).collect();
    format!("{}\n{NOTE}\n", table(&rows))
}

pub(crate) fn handshakes(results: &[Handshakes]) -> String {
    let mut rows =
        vec![words(&["", "p50", "max", "bytes up", "bytes down", "packets", "connections", "failed"])];
    for result in results {
        rows.push(vec![
            result.source.clone(),
            or_dash(result.p50_s, time),
            or_dash(result.max_s, time),
            format!("{:.0}", result.bytes_to_server),
            format!("{:.0}", result.bytes_to_client),
            format!("{:.1}", result.packets),
            result.connections.to_string(),
            result.failures.len().to_string(),
        ]);
    }
    table(&rows)
}
