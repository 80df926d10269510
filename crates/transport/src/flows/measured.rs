//! What a run says: goodput, fairness, cost, bytes on the wire, queue and latency. Pure functions of its traces.

use std::time::Duration;

use serde::Serialize;

use super::course::Traces;
use super::plan::{ECHO_PORT, Seen, Tick};
use super::source::{Flow, Source};

/// The measured span of flows, after the warm-up.
#[derive(Debug, Serialize)]
pub(crate) struct Competition {
    /// Each flow, in the order in which the user named them.
    pub(crate) flows: Vec<FlowResult>,
    /// All flows together, in bytes per second.
    pub(crate) goodput_bytes_per_s: f64,
    /// Jain's index of the goodputs: 1 where all are alike, 1/n where one has everything.
    pub(crate) jain: f64,
    /// Processor time of the two ends for a gigabyte (10⁹ bytes). `None` where programs that others wrote take part.
    pub(crate) sender_cpu_s_per_gb: Option<f64>,
    /// And of the receiver.
    pub(crate) receiver_cpu_s_per_gb: Option<f64>,
    /// Bytes that entered the link both ways, Ethernet headers included, per byte that arrived of a flow.
    pub(crate) wire_bytes_per_byte: f64,
    /// The queues that flows wait in, from server to client, a hop each.
    pub(crate) hops: Vec<Hop>,
    /// The echoes before the flows began, and in the measured span.
    pub(crate) idle: Latency,
    /// In the measured span.
    pub(crate) loaded: Latency,
    /// What failed.
    pub(crate) failures: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(crate) struct FlowResult {
    pub(crate) source: Source,
    pub(crate) goodput_bytes_per_s: f64,
    /// Of all flows' bytes; 0 to 1.
    pub(crate) share: f64,
    /// The longest time in which nothing arrived of it, to a tenth of a second; the rest of the span where it never went on.
    pub(crate) longest_pause_s: f64,
}

#[derive(Debug, Default, Serialize)]
pub(crate) struct Hop {
    /// The mean over packets, and the longest.
    pub(crate) queue_delay_mean_s: f64,
    pub(crate) queue_delay_max_s: f64,
    /// Packets for which the queue had no capacity, and those that the wire lost.
    pub(crate) dropped_packets: f64,
    pub(crate) lost_packets: f64,
}

#[derive(Debug, Serialize)]
pub(crate) struct Latency {
    pub(crate) echoes: usize,
    pub(crate) p50_s: Option<f64>,
    pub(crate) p95_s: Option<f64>,
    pub(crate) max_s: Option<f64>,
    /// Sent and not answered.
    pub(crate) lost: usize,
}

/// What connections cost.
#[derive(Debug, Serialize)]
pub(crate) struct Handshakes {
    pub(crate) source: Source,
    pub(crate) connections: usize,
    /// From the first packet to the first byte of an answer.
    pub(crate) p50_s: Option<f64>,
    pub(crate) max_s: Option<f64>,
    /// For a connection with one byte, its end included; Ethernet headers included.
    pub(crate) bytes_to_server: f64,
    pub(crate) bytes_to_client: f64,
    pub(crate) packets: f64,
    pub(crate) failures: Vec<String>,
}

/// Jain's index of fairness (Jain, Chiu, Hawe 1984): (Σx)² / (n Σx²).
pub(crate) fn jain(rates: &[f64]) -> f64 {
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

/// What flows got once they had run for the warm-up, the last of them, too.
///
/// # Errors
/// Where the run was too short.
pub(crate) fn competition(flows: &[Flow], traces: &Traces, warm_up: Duration) -> Result<Competition, String> {
    let Seen { ticks, echoes, from_ns, failures, .. } = &traces.seen;
    let latest = flows.iter().map(|flow| flow.after).max().unwrap_or_default();
    let measured_from = from_ns + ns(warm_up + latest);
    let (first, last) = span(ticks, measured_from).ok_or("the run has no span after its warm-up")?;
    let seconds = (last.at_ns - first.at_ns) as f64 / 1e9;
    let bytes: Vec<f64> =
        first.bytes.iter().zip(&last.bytes).map(|(before, after)| (after - before) as f64).collect();
    let all: f64 = bytes.iter().sum();
    let rates: Vec<f64> = bytes.iter().map(|bytes| bytes / seconds).collect();
    let share = |bytes: f64| if all > 0.0 { bytes / all } else { 0.0 };
    let is_ours = flows.iter().all(|flow| matches!(flow.source, Source::Ours(_)));
    let per_gb = |cpu_s: f64| (is_ours && all > 0.0).then(|| cpu_s / (all / 1e9));
    let log = Log { traces, from_ns: first.at_ns, to_ns: last.at_ns };
    Ok(Competition {
        flows: flows
            .iter()
            .zip(&bytes)
            .enumerate()
            .map(|(number, (flow, &bytes))| FlowResult {
                source: flow.source,
                goodput_bytes_per_s: bytes / seconds,
                share: share(bytes),
                longest_pause_s: longest_pause_s(ticks, number, first.at_ns),
            })
            .collect(),
        goodput_bytes_per_s: all / seconds,
        jain: jain(&rates),
        sender_cpu_s_per_gb: far_cpu_s(traces, first.at_ns, last.at_ns).and_then(per_gb),
        receiver_cpu_s_per_gb: per_gb(last.processor_s - first.processor_s),
        wire_bytes_per_byte: (log.sum("up", "offered_bytes") + log.sum("down", "offered_bytes")) / all,
        hops: log.hops(),
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
        lost,
    }
}

/// What a connection of a source cost.
pub(crate) fn handshakes(source: Source, traces: &Traces) -> Handshakes {
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
    /// The rows of one direction, with their hop.
    fn rows(&self, direction: &str) -> impl Iterator<Item = (usize, &str)> {
        let Log { traces, from_ns, to_ns } = *self;
        let (link, echo) = (&traces.link, format!(":{ECHO_PORT}"));
        let labels = link.label("direction").zip(link.label("hop")).zip(link.label("flow"));
        let is_echo = move |flow: &str| flow.split(' ').any(|word| word.ends_with(&echo));
        labels.enumerate().filter_map(move |(row, ((way, hop), flow))| {
            let at_ns = link.time_ns[row] + traces.start_ns;
            let is_in = way == direction && (from_ns..to_ns).contains(&at_ns) && !is_echo(flow);
            is_in.then_some((row, hop))
        })
    }

    /// A count over the first hop: what was sent.
    fn sum(&self, direction: &str, quantity: &str) -> f64 {
        let values = self.traces.link.values(quantity);
        self.rows(direction).filter(|(_, hop)| *hop == "1").filter_map(|(row, _)| values[row]).sum()
    }

    fn hops(&self) -> Vec<Hop> {
        let of = |name| self.traces.link.values(name);
        let (mean, max) = (of("queue_delay_mean_s"), of("queue_delay_max_s"));
        let packets = of("delivered_packets");
        let (dropped, lost) = (of("dropped_overflow_packets"), of("dropped_lost_packets"));
        let aqm = of("dropped_aqm_packets");
        let mut hops: Vec<Hop> = Vec::new();
        let mut delivered: Vec<f64> = Vec::new();
        for (row, hop) in self.rows("down") {
            let Some(hop) = hop.parse::<usize>().ok().and_then(|hop| hop.checked_sub(1)) else { continue };
            while hops.len() <= hop {
                hops.push(Hop::default());
                delivered.push(0.0);
            }
            let packets = packets[row].unwrap_or_default();
            delivered[hop] += packets;
            let result = &mut hops[hop];
            result.queue_delay_mean_s += packets * mean[row].unwrap_or_default();
            result.queue_delay_max_s = result.queue_delay_max_s.max(max[row].unwrap_or_default());
            result.dropped_packets += dropped[row].unwrap_or_default() + aqm[row].unwrap_or_default();
            result.lost_packets += lost[row].unwrap_or_default();
        }
        for (hop, packets) in hops.iter_mut().zip(delivered) {
            hop.queue_delay_mean_s /= packets.max(1.0);
        }
        hops
    }
}

fn ns(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
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
