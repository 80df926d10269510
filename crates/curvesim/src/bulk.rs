//! Throughput, sharing and queueing delay of bulk flows, as ratios.

use std::time::Duration;

use curvecp::MessageConfig;
use curvecp::congestion::Algorithm;
use kendall_linkmodel::Settings;

use crate::layers::LayerWorld;
use crate::script::{Ending, Script};

/// Data bytes per byte on the link: 1,024 in a message of 1,088, with the headers of packet, UDP and IPv4.
const EFFICIENCY: f64 = 1024.0 / (1088.0 + 124.0);

/// The measurement of flows from clients to servers after a warm-up.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The goodput of each flow, as a share of what the protocol can carry over the link.
    pub shares: Vec<f64>,
    /// Mean time in the queue, in ms.
    pub queue_ms: f64,
    /// Messages lost, as a share of those sent, over all flows.
    pub lost: f64,
}

/// Runs one bulk flow per algorithm over a shared link, from `from` to `until` measured. Flow i begins i × 100 ms late.
///
/// # Panics
/// Where the link's settings are wrong.
pub fn bulk(
    link: &str,
    mbit_per_s: f64,
    algorithms: &[Algorithm],
    [from, until]: [u64; 2],
    seed: u64,
) -> Measured {
    let forward: Settings = format!("{link} rate={mbit_per_s}mbit").parse().expect("settings are valid");
    let back = Settings { delay_ns: forward.delay_ns, loss: forward.loss, ..Settings::default() };
    let mut world = LayerWorld::new([&forward, &back], seed);
    for (index, algorithm) in algorithms.iter().enumerate() {
        let starts = Duration::from_millis(100 * index as u64);
        // Chicago as the reference has it: a peer that acknowledges every message.
        let feedback = !matches!(algorithm, Algorithm::ChicagoPolled | Algorithm::Chicago);
        let config = || MessageConfig { algorithm: *algorithm, feedback, ..MessageConfig::default() };
        let sender = Script { ending: Ending::Never, ..Script::bulk(u64::MAX >> 8) }.from(starts);
        let receiver = Script { ending: Ending::Never, ..Script::silent() };
        world.connect([config(), config()], [sender, receiver], seed * 100 + index as u64);
    }
    world.run_until(Duration::from_secs(from));
    world.waited = (0.0, 0);
    let before: Vec<u64> = world.flows.iter().map(|flow| flow[1].read).collect();
    let stats = |world: &LayerWorld| {
        let stats = world.flows.iter().map(|flow| flow[0].layer.stats());
        stats.fold((0, 0), |sum, one| (sum.0 + one.messages_sent, sum.1 + one.lost))
    };
    let sent_before = stats(&world);
    world.run_until(Duration::from_secs(until));
    let ceiling = mbit_per_s * 1e6 / 8.0 * EFFICIENCY * (until - from) as f64;
    let sent = stats(&world);
    Measured {
        shares: world
            .flows
            .iter()
            .zip(before)
            .map(|(flow, read)| (flow[1].read - read) as f64 / ceiling)
            .collect(),
        queue_ms: world.waited.0 / world.waited.1.max(1) as f64 * 1e3,
        lost: (sent.1 - sent_before.1) as f64 / (sent.0 - sent_before.0).max(1) as f64,
    }
}
