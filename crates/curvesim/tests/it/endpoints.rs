//! Whole endpoints over a modelled link, in virtual time: what must hold whatever the network, its attacker and the applications do.

use crate::seeds;
use kendall_curvesim::EndpointScenario;

#[test]
fn whatever_the_network_does_streams_arrive_exactly_or_fail_on_both_sides() {
    for seed in seeds(if cfg!(debug_assertions) { 3_000 } else { 10_000 }) {
        EndpointScenario::from_seed(seed).check();
    }
}

/// A failure could not be replayed otherwise.
#[test]
fn a_seed_gives_the_same_datagrams_each_time() {
    for seed in 0..20 {
        let [first, second] = [0, 1].map(|_| EndpointScenario::from_seed(seed).check());
        assert_eq!(first, second, "seed {seed}");
        assert_ne!(first, EndpointScenario::from_seed(seed + 1).check());
    }
}
