//! Messages longer than the reference's on links that drop packets above a size.

use std::time::Duration;

use curvecp::Read;
use kendall_curvesim::{LONGEST, LayerWorld, Script};

const S: Duration = Duration::from_secs(1);
/// Headers of IPv4, UDP and a client's packet.
const OVERHEAD: usize = 28 + 96;

/// A transfer over 20 Mbit/s and 20 ms from which `mtu` takes what is too long.
fn transfer(mtu: Vec<(Duration, u32)>, bytes: u64) -> LayerWorld {
    let settings = "delay=10ms rate=20mbit queue=8m".parse().unwrap();
    let mut world = LayerWorld::new([&settings, &settings], 1);
    (world.limits, world.mtu) = (LONGEST, mtu);
    world.connect(Default::default(), [Script::bulk(bytes), Script::silent()], 1);
    world
}

#[test]
fn a_sender_finds_the_longest_message_that_the_path_carries_and_takes_no_probe_for_congestion() {
    for mtu in (1_280..=1_500).step_by(20) {
        let mut world = transfer(vec![(Duration::ZERO, mtu)], 3_000_000);
        assert!(!world.run_until(60 * S));
        let [client, server] = &world.flows[0];
        assert_eq!((server.read, server.outcome), (3_000_000, Some(Read::Finished)));
        let stats = client.layer.stats();
        let fits = (mtu as usize - OVERHEAD).min(LONGEST[0]);
        assert_eq!(stats.longest_message, 1_088 + (fits - 1_088) / 32 * 32, "at {mtu}");
        assert_eq!((stats.lost, stats.spurious_events), (0, 0), "at {mtu}");
    }
}

#[test]
fn a_path_whose_mtu_shrinks_during_a_transfer_still_delivers() {
    for (seed, mtu) in (1_280..1_460).step_by(20).enumerate() {
        let shrinks = S + Duration::from_millis(37 * seed as u64);
        let mut world = transfer(vec![(Duration::ZERO, 1_500), (shrinks, mtu)], 10_000_000);
        world.run_until(S);
        assert_eq!(world.flows[0][0].layer.stats().longest_message, 1_344);
        assert!(!world.run_until(60 * S));
        let [client, server] = &world.flows[0];
        assert_eq!((server.read, server.outcome), (10_000_000, Some(Read::Finished)));
        assert_eq!(client.layer.stats().longest_message, 1_088 + (mtu as usize - OVERHEAD - 1_088) / 32 * 32);
        // 4.3 s at the rate of the link.
        assert!(server.outcome_at < 10 * S, "{mtu}: {:?}", server.outcome_at);
    }
}
