//! Two message layers over a modelled link, in virtual time: what must hold whatever the network and the applications do.

use std::time::Duration;

use crate::seeds;
use curvecp::congestion::Algorithm;
use curvecp::{Failure, LayerState, MessageConfig, Read};
use kendall_curvesim::{Ending, LayerScenario, LayerWorld, Script};

const S: Duration = Duration::from_secs(1);

#[test]
fn whatever_the_network_does_streams_arrive_exactly_or_fail() {
    for seed in seeds(if cfg!(debug_assertions) { 300 } else { 3_000 }) {
        LayerScenario::from_seed(seed).check();
    }
}

#[test]
fn a_lossless_link_delivers_both_streams_and_both_ends_drain() {
    for algorithm in Algorithm::ALL {
        let settings = "delay=10ms rate=100mbit queue=500k".parse().unwrap();
        let mut world = LayerWorld::new([&settings, &settings], 1);
        let config = || MessageConfig { algorithm, ..MessageConfig::default() };
        world.connect([config(), config()], [Script::bulk(300_000), Script::bulk(100_000)], 1);
        assert!(!world.run_until(60 * S), "nothing is left to happen");
        let [client, server] = &world.flows[0];
        assert_eq!((client.read, server.read), (100_000, 300_000));
        assert_eq!((client.outcome, server.outcome), (Some(Read::Finished), Some(Read::Finished)));
        assert_eq!((client.layer.state(), server.layer.state()), (LayerState::Drained, LayerState::Drained));
        assert!(
            client.outcome_at.max(server.outcome_at) < 10 * S,
            "{algorithm:?}: {:?}",
            client.layer.stats()
        );
    }
}

/// Seed 754 of the first version: a round trip of 0 made Chicago's interval and time-out 0, and time never went on.
#[test]
fn an_instant_round_trip_does_not_make_chicago_send_for_ever() {
    for algorithm in [Algorithm::ChicagoPolled, Algorithm::Chicago] {
        let settings = "queue=8k loss=10%".parse().unwrap();
        let mut world = LayerWorld::new([&settings, &settings], 754);
        world.most_events = 10_000;
        let config = || MessageConfig { algorithm, feedback: false, ..MessageConfig::default() };
        world.connect([config(), config()], [Script::bulk(1_642), Script::bulk(61_452)], 754);
        assert!(!world.run_until(120 * S));
        assert_eq!(world.flows[0][0].read, 61_452);
    }
}

#[test]
fn a_vanished_peer_is_noticed_at_the_idle_timeout() {
    let settings = "delay=10ms".parse().unwrap();
    let mut world = LayerWorld::new([&settings, &settings], 1);
    let script = Script { ending: Ending::Never, ..Script::silent() };
    world.connect([MessageConfig::default(), MessageConfig::default()], [script.clone(), script], 1);
    world.run_until(600 * S);
    assert_eq!(world.flows[0][0].layer.state(), LayerState::Open, "keep-alive holds a silent connection");
    world.cut_at = Some(600 * S);
    assert!(!world.run_until(700 * S));
    for end in &world.flows[0] {
        assert_eq!(end.layer.state(), LayerState::Failed(Failure::IdleTimeout));
        assert_eq!(end.outcome, Some(Read::Failed));
    }
}
