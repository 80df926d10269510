//! The results of a run: goodput, fairness, cost, bytes on the wire, queue and latency. Pure functions of its traces.

use serde::{Deserialize, Serialize};

use crate::link_log::{LinkRow, rows};
use crate::record::{About, ClientRecord, ECHO_PORT, LinkDirection, Tick, Traces};

/// The measured span of flows, after the warm-up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Competition {
    /// Each flow, in the order in which the user named them.
    pub flows: Vec<FlowResult>,
    /// The goodput of all flows together, in bytes per second.
    pub goodput_bytes_per_s: f64,
    /// Jain's index of the goodputs: 1 where all are alike, 1/n where one has everything.
    pub jain: f64,
    /// Processor time of the two ends for a gigabyte (10⁹ bytes). `None` where programs that others wrote take part.
    pub sender_cpu_s_per_gb: Option<f64>,
    /// The processor time of the receiver, in seconds per gigabyte.
    pub receiver_cpu_s_per_gb: Option<f64>,
    /// Bytes that entered the link both ways, Ethernet headers included, per byte that arrived of a flow. `None` where none did.
    pub wire_bytes_per_byte: Option<f64>,
    /// The queues on the way from server to client, a hop each.
    pub hops: Vec<Hop>,
    /// The hops on the way from client to server; empty where no flow goes in that direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops_up: Vec<Hop>,
    /// The echoes before the flows began, and in the measured span.
    pub idle: Latency,
    /// The echoes in the measured span.
    pub loaded: Latency,
    /// The failures.
    pub failures: Vec<String>,
}

/// The result of one flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    /// The flow's source: "curve", or "up:curve" from client to server.
    pub source: String,
    /// Bytes of data that arrived, per second.
    pub goodput_bytes_per_s: f64,
    /// The share of all flows' bytes, from 0 to 1.
    pub share: f64,
    /// The longest pause in its arrivals, to a tenth of a second; up to the end of the span where it never continued.
    pub longest_pause_s: f64,
}

/// The queue of one hop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// The mean wait over packets.
    pub queue_delay_mean_s: f64,
    /// The longest wait.
    pub queue_delay_max_s: f64,
    /// Packets for which the queue had no capacity.
    pub dropped_packets: f64,
    /// Packets that the wire lost.
    pub lost_packets: f64,
}

/// The round-trip times of the echoes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The number that came back.
    pub echoes: usize,
    /// The median.
    pub p50_s: Option<f64>,
    /// The 95th percentile.
    pub p95_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
    /// Round trips per minute, one after the other, at the mean of the fastest 95 %: the trimmed mean and the unit of "Responsiveness
    /// under Working Conditions" (draft-ietf-ippm-responsiveness), of which the echoes are the probes on their own connection.
    #[serde(default)]
    pub round_trips_per_min: Option<f64>,
    /// The number without an answer.
    pub lost: usize,
}

/// The cost of connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Handshakes {
    /// The source.
    pub source: String,
    /// The number of successful connections.
    pub connections: usize,
    /// The median time from the first packet to the first byte of an answer.
    pub p50_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
    /// The bytes of a connection that carries one byte, its end included; Ethernet headers included.
    pub bytes_to_server: f64,
    /// The bytes of the same connection in the other direction.
    pub bytes_to_client: f64,
    /// Packets in both directions.
    pub packets: f64,
    /// The failures.
    pub failures: Vec<String>,
}

/// Jain's index of fairness (Jain, Chiu, Hawe 1984): (Σx)² / (n Σx²).
pub fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = rates.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 1.0 }
}

/// The value below which this share of the values lies, by the nearest rank.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

/// The first and the last tick of a span.
fn span(ticks: &[Tick], from_ns: i64) -> Option<(&Tick, &Tick)> {
    let first = ticks.iter().find(|tick| tick.at_ns >= from_ns)?;
    let last = ticks.last().filter(|last| last.at_ns > first.at_ns)?;
    Some((first, last))
}

/// The instant from which the flows of a run are measured: the end of the warm-up of the last flow.
pub fn measured_from_ns(about: &About, seen: &ClientRecord) -> i64 {
    let latest_s = about.flows.iter().map(|flow| flow.after_s).fold(0.0, f64::max);
    seen.from_ns.saturating_add(((about.warm_up_s + latest_s) * 1e9) as i64)
}

