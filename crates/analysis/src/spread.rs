//! The distribution of times: the slow end of the response times, and a histogram of the service times with the laws of the
//! models.

use kendall_station::{Kind, Notation};
use kendall_stats::{minimum_samples, quantile_rank};

use crate::models::law;
use crate::report::point::ServiceSpread;

/// Steps to a tenth of the requests that are left.
const STEPS: i32 = 12;
/// Quantiles go no further out than 1 − 10⁻⁶.
const DECADES: i32 = 6;
/// The quantiles that people usually name, in addition to the steps.
const NAMED: [f64; 6] = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999];
/// Intervals of a histogram.
const BINS: usize = 40;
/// The share of the service times that a histogram shows; single long ones would leave the others no room.
const SHOWN: f64 = 0.995;
/// The fewest service times for a histogram.
const FEWEST: usize = 100;

/// Quantiles of a sample in ascending order, closer together the further out, as far as the size of the sample supports.
pub fn tail(sorted_s: &[f64]) -> Vec<(f64, f64)> {
    let n = sorted_s.len() as u64;
    let step = |step: i32| 1.0 - 10f64.powf(-f64::from(step) / f64::from(STEPS));
    // On a step of a whole power of ten the named one is exact.
    let mut shares: Vec<f64> =
        (0..=STEPS * DECADES).filter(|at| *at == 0 || at % STEPS != 0).map(step).collect();
    shares.extend(NAMED);
    shares.sort_by(f64::total_cmp);
    let measurable = shares.into_iter().filter(|&p| n > 0 && (p == 0.0 || n >= minimum_samples(p)));
    measurable.map(|p| (p, sorted_s[quantile_rank(n, p) as usize - 1])).collect()
}

/// A histogram of service times in ascending order, and what the laws of the models expect in its intervals. `None` for few
/// times, and where they hardly differ.
pub fn spread(services_s: &[f64], scv: f64, notations: &[Notation]) -> Option<ServiceSpread> {
    let n = services_s.len();
    if n < FEWEST {
        return None;
    }
    let end_s = services_s[quantile_rank(n as u64, SHOWN) as usize - 1];
    let start_s = services_s[0];
    if end_s <= start_s * (1.0 + 1e-9) {
        return None;
    }
    // From nothing, unless that would leave most of it empty.
    let from_s = if start_s < 0.5 * end_s { 0.0 } else { start_s };
    let edge = |place: usize| from_s + (end_s - from_s) * place as f64 / BINS as f64;
    let edges_s: Vec<f64> = (0..=BINS).map(edge).collect();
    let below = |edge_s: f64| services_s.partition_point(|service_s| *service_s < edge_s);
    let share = |pair: &[f64]| (below(pair[1]) - below(pair[0])) as f64 / n as f64;
    let mut shares: Vec<f64> = edges_s.windows(2).map(share).collect();
    // The last interval has its upper end.
    shares[BINS - 1] = (services_s.partition_point(|service_s| *service_s <= end_s)
        - below(edges_s[BINS - 1])) as f64
        / n as f64;
    let mean_s = services_s.iter().sum::<f64>() / n as f64;
    let mut laws: Vec<(String, Vec<f64>)> = Vec::new();
    for kind in notations.iter().map(|notation| notation.service) {
        let Ok(of) = law(kind, mean_s, scv) else { continue };
        let name = match kind {
            Kind::General => format!("G, as the {} law of this mean and variation", of.name()),
            kind => format!("{kind}, the {} law", of.name()),
        };
        if !laws.iter().any(|(known, _)| *known == name) {
            laws.push((
                name,
                edges_s.windows(2).map(|pair| of.survival(pair[0]) - of.survival(pair[1])).collect(),
            ));
        }
    }
    Some(ServiceSpread { edges_s, shares, laws })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_ends_where_the_sample_no_longer_tells() {
        for (n, last) in [(5, 0.0), (299, 0.99), (2_995, 0.999), (100_000, 0.9999)] {
            let sample: Vec<f64> = (1..=n).map(f64::from).collect();
            let tail = tail(&sample);
            let end = tail.last().unwrap();
            assert!(n as u64 >= minimum_samples(end.0.max(0.5)) || end.0 == 0.0);
            assert!(end.0 >= last, "{n}: {end:?}");
            assert!(tail.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1));
            for (p, value) in tail {
                assert!((value - (p * f64::from(n)).ceil().max(1.0)).abs() <= 1.0, "{p}: {value}");
            }
        }
    }

    #[test]
    fn a_histogram_counts_all_but_the_slowest_and_laws_expect_as_many() {
        let notations: Vec<Notation> = ["M/M/1", "M/G/1", "M/M/2"].map(|text| text.parse().unwrap()).into();
        let n = 10_000;
        let exponential: Vec<f64> = (0..n).map(|i| -((f64::from(n - i) - 0.5) / f64::from(n)).ln()).collect();
        let seen = spread(&exponential, 1.0, &notations).unwrap();
        assert_eq!((seen.shares.len(), seen.edges_s.len()), (BINS, BINS + 1));
        assert!((seen.shares.iter().sum::<f64>() - SHOWN).abs() < 1e-3);
        assert_eq!(seen.laws.len(), 2, "a law is drawn once");
        for (share, expected) in seen.shares.iter().zip(&seen.laws[0].1) {
            assert!((share - expected).abs() < 1e-3, "{share} {expected}");
        }
        assert_eq!(spread(&[0.5; 1000], 0.0, &notations), None);
        assert_eq!(spread(&exponential[..50], 1.0, &notations), None);
    }
}
