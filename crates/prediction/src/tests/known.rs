//! Servers that were started as a station that is known.

use super::*;
use crate::law::Fitted;

/// Without timestamps, the station and its order of service are known all the same.
#[test]
fn a_known_order_counts_without_timestamps() {
    let truth = Truth::new(Discipline::Lifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.001);
    let station = |discipline| KnownStation { servers: Servers::MIN, discipline, classes: Vec::new() };
    let observed = truth.observed(truth.measured_capacity(), Some(station(Discipline::Lifo)));
    let found =
        Predictor::new(&observed, 1).predict(&Question::at(0.85 * truth.capacity_per_s(), 60_000)).unwrap();
    assert_eq!(found.stations.len(), 1, "{found:?}");
    assert_eq!(found.stations[0].discipline, Discipline::Lifo);
    let rows = truth.rows(0.85, 400_000, 80);
    let mut responses_s: Vec<f64> =
        rows.iter().filter_map(|row| row.response_ns()).map(|ns| ns as f64 / 1e9).collect();
    responses_s.sort_by(f64::total_cmp);
    near(p99(&found), responses_s[responses_s.len() * 99 / 100], 0.15);
}

/// A server may have no stamps of the first requests; those of the others are of the same requests.
#[test]
fn a_warm_up_without_timestamps_shifts_no_service_time() {
    let plain = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let truth = Truth { stamps: true, ..plain };
    let mut rows = truth.rows(0.3, 1_000, 81);
    rows[..10].iter_mut().for_each(|row| row.service = None);
    let warmup_ns = rows[20].scheduled;
    let services_s: Vec<f64> = rows[20..].iter().map(|row| row.service.unwrap() as f64 / 1e9).collect();
    let known = KnownStation { servers: Servers::MIN, discipline: Discipline::Fifo, classes: Vec::new() };
    let observed = Observed::new(vec![(30.0, Block::of(&rows, warmup_ns))], None, Some(known)).unwrap();
    assert!(observed.is_stamped());
    let (fitted, _) = Fitted::of(truth.station, &observed);
    let found_s = fitted.levels[0].mean_s(&vec![1.0; observed.levels[0].chunks.len()]);
    assert!((found_s / kendall_stats::mean(&services_s) - 1.0).abs() < 1e-9, "{found_s}");
}
