//! Processors that change their speed.

use super::*;

/// Where a fixed computation takes a quarter longer in some seconds, and so do the answers of a full load, another load is known to be slower
/// in the seconds in which the computation is.
#[test]
fn the_speed_of_the_processors_lengthens_service_in_its_seconds() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let mut observed = truth.observed(truth.measured_capacity(), None);
    let full_s: Vec<f64> = (0..40).map(|second| if second % 4 == 0 { 1.25e-4 } else { 1e-4 }).collect();
    assert_eq!(observed.slower(&full_s), None);
    observed.gaps_s = vec![full_s.iter().map(|time_s| 100.0 * time_s).collect()];
    observed.computation_s = vec![full_s];
    let usual_s = 1e-4 * 1.25_f64.powf(0.25);
    let slower = observed.slower(&[usual_s, 1.2 * usual_s]).unwrap();
    assert!((slower[0] - 1.0).abs() < 1e-9 && (slower[1] - 1.2).abs() < 1e-9, "{slower:?}");
    // A server that does not depend on it is as fast as ever.
    observed.gaps_s = vec![vec![0.01; 40]];
    assert!(observed.slower(&[1.2 * usual_s]).unwrap()[0] < 1.02);
    assert_eq!(observed.slower(&[]), None);
    // A load of 77 % with a third of its seconds at 125 % of the work is as one of 83 %, and longer.
    let predictor = Predictor::new(&observed, 1);
    let at = Question::at(77.0, 20_000);
    let mean_s = |slower: Option<Vec<f64>>| {
        predictor.predict(&Question { slower, ..at.clone() }).unwrap().mean_s.value
    };
    let seconds =
        |times: f64| Some((0..300).map(|second| if second % 3 == 0 { times } else { 1.0 }).collect());
    let ratio = mean_s(seconds(1.25)) / mean_s(seconds(1.0));
    assert!((1.2..2.0).contains(&ratio), "{ratio}");
}

/// Service may depend on the speed of the processors by no power: here it is 15 % longer where the computation takes 10 % longer, and 20 %
/// where it takes 30 % longer.
#[test]
fn service_follows_the_speed_of_the_processors_by_any_law() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let mut observed = truth.observed(truth.measured_capacity(), None);
    let both = [(1e-4, 0.01), (1.1e-4, 0.0115), (1.3e-4, 0.012)];
    let seconds: Vec<(f64, f64)> = (0..60).map(|second| both[second / 20]).collect();
    let (computation_s, gaps_s): (Vec<f64>, Vec<f64>) = seconds.into_iter().unzip();
    (observed.computation_s, observed.gaps_s) = (vec![computation_s], vec![gaps_s]);
    let slower = observed.slower(&both.map(|second| second.0)).unwrap();
    assert!((slower[1] / slower[0] - 1.15).abs() < 0.02, "{slower:?}");
    assert!((slower[2] / slower[0] - 1.20).abs() < 0.02, "{slower:?}");
}