/// The results of the flows after the warm-up of the last one.
///
/// # Errors
/// Fails where the run was too short, or where the record has other flows than listed.
pub fn competition(about: &About, traces: &Traces) -> Result<Competition, String> {
    let ClientRecord { ticks, echoes, from_ns, failures, .. } = &traces.seen;
    let flows = &about.flows;
    if ticks.iter().any(|tick| tick.bytes.len() != flows.len()) {
        return Err(format!("near.json does not count the bytes of {} flows", flows.len()));
    }
    let measured_from = measured_from_ns(about, &traces.seen);
    let (first, last) = span(ticks, measured_from).ok_or("the run has no span after its warm-up")?;
    let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
    let bytes: Vec<f64> = first
        .bytes
        .iter()
        .zip(&last.bytes)
        .map(|(before, after)| after.saturating_sub(*before) as f64)
        .collect();
    let all: f64 = bytes.iter().sum();
    let rates: Vec<f64> = bytes.iter().map(|bytes| bytes / seconds).collect();
    let share = |bytes: f64| if all > 0.0 { bytes / all } else { 0.0 };
    let cpu_is_known = flows.iter().all(|flow| flow.cpu_is_known);
    let per_gb = |cpu_s: f64| (cpu_is_known && all > 0.0).then(|| cpu_s / (all / 1e9));
    let log = Log { traces, from_ns: first.at_ns, to_ns: last.at_ns };
    Ok(Competition {
        flows: flows
            .iter()
            .zip(&bytes)
            .enumerate()
            .map(|(number, (flow, &bytes))| FlowResult {
                source: flow.kind(),
                goodput_bytes_per_s: bytes / seconds,
                share: share(bytes),
                longest_pause_s: longest_pause_s(ticks, number, first.at_ns),
            })
            .collect(),
        goodput_bytes_per_s: all / seconds,
        jain: jain(&rates),
        sender_cpu_s_per_gb: far_cpu_s(traces, first.at_ns, last.at_ns).and_then(per_gb),
        receiver_cpu_s_per_gb: per_gb(last.processor_s - first.processor_s),
        wire_bytes_per_byte: (all > 0.0)
            .then(|| (log.sum("up", "offered_bytes") + log.sum("down", "offered_bytes")) / all),
        hops: log.hops(LinkDirection::Down),
        hops_up: if flows.iter().any(|flow| flow.way == LinkDirection::Up) {
            log.hops(LinkDirection::Up)
        } else {
            Vec::new()
        },
        idle: latency(echoes, i64::MIN, *from_ns),
        loaded: latency(echoes, first.at_ns, last.at_ns),
        failures: failures.clone(),
    })
}

/// The longest time between two ticks at which bytes of a flow had arrived, from an instant on.
fn longest_pause_s(ticks: &[Tick], flow: usize, from_ns: i64) -> f64 {
    let mut within = ticks.iter().filter(|tick| tick.at_ns >= from_ns);
    let Some(first) = within.next() else { return 0.0 };
    let (mut heard, mut longest_ns) = ((first.at_ns, first.bytes[flow]), 0);
    for tick in within {
        longest_ns = longest_ns.max(tick.at_ns - heard.0);
        if tick.bytes[flow] > heard.1 {
            heard = (tick.at_ns, tick.bytes[flow]);
        }
    }
    longest_ns as f64 / 1e9
}

fn far_cpu_s(traces: &Traces, from_ns: i64, to_ns: i64) -> Option<f64> {
    let first = traces.far.iter().find(|(at_ns, _)| *at_ns >= from_ns)?;
    let last = traces.far.iter().rfind(|(at_ns, _)| *at_ns <= to_ns)?;
    Some(last.1 - first.1)
}

fn latency(echoes: &[(i64, Option<i64>)], from_ns: i64, to_ns: i64) -> Latency {
    let within = || echoes.iter().filter(|(at_ns, _)| (from_ns..to_ns).contains(at_ns));
    let mut times: Vec<f64> = within().filter_map(|(_, took)| Some((*took)? as f64 / 1e9)).collect();
    times.sort_by(f64::total_cmp);
    let lost = within().count() - times.len();
    Latency {
        echoes: times.len(),
        p50_s: quantile(&times, 0.5),
        p95_s: quantile(&times, 0.95),
        max_s: times.last().copied(),
        round_trips_per_min: round_trips_per_min(&times),
        lost,
    }
}

/// Computes the rate from ascending round-trip times: a minute divided by the mean of all but the slowest 5 %.
fn round_trips_per_min(sorted: &[f64]) -> Option<f64> {
    let kept = &sorted[..(sorted.len() as f64 * 0.95).ceil() as usize];
    let sum: f64 = kept.iter().sum();
    (sum > 0.0).then(|| 60.0 * kept.len() as f64 / sum)
}

/// The cost of a connection of a source.
pub fn handshakes(source: String, traces: &Traces) -> Handshakes {
    let mut times: Vec<f64> = traces.seen.handshakes_ns.iter().map(|ns| *ns as f64 / 1e9).collect();
    times.sort_by(f64::total_cmp);
    let log = Log { traces, from_ns: traces.seen.from_ns, to_ns: i64::MAX };
    let each = |sum: f64| sum / times.len().max(1) as f64;
    Handshakes {
        source,
        connections: times.len(),
        p50_s: quantile(&times, 0.5),
        max_s: times.last().copied(),
        bytes_to_server: each(log.sum("up", "offered_bytes")),
        bytes_to_client: each(log.sum("down", "offered_bytes")),
        packets: each(log.sum("up", "offered_packets") + log.sum("down", "offered_packets")),
        failures: traces.seen.failures.clone(),
    }
}

