//! The arithmetic of validations, on reports with known errors.

use kendall_prediction::{Allowed, Baseline, BaselinePrediction, Prediction};
use kendall_station::Discipline;

use super::accuracy::{Accuracy, StationKind};
use super::*;

fn within(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { value, interval: Some((low, high)) }
}

/// A load of one second measured for mean and p99, predicted with these factors and an interval of ± 20 %.
fn load(share: f64, servers: u32, mean: f64, p99: f64) -> Validated {
    let predicted = |factor: f64| within(factor, 0.8 * factor, 1.2 * factor);
    let prediction = Prediction {
        rate_per_s: 100.0 * share,
        requests: 1000,
        mean_s: predicted(mean),
        quantiles: vec![(0.99, predicted(p99))],
        capacity_per_s: Estimate::exact(100.0),
        utilisation: Estimate::exact(share),
        service_s: Estimate::exact(0.01),
        delay_s: Estimate::exact(0.0),
        steady: 1.0,
        stations: vec![Allowed {
            station: format!("{servers} servers, FIFO"),
            discipline: Discipline::Fifo,
            servers,
            share: 1.0,
        }],
        advice: None,
    };
    let measured = within(1.0, 0.9, 1.1);
    let simple = |baseline| BaselinePrediction { baseline, mean_s: Some(0.5), p99_s: None };
    Validated {
        compared: vec![
            Compared::new("mean", prediction.mean_s, measured),
            Compared::new("p99", prediction.quantiles[0].1, measured),
        ],
        predicted: Predicted { share, written_utc: String::new(), blake3: "0".repeat(64), prediction },
        curve: Vec::new(),
        baselines: vec![simple(Baseline::Same), simple(Baseline::Scalability)],
        generator_limited: false,
        disturbed: false,
        unstable: false,
        at_speed: None,
    }
}

fn report(loads: Vec<Validated>) -> ValidationReport {
    ValidationReport {
        target: "http://here/".into(),
        started_utc: "2026-11-25T00:00:00Z".into(),
        machine: Machine::here(),
        kendall: "0".into(),
        build: None,
        seed: 1,
        rounds: 2,
        low_duration_s: 8.0,
        high_duration_s: 40.0,
        alone_s: 0.01,
        closed: vec![(1, 50.0)],
        full_per_s: Vec::new(),
        computation_s: Vec::new(),
        awake: false,
        drift: MachineDrift::default(),
        low: Vec::new(),
        loads,
        no_prediction: Vec::new(),
        repeated: 0,
        doubts: Vec::new(),
    }
}

#[test]
fn an_error_counts_from_the_end_of_the_interval_of_the_measurement() {
    let measured = within(1.0, 0.9, 1.2);
    let beyond =
        |predicted_s: f64| Compared::new("p99", Estimate::exact(predicted_s), measured).error_beyond_noise;
    assert_eq!((beyond(0.9), beyond(1.0), beyond(1.2)), (0.0, 0.0, 0.0));
    assert!((beyond(1.8) - 0.5).abs() < 1e-12 && (beyond(0.45) + 0.5).abs() < 1e-12);
    let alone = Compared::new("p99", Estimate::exact(1.5), Estimate::exact(1.0));
    assert_eq!((alone.error, alone.error_beyond_noise, alone.inside), (0.5, 0.5, false));
}

/// The interval [5, 20] around 10 has a half-width of a factor of 2: far outside are values beyond a factor of 4.
#[test]
fn confidently_wrong_is_twice_as_far_as_the_end_of_the_interval() {
    let wrong = |measured_s: f64| {
        Compared::new("p99", within(10.0, 5.0, 20.0), Estimate::exact(measured_s)).is_confidently_wrong()
    };
    assert!(!wrong(10.0) && !wrong(39.0) && !wrong(2.6));
    assert!(wrong(41.0) && wrong(2.4));
    assert!(
        !Compared::new("p99", Estimate::exact(1.0), Estimate::exact(9.0)).is_confidently_wrong(),
        "no interval"
    );
}

