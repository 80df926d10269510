//! Bytes that had arrived by instants, as rates in intervals.

use kendall_flows::{About, ClientRecord, FlowAbout, Tick};

use super::series::{FlowGoodput, Goodput, interval_s, seconds};

/// What each flow got, from the beginning of the first on.
pub(super) fn of_flows(about: &About, seen: &ClientRecord) -> Goodput {
    // Of the ticks before the flows began, only the last one matters: nothing had arrived by then.
    let before = seen.ticks.partition_point(|tick| tick.at_ns <= seen.from_ns);
    let ticks = &seen.ticks[before.saturating_sub(1)..];
    let span_s = match ticks {
        [first, .., last] => seconds(last.at_ns - first.at_ns),
        _ => return Goodput::default(),
    };
    let mut kept: Vec<&Tick> = Vec::new();
    for tick in ticks {
        // Ticks come a little early or late.
        let is_due = |last: &&Tick| seconds(tick.at_ns - last.at_ns) > 0.5 * interval_s(span_s);
        if tick.bytes.len() == about.flows.len() && kept.last().is_none_or(is_due) {
            kept.push(tick);
        }
    }
    let rate = |flow: usize, pair: &[&Tick]| {
        let bytes = pair[1].bytes[flow].saturating_sub(pair[0].bytes[flow]);
        bytes as f64 / seconds(pair[1].at_ns - pair[0].at_ns)
    };
    let flow = |(number, kind): (usize, String)| FlowGoodput {
        kind,
        bytes_per_s: kept.windows(2).map(|pair| rate(number, pair)).collect(),
    };
    Goodput {
        edges_s: kept.iter().map(|tick| seconds(tick.at_ns - seen.from_ns)).collect(),
        flows: about.flows.iter().map(FlowAbout::kind).enumerate().map(flow).collect(),
    }
}

/// The bytes of a flow that had arrived by an instant; between two ticks they arrive evenly. `None` outside of the ticks.
pub(super) fn bytes_by(ticks: &[Tick], flow: usize, at_ns: i64) -> Option<f64> {
    let next = ticks.partition_point(|tick| tick.at_ns < at_ns);
    let after = ticks.get(next)?;
    let bytes = |tick: &Tick| tick.bytes.get(flow).map(|bytes| *bytes as f64);
    if after.at_ns == at_ns {
        return bytes(after);
    }
    let before = ticks.get(next.checked_sub(1)?)?;
    let share = (at_ns - before.at_ns) as f64 / (after.at_ns - before.at_ns) as f64;
    Some(bytes(before)? + share * (bytes(after)? - bytes(before)?))
}
