//! The coverage of the intervals of searches: how often another search of the same system ends within them, while the machine is
//! disturbed.

use std::convert::Infallible;

use kendall_station::Law;
use kendall_stats::random::{derive, stream};

use super::tests::{probed, truth};
use super::*;

/// Number drawn for a probe, uniform between 0 and 1.
fn uniform(seed: u64) -> f64 {
    let unit = Law::Exponential { mean_s: 1.0 };
    libm::exp(-unit.sample(&mut stream(seed, Purpose::Trial, 1)))
}

/// A search on a machine of which other programs take a tenth to a half during three of ten probes, which is noticed, and up to 4 % during
/// all others, which is not.
fn disturbed_search(law: &Law, servers: u32, aim: &Aim, seed: u64) -> PeakResult {
    let mut number = 0;
    let mut probe = |ask: &Ask| {
        number += 1;
        let seed = derive(seed, Purpose::Trial, number);
        let is_disturbed = uniform(seed) < 0.3;
        let taken = if is_disturbed { 0.1 + 0.4 * uniform(seed ^ 1) } else { 0.04 * uniform(seed ^ 2) };
        let slower = law.with_mean(law.mean_s() / (1.0 - taken));
        let seen = probed(&slower, servers as usize, aim.slo, ask, seed);
        Ok::<_, Infallible>(Sighting { disturbed: is_disturbed, ..seen })
    };
    let off = if seed.is_multiple_of(2) { 1.33 } else { 0.75 };
    let curve = Curve::new(servers, law.mean_s() * off, 0.0);
    search(aim, curve, 0.05 / law.mean_s(), seed, &mut probe).unwrap()
}

/// The share of pairs of searches of which one ends within the interval of the other, and the median relative width of the intervals.
fn coverage(law: &Law, servers: u32, slo: &str, searches: u64) -> (f64, f64) {
    let aim = Aim { slo: slo.parse().unwrap(), errors_at_most: 0.01 };
    let found: Vec<PeakResult> =
        (0..searches).map(|seed| disturbed_search(law, servers, &aim, seed)).collect();
    let rates: Vec<Estimate> = found.iter().filter_map(|found| found.rate_per_s).collect();
    assert!(rates.len() as u64 >= searches * 9 / 10, "{} of {searches} found a rate", rates.len());
    for found in &found {
        // A rate is stated only where a probe passed, there or right below.
        let passed = |rate: f64| {
            found.probes.iter().any(|probe| probe.outcome == Outcome::Pass && probe.ask.rate_per_s >= rate)
        };
        assert!(found.rate_per_s.is_none_or(|rate| passed(rate.value / 1.07)), "{found:?}");
    }
    let within = |one: &Estimate, other: &Estimate| {
        let (low, high) = one.interval.unwrap();
        (low..=high).contains(&other.value)
    };
    let (mut held, mut pairs) = (0u32, 0u32);
    for (at, one) in rates.iter().enumerate() {
        for (_, other) in rates.iter().enumerate().filter(|(other, _)| *other != at) {
            (held, pairs) = (held + u32::from(within(one, other)), pairs + 1);
        }
    }
    let truth = truth(law, servers, aim.slo);
    let near = rates.iter().filter(|rate| (rate.value / truth - 1.0).abs() < 0.08).count();
    let mut widths: Vec<f64> =
        rates.iter().map(|rate| (rate.interval.unwrap().1 - rate.interval.unwrap().0) / rate.value).collect();
    widths.sort_by(f64::total_cmp);
    let probes = found.iter().map(|found| found.probes.len()).sum::<usize>() as f64 / searches as f64;
    let (share, width) = (f64::from(held) / f64::from(pairs), widths[widths.len() / 2]);
    println!(
        "{slo}: {} searches, {share:.3} of the pairs held, width {width:.3}, {near} within 8 % of the truth, {probes:.1} probes",
        rates.len()
    );
    assert!(near * 10 >= rates.len() * 9, "{near} of {} near the truth {truth}", rates.len());
    (share, width)
}

/// 95 of 100 are meant. Of 200 searches of each of these systems, with other seeds, 95.4, 99.1 and 95.3 % of the pairs held, and the
/// intervals of 99, 98 and 97.5 % contained the rate that theory knows. Of 20 the share has a standard error of some 3 %; the seeds are
/// fixed.
#[test]
fn another_search_ends_within_the_interval_of_the_first() {
    let systems = [
        (Law::Exponential { mean_s: 0.010 }, 4, "p99<80ms"),
        (Law::Erlang { shape: 4, mean_s: 0.001 }, 1, "mean<4ms"),
        (Law::Exponential { mean_s: 0.005 }, 2, "p90<30ms"),
    ];
    for (law, servers, slo) in systems {
        let (share, width) = coverage(&law, servers, slo, 20);
        assert!(share >= 0.88, "{slo}: {share}");
        // An interval that holds everything says nothing.
        assert!(width < 0.3, "{slo}: {width}");
    }
}

/// A probe that fails because others had the machine is repeated, and what it saw moves neither the bracket nor the model.
#[test]
fn disturbed_probes_are_repeated_and_not_believed() {
    let aim = Aim { slo: "mean<50ms".parse().unwrap(), errors_at_most: 0.01 };
    let sight = |value: f64, disturbed: bool| Sighting {
        achieved_share: 1.0,
        value_s: Some(Estimate { value, interval: Some((0.98 * value, 1.02 * value)) }),
        errors: Estimate { value: 0.0, interval: Some((0.0, 0.001)) },
        grows: false,
        disturbed,
    };
    let mut number = 0;
    // One server of 10 ms meets it up to 80/s; every third probe sees three times that.
    let mut probe = |ask: &Ask| {
        number += 1;
        let value = 1.0 / (100.0 - ask.rate_per_s.min(99.0));
        Ok::<_, Infallible>(if number % 3 == 0 { sight(3.0 * value, true) } else { sight(value, false) })
    };
    let found = search(&aim, Curve::new(1, 0.010, 0.0), 5.0, 1, &mut probe).unwrap();
    let rate = found.rate_per_s.unwrap();
    assert!((rate.value / 80.0 - 1.0).abs() < 0.03, "{found:?}");
    let again = found.probes.windows(2).filter(|pair| !pair[0].is_believed());
    for pair in again {
        assert_eq!((pair[1].ask.why, pair[1].ask.rate_per_s), (Why::Again, pair[0].ask.rate_per_s));
    }
    assert!(found.probes.iter().any(|probe| probe.ask.why == Why::Again));
    // A disturbance that does not end is the machine as it is: the search ends.
    let mut always = |ask: &Ask| Ok::<_, Infallible>(sight(1.0 / (100.0 - ask.rate_per_s.min(99.0)), true));
    let found = search(&aim, Curve::new(1, 0.010, 0.0), 5.0, 1, &mut always).unwrap();
    assert!(found.probes.len() < 40 && found.rate_per_s.is_some(), "{found:?}");
}