#[test]
fn known_errors_have_known_medians_and_shares() {
    // At 70 % errors of the mean of 10, 20 and 40 %, of p99 of 0, 30 and 50 %; at 85 % one load of 100 %. Another one does not count.
    let limited = Validated { generator_limited: true, ..load(0.85, 1, 9.0, 9.0) };
    let reports = [
        report(vec![load(0.7, 1, 1.1, 1.0), limited]),
        report(vec![load(0.7, 1, 0.8, 1.3), load(0.85, 1, 2.0, 2.0)]),
        report(vec![load(0.7, 4, 1.4, 0.5)]),
    ];
    let accuracy = Accuracy::of(&reports);
    let at = |quantity: &str, share: f64| {
        accuracy.errors.iter().find(|errors| errors.quantity == quantity && errors.share == share).unwrap()
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    let mean = at("mean", 0.7);
    near(mean.error, 0.2);
    // Beyond the noise of ± 10 %: 1.1 is at its end, 0.8 is below 0.9, 1.4 above 1.1.
    near(mean.beyond_noise, 1.0 - 0.8 / 0.9);
    near(mean.half_width, 0.2);
    // 1 lies within [0.88, 1.32], and neither within [0.64, 0.96] nor within [1.12, 1.68].
    assert_eq!((mean.loads, mean.inside), (3, 1));
    near(at("p99", 0.7).error, 0.3);
    near(at("mean", 0.85).error, 1.0);
    assert_eq!(at("mean", 0.85).loads, 1);
    // Of the eight values, 1.1 and 1.0 are inside; 2.0 and 2.0 end at 1.6, so 1.28 and less is far outside; 0.5 ends at 0.6, far is above
    // 0.72; 1.4 ends at 1.12, far is below 0.9; 1.3 at 1.04, far below 0.83.
    assert_eq!((accuracy.values, accuracy.inside, accuracy.confidently_wrong), (8, 2, 3));
    assert_eq!((accuracy.servers, accuracy.generator_limited), (3, 1));
    let baseline = |kind: StationKind| {
        accuracy.baselines.iter().find(|one| one.stations == kind && one.baseline == Baseline::Same).unwrap()
    };
    let one = baseline(StationKind::OneServer);
    assert_eq!((one.loads, one.error), (3, 0.5));
    near(one.of_kendall, 0.2);
    near(one.ratio(), 2.5);
    near(baseline(StationKind::SeveralServers).of_kendall, 0.4);
    assert!(accuracy.baselines.iter().all(|one| one.quantity == "mean"), "none of them predicts p99");
}

#[test]
fn the_drift_of_the_capacity_is_what_its_noise_leaves() {
    let full = [within(98.0, 98.0 - 1.96, 98.0 + 1.96), within(102.0, 102.0 - 1.96, 102.0 + 1.96)];
    let drift = MachineDrift::of(&full, &[1.0, 1.0, 1.0]);
    assert!((drift.capacity_sd - 0.028_284).abs() < 1e-5, "{drift:?}");
    assert!((drift.noise_sd - 0.01).abs() < 1e-4, "{drift:?}");
    assert_eq!(drift.processor_sd, 0.0);
    assert!((drift.of_machine() - 0.02646).abs() < 1e-4);
    assert!((drift.explains(0.9) - 10.0 * drift.of_machine()).abs() < 1e-9);
    let report = ValidationReport { drift, ..report(vec![load(0.9, 1, 1.0, 1.0)]) };
    let words = report.machine_words().join(" ");
    assert!(words.contains("differed by 2.8 % (standard deviation) between 2 full loads"), "{words}");
    assert!(words.contains("about 26 % at 90 % of the capacity"), "{words}");
}

#[test]
fn the_answer_is_one_sentence() {
    let report = report(vec![load(0.7, 1, 1.1, 1.3), load(0.85, 1, 0.9, 1.0)]);
    assert_eq!(
        report.answer(),
        "3 of 4 measured values lie within the interval of their prediction; the median error is 10 % for the mean and 15 % for p99."
    );
}

#[test]
fn a_report_reads_back_as_it_was_written() {
    let report = report(vec![load(0.7, 1, 1.1, 1.3)]);
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read_validation(folder.path()).unwrap(), None);
    kendall_archive::write_json(&folder.path().join(VALIDATION), &report).unwrap();
    assert_eq!(read_validation(folder.path()).unwrap(), Some(report));
    std::fs::write(folder.path().join(VALIDATION), "{").unwrap();
    assert!(read_validation(folder.path()).is_err());
}
