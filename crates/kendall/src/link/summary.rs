//! What a link did, in a few lines.

use kendall_link::{Asked, LatenessSummary, Outcome, Way};
use kendall_linkmodel::Settings;
use kendall_report::number;

/// What a link was asked to be and what it did.
pub(crate) fn summary(described: &str, asked: &Asked, seed: u64, outcome: &Outcome) -> String {
    let mut lines = vec![format!("link: {described}, seed {seed}")];
    for (name, settings, way) in [("up", &asked.up, &outcome.up), ("down", &asked.down, &outcome.down)] {
        lines.extend(way_lines(name, settings, way));
    }
    lines.join("\n")
}

fn way_lines(name: &str, settings: &[Settings], way: &Way) -> Vec<String> {
    let mut lines = Vec::new();
    for (at, (settings, hop)) in settings.iter().zip(&way.hops).enumerate() {
        let name = if way.hops.len() > 1 { format!("{name}, hop {}", at + 1) } else { name.to_owned() };
        let settings = Some(settings.to_string()).filter(|text| !text.is_empty());
        lines.push(format!("  {name}: {}", settings.as_deref().unwrap_or("no delay, no limit, no loss")));
        let mut counts = vec![
            format!("{} in", packets(hop.offered)),
            format!("{} out ({})", packets(hop.delivered), bytes(hop.delivered_bytes)),
        ];
        let rare = [
            (hop.dropped_overflow, "dropped by a full queue"),
            (hop.dropped_aqm, "dropped by CoDel"),
            (hop.dropped_lost, "lost"),
            (hop.dropped_wire_full, "dropped for want of memory"),
            (hop.marked, "marked"),
            (hop.copies, "twice"),
            (hop.corrupted, "damaged"),
            (hop.held_back, "held back"),
            (hop.inside, "left inside"),
        ];
        counts.extend(
            rare.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")),
        );
        lines.push(format!("    {}", counts.join(", ")));
    }
    lines.extend(
        way.waited
            .as_ref()
            .filter(|waited| waited.max_ns > 0)
            .map(|waited| format!("    queue delay: {}", times(waited))),
    );
    lines.extend(way.late.as_ref().map(|late| format!("    handed out late by: {}", times(late))));
    if way.unsent > 0 {
        lines.push(format!(
            "    {} were refused by the kernel: losses that nobody asked for",
            packets(way.unsent)
        ));
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
