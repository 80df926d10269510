//! Two message layers over a modelled link, in virtual time: what must hold whatever the network does.

mod simulation;

use std::time::Duration;

use curvecp::{LayerState, MessageConfig, Read};
use simulation::{Script, World};

const S: Duration = Duration::from_secs(1);

#[test]
fn a_lossless_link_delivers_both_streams_and_both_ends_drain() {
    let settings = "delay=10ms rate=100mbit queue=500k".parse().unwrap();
    let mut world = World::new([&settings, &settings], 1);
    let config = || MessageConfig::default();
    world.connect([config(), config()], [Script::bulk(3_000_000), Script::bulk(1_000_000)], 1);
    assert!(!world.run_until(60 * S), "nothing is left to happen");
    let [client, server] = &world.flows[0];
    assert_eq!((client.read, server.read), (1_000_000, 3_000_000));
    assert_eq!((client.outcome, server.outcome), (Some(Read::Finished), Some(Read::Finished)));
    assert_eq!((client.layer.state(), server.layer.state()), (LayerState::Drained, LayerState::Drained));
    assert!(world.now < 2 * S, "took {:?}: {:?}", world.now, client.layer.stats());
}
