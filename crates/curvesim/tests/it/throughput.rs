//! What share of a link the default congestion control uses, alone, under loss and beside another.

use curvecp::congestion::Algorithm;
use kendall_curvesim::bulk;

#[test]
fn one_flow_fills_the_link() {
    for (mbit_per_s, queue) in [(10.0, "150k"), (100.0, "500k")] {
        let measured =
            bulk(&format!("delay=10ms queue={queue}"), mbit_per_s, &[Algorithm::Cubic], [2, 12], 1);
        assert!(measured.shares[0] >= 0.97, "{mbit_per_s} Mbit/s: {measured:?}");
    }
}

#[test]
fn two_flows_share_a_bottleneck_evenly() {
    let measured = bulk("delay=10ms queue=60k", 10.0, &[Algorithm::Cubic; 2], [10, 100], 1);
    let total: f64 = measured.shares.iter().sum();
    let first = measured.shares[0] / total;
    assert!(total >= 0.95 && (0.45..=0.55).contains(&first), "{measured:?}");
}

#[test]
fn random_loss_leaves_bbr_the_link_and_cubic_what_its_formula_gives() {
    let of = |algorithm| bulk("delay=10ms queue=150k loss=1%", 10.0, &[algorithm], [2, 22], 1).shares[0];
    let (cubic, bbr) = (of(Algorithm::Cubic), of(Algorithm::Bbr));
    // RFC 9438's W_est region is Reno's: about 1.2/sqrt(p) = 12 segments of 1,024 bytes per 20 ms, 0.6 MB/s of 1.06.
    assert!((0.45..=1.0).contains(&cubic), "{cubic}");
    assert!(bbr >= 0.85, "{bbr}");
}