/// Full loads that differ as the computations do agree on the capacity at one speed, and low loads have no slow seconds then.
#[test]
fn what_the_computations_say_of_the_speed_is_taken_out() {
    const SLOWER: f64 = 1.2;
    let fast = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let slow = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SLOWER * SERVICE_S }, 0.0);
    let block = |truth: &Truth, rho: f64, computation_s: f64| {
        let rows = truth.rows(rho, REQUESTS, 71);
        (rho / SERVICE_S, Block::of(&rows, 0).with_computation(vec![computation_s; 400]))
    };
    let blocks =
        vec![block(&fast, 0.3, 1e-4), block(&slow, 0.3 * SLOWER, SLOWER * 1e-4), block(&fast, 0.5, 1e-4)];
    let capacity = Capacity { per_s: 91.0, relative_sd: 0.1, blocks: 4, requests: 1e4 };
    let mut observed = Observed::new(blocks, Some(capacity), None).unwrap();
    assert_eq!(observed.at_one_speed().map(|_| ()), None);
    let full = |slower: f64| (vec![slower * 1e-4; 20], vec![slower * SERVICE_S; 20]);
    for slower in [SLOWER, 1.0, SLOWER, 1.0] {
        let (computation_s, gaps_s) = full(slower);
        observed.computation_s.push(computation_s);
        observed.gaps_s.push(gaps_s);
    }
    let steady = observed.at_one_speed().unwrap();
    let capacity = steady.capacity().unwrap();
    assert!(capacity.relative_sd < 0.005, "{capacity:?}");
    let at_full = observed.slower(&[1e-4]).unwrap()[0];
    assert!((capacity.per_s * SERVICE_S / at_full - 1.0).abs() < 0.01, "{capacity:?} {at_full}");
    // A low load of a fast minute counts at the speed of all the others.
    let service_s = Predictor::new(&steady, 1).predict(&Question::at(45.0, 20_000)).unwrap().service_s.value;
    assert!((service_s / SERVICE_S * at_full - 1.0).abs() < 0.02, "{service_s} {at_full}");
    let interval = |observed: &Observed| {
        let mean_s = Predictor::new(observed, 1).predict(&Question::at(70.0, 20_000)).unwrap().mean_s;
        let (low, high) = mean_s.interval.unwrap();
        (high - low) / mean_s.value
    };
    let (with, without) = (interval(&steady), interval(&observed));
    assert!(with < 0.7 * without, "{with} {without}");
}

/// Low loads that were measured while the processors were slower are predicted from as if they had been as fast as in the full loads.
#[test]
fn loads_of_a_slow_minute_count_at_the_speed_of_the_full_loads() {
    const SLOWER: f64 = 1.1;
    let slow = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SLOWER * SERVICE_S }, 0.0);
    let (seed, full_s) = (35, vec![1e-4; 20]);
    let block = |rho: f64| {
        let rows = slow.rows(SLOWER * rho, REQUESTS, seed + (10.0 * rho) as u64);
        (rho / SERVICE_S, Block::of(&rows, 0).with_computation(vec![SLOWER * 1e-4; 20]))
    };
    let capacity = Capacity { per_s: 1.0 / SERVICE_S, relative_sd: 0.003, blocks: 40, requests: 1e4 };
    let mut observed = Observed::new([0.2, 0.35, 0.5].map(block).into(), Some(capacity), None).unwrap();
    let service_s = |observed: &Observed| {
        Predictor::new(observed, 1).predict(&Question::at(70.0, 20_000)).unwrap().service_s.value
    };
    assert!(service_s(&observed) > 1.05 * SERVICE_S);
    observed.gaps_s = vec![vec![SERVICE_S; 20]];
    observed.computation_s = vec![full_s];
    let found_s = service_s(&observed);
    assert!((found_s / SERVICE_S - 1.0).abs() < 0.02, "{found_s}");
}

/// A second without an answer has the throughput 0 and shows no speed; the other seconds of its load count as before.
#[test]
fn a_pause_lowers_the_capacity_of_its_load_and_nothing_else() {
    let truth = Truth::new(Discipline::Fifo, 1, Law::Exponential { mean_s: SERVICE_S }, 0.0);
    let mut observed = truth.observed(truth.measured_capacity(), None);
    let computation_s: Vec<f64> = (0..20).map(|second| [1e-4, 1.2e-4][second % 2]).collect();
    let gaps_s: Vec<f64> = computation_s.iter().map(|time_s| 100.0 * time_s).collect();
    (observed.computation_s, observed.gaps_s) = (vec![computation_s; 2], vec![gaps_s; 2]);
    let capacity = |observed: &Observed| observed.at_one_speed().unwrap().capacity().unwrap().per_s;
    let without = (capacity(&observed), observed.slower(&[1.2e-4]).unwrap()[0]);
    observed.gaps_s[0][9] = f64::INFINITY;
    let with = (capacity(&observed), observed.slower(&[1.2e-4]).unwrap()[0]);
    assert!((with.0 / without.0 - 39.0 / 40.0).abs() < 0.001, "{with:?} {without:?}");
    assert!((with.1 / without.1 - 1.0).abs() < 0.001, "{with:?} {without:?}");
    let found = Predictor::new(&observed, 1).predict(&Question::at(70.0, 20_000)).unwrap();
    assert!(found.mean_s.value.is_finite(), "{found:?}");
}