/// The link's log in a span of the monotonic clock, without the echoes.
struct Log<'a> {
    traces: &'a Traces,
    from_ns: i64,
    to_ns: i64,
}

impl Log<'_> {
    /// The rows of one direction.
    fn rows(&self, direction: &str) -> impl Iterator<Item = LinkRow<'_>> {
        let Log { traces, from_ns, to_ns } = *self;
        rows(&traces.link).filter(move |row| {
            let at_ns = row.time_ns.saturating_add(traces.start_ns);
            row.direction == direction && (from_ns..to_ns).contains(&at_ns) && !row.has_port(ECHO_PORT)
        })
    }

    /// A count over the first hop: the number sent.
    fn sum(&self, direction: &str, quantity: &str) -> f64 {
        let values = self.traces.link.values(quantity);
        self.rows(direction).filter(|row| row.hop == 1).filter_map(|row| *values.get(row.place)?).sum()
    }

    fn hops(&self, way: LinkDirection) -> Vec<Hop> {
        let of = |name| self.traces.link.values(name);
        let (mean, max) = (of("queue_delay_mean_s"), of("queue_delay_max_s"));
        let packets = of("delivered_packets");
        let (dropped, lost) = (of("dropped_overflow_packets"), of("dropped_lost_packets"));
        let aqm = of("dropped_aqm_packets");
        let mut hops: Vec<Hop> = Vec::new();
        let mut delivered: Vec<f64> = Vec::new();
        for LinkRow { place, hop, .. } in self.rows(way.name()) {
            let of = |values: &[Option<f64>]| values.get(place).copied().flatten().unwrap_or_default();
            if hops.len() < hop {
                hops.resize_with(hop, Hop::default);
                delivered.resize(hop, 0.0);
            }
            delivered[hop - 1] += of(packets);
            let result = &mut hops[hop - 1];
            result.queue_delay_mean_s += of(packets) * of(mean);
            result.queue_delay_max_s = result.queue_delay_max_s.max(of(max));
            result.dropped_packets += of(dropped) + of(aqm);
            result.lost_packets += of(lost);
        }
        for (hop, packets) in hops.iter_mut().zip(delivered) {
            hop.queue_delay_mean_s /= packets.max(1.0);
        }
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_is_one_of_equals_and_one_nth_of_one_alone() {
        assert!((jain(&[3.0; 7]) - 1.0).abs() < 1e-12);
        assert!((jain(&[5.0, 0.0, 0.0, 0.0]) - 0.25).abs() < 1e-12);
        // Jain, Chiu and Hawe's example: a fifth of the users have everything, all alike.
        assert!((jain(&[20.0, 20.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]) - 0.2).abs() < 1e-12);
        assert!((jain(&[0.0, 0.0]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn latency_is_of_the_span_and_counts_what_is_lost() {
        let echoes =
            [(0, Some(5_000_000)), (10, Some(1_000_000)), (20, Some(3_000_000)), (30, None), (40, Some(9))];
        let latency = latency(&echoes, 10, 40);
        assert_eq!((latency.echoes, latency.lost), (2, 1));
        assert_eq!((latency.p50_s, latency.p95_s, latency.max_s), (Some(0.001), Some(0.003), Some(0.003)));
    }

    #[test]
    fn responsiveness_leaves_out_the_slowest_twentieth() {
        let mut times = vec![0.02; 19];
        times.push(9.0);
        let per_min = round_trips_per_min(&times).unwrap();
        assert!((per_min - 3000.0).abs() < 1e-6, "{per_min}");
        // A single round trip is not the slowest twentieth of itself.
        assert_eq!(round_trips_per_min(&[0.5]), Some(120.0));
        assert_eq!(round_trips_per_min(&[]), None);
    }

    #[test]
    fn a_pause_lasts_until_bytes_arrive_or_the_run_ends() {
        let tick = |at_s: i64, bytes: u64| Tick {
            at_ns: at_s * 1_000_000_000,
            processor_s: 0.0,
            bytes: vec![bytes],
        };
        let goes_on = [tick(0, 1), tick(1, 2), tick(2, 2), tick(3, 2), tick(4, 9), tick(5, 10)];
        assert!((longest_pause_s(&goes_on, 0, 0) - 3.0).abs() < 1e-9);
        assert!((longest_pause_s(&goes_on[..4], 0, 0) - 2.0).abs() < 1e-9);
        assert!((longest_pause_s(&goes_on, 0, 3_000_000_000) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn quantiles_are_of_the_nearest_rank() {
        let values: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((quantile(&values, 0.5), quantile(&values, 0.95)), (Some(50.0), Some(95.0)));
        assert_eq!(quantile(&[], 0.5), None);
    }
}
