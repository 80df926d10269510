//! The settings of a link, their measurement, and the link's counts, in a few lines.

use kendall_link::calibrate::{Calibration, Measured, Quantity, Side};
use kendall_link::{DirectionOutcome, LatenessSummary};
use kendall_stats::number;

use crate::link_run::LinkRun;

/// What a link was asked to be and what it did, in words.
pub fn link_summary(did: &LinkRun) -> String {
    let LinkRun { link, seed, asked, measured, outcome } = did;
    let mut lines = vec![format!("link: {link}, seed {seed}")];
    let ways = [("up", Side::Up, &asked.up, &outcome.up), ("down", Side::Down, &asked.down, &outcome.down)];
    for (name, side, asked, way) in ways {
        lines.extend(hop_lines(name, asked, way));
        lines.extend(
            measured.as_ref().map(|measured| format!("    measured before: {}", found(measured, side))),
        );
        lines.extend(time_lines(way));
    }
    lines.join("\n")
}

fn found(measured: &Calibration, side: Side) -> String {
    let rows = measured.rows.iter().filter(|row| row.side == side);
    let words = rows.filter_map(|row| Some(words(row.quantity, row.measured?))).collect::<Vec<_>>();
    if words.is_empty() { "nothing arrived".to_owned() } else { words.join(", ") }
}

fn words(quantity: Quantity, measured: Measured) -> String {
    let value = measured.value;
    match quantity {
        Quantity::Delay => format!("delay {}", number::time(value)),
        Quantity::Jitter => format!("jitter {}", number::time(value)),
        Quantity::Rate => format!("rate {} Mbit/s", number::significant(value / 1e6, 4)),
        Quantity::Loss => format!("loss {}", number::percent(value)),
    }
}

fn hop_lines(name: &str, asked: &[String], way: &DirectionOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, (asked, hop)) in asked.iter().zip(&way.hops).enumerate() {
        let name = if way.hops.len() > 1 { format!("{name}, hop {}", at + 1) } else { name.to_owned() };
        let asked = if asked.is_empty() { "no delay, no limit, no loss" } else { asked };
        lines.push(format!("  {name}: {asked}"));
        let mut counts = vec![
            format!("{} in", packets(hop.offered)),
            format!("{} out ({})", packets(hop.delivered), bytes(hop.delivered_bytes)),
        ];
        let rare = [
            (hop.dropped_overflow, "dropped by a full queue"),
            (hop.dropped_aqm, "dropped by CoDel"),
            (hop.dropped_lost, "lost"),
            (hop.dropped_wire_full, "dropped for lack of memory"),
            (hop.marked, "marked"),
            (hop.copies, "twice"),
            (hop.corrupted, "damaged"),
            (hop.held_back, "held back"),
            (hop.inside, "left inside"),
        ];
        let rare = rare.iter().filter(|(count, _)| *count > 0);
        counts.extend(rare.map(|(count, what)| format!("{count} {what}")));
        lines.push(format!("    {}", counts.join(", ")));
    }
    lines
}

fn time_lines(way: &DirectionOutcome) -> Vec<String> {
    let mut lines = Vec::new();
    let waited = way.waited.as_ref().filter(|waited| waited.max_ns > 0);
    lines.extend(waited.map(|waited| format!("    queue delay: {}", times(waited))));
    lines.extend(way.late.as_ref().map(|late| format!("    handed out late by: {}", times(late))));
    if way.unsent > 0 {
        let refused = packets(way.unsent);
        lines.push(format!("    refused by the kernel: {refused}, losses beyond the configured ones"));
    }
    lines
}

fn times(summary: &LatenessSummary) -> String {
    let time = |ns: u64| number::time(ns as f64 / 1e9);
    format!("p50 {}, p99 {}, at most {}", time(summary.p50_ns), time(summary.p99_ns), time(summary.max_ns))
}

fn packets(count: u64) -> String {
    if count == 1 { "1 packet".into() } else { format!("{count} packets") }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} bytes"),
        1_000..1_000_000 => format!("{} kB", number::significant(bytes as f64 / 1e3, 3)),
        1_000_000..1_000_000_000 => format!("{} MB", number::significant(bytes as f64 / 1e6, 3)),
        _ => format!("{} GB", number::significant(bytes as f64 / 1e9, 3)),
    }
}
