//! Closed models and scalability laws by name: quantities in addition to those of the reference table.

use kendall_theory::batch::{self, Inputs};

fn ask(model: &str, inputs: &str, quantity: &str) -> f64 {
    let value = Inputs::read(inputs).and_then(|inputs| batch::value(model, &inputs, quantity));
    value.unwrap_or_else(|why| panic!("{model} {inputs} {quantity}: {why}"))
}

fn refused(model: &str, inputs: &str, quantity: &str) -> String {
    let value = Inputs::read(inputs).and_then(|inputs| batch::value(model, &inputs, quantity));
    value.expect_err(quantity).to_string()
}

fn near(found: f64, wanted: f64) {
    assert!((found - wanted).abs() <= 1e-9 * wanted.abs().max(1e-3), "{found} for {wanted}");
}

#[test]
fn every_station_of_a_network_is_reported() {
    for (model, inputs, servers) in [
        ("closed_mva", r#"{"D": [0.05, 0.03, 0.08], "Z": 1, "N": 20}"#, [1.0, 1.0, 1.0]),
        ("closed_schweitzer", r#"{"D": [0.05, 0.03, 0.08], "Z": 1, "N": 20}"#, [1.0, 1.0, 1.0]),
        (
            "closed_mva_multiserver",
            r#"{"D": [0.05, 0.03, 0.08], "servers": [1, 3, 2], "Z": 1, "N": 20}"#,
            [1.0, 3.0, 2.0],
        ),
    ] {
        let of = |quantity: &str| ask(model, inputs, quantity);
        let all = |kind: &str| -> f64 { (0..3).map(|place| of(&format!("{kind}_{place}"))).sum() };
        near(all("R"), of("R_mean"));
        near(all("Q") + of("throughput"), 20.0);
        near(of("L"), all("Q"));
        for (place, (demand_s, servers)) in [0.05, 0.03, 0.08].into_iter().zip(servers).enumerate() {
            near(of(&format!("U_{place}")), of("throughput") * demand_s / servers);
        }
        let bottleneck = if servers[2] > 1.0 { 0 } else { 2 };
        assert_eq!(of("bottleneck"), f64::from(bottleneck));
        near(of("Q_bottleneck"), of(&format!("Q_{bottleneck}")));
        near(of("utilisation"), of(&format!("U_{bottleneck}")));
        assert!(refused(model, inputs, "Q_3").contains("has no quantity \"Q_3\""));
    }
    // Zero servers are a delay.
    let delays = r#"{"D": [0.5, 1.5], "servers": [0, 0], "Z": 2, "N": 7}"#;
    near(ask("closed_mva_multiserver", delays, "throughput"), 7.0 / 4.0);
    let odd = r#"{"D": [1], "servers": [1.5], "N": 2}"#;
    assert!(refused("closed_mva_multiserver", odd, "throughput").contains("1.5 is not a number of servers"));
    assert!(refused("closed_mva", r#"{"D": [1], "N": 0}"#, "throughput").contains("at least one user"));
}

#[test]
fn every_class_is_told() {
    let inputs = r#"{"D": [[0.05, 0.1], [0.02, 0.2], [0.08, 0.01]], "Z": [1, 5], "N": [8, 6]}"#;
    let one = r#"{"D": [[0.05, 0.1], [0.02, 0.2], [0.08, 0.01]], "Z": [1, 5], "N": [8, 6], "cls": 1}"#;
    for model in ["closed_mva_multiclass", "closed_schweitzer_multiclass", "closed_linearizer"] {
        let of = |quantity: &str| ask(model, inputs, quantity);
        near(of("X_0") + of("X_1"), of("throughput"));
        near(of("X_0") * (of("R_0") + 1.0), 8.0);
        near(ask(model, one, "throughput"), of("X_1"));
        near(ask(model, one, "R_mean"), of("R_1"));
        near(ask(model, one, "L"), of("X_1") * of("R_1"));
        near(of("Q_0") + of("Q_1") + of("Q_2"), of("L"));
        near(of("U_2"), of("X_0") * 0.08 + of("X_1") * 0.01);
        near(of("L"), of("throughput") * of("R_mean"));
    }
}

#[test]
fn a_closed_station_is_reported_completely() {
    let inputs = r#"{"Z": 1.0, "S": 0.05, "m": 2, "N": 40}"#;
    let of = |quantity: &str| ask("mm_m_finite_source", inputs, quantity);
    near(of("R_mean"), of("Wq_mean") + 0.05);
    near(of("L"), of("throughput") * of("R_mean"));
    assert!(
        of("R_p95") > of("R_p50") && of("Wq_p95") > 0.0 && of("P_wait") < 1.0 && of("R_var") > of("Wq_var")
    );
    // Engset's station is one without room to wait.
    let lossy = r#"{"Z": 5.0, "S": 1.0, "m": 3, "N": 10, "K": 3}"#;
    let engset = r#"{"sources": 10, "m": 3, "ratio": 0.2}"#;
    near(ask("mm_m_finite_source", lossy, "P_block"), ask("engset", engset, "P_block_call"));
    near(ask("mm_m_finite_source", lossy, "L"), ask("engset", engset, "L"));
    near(
        ask("engset", r#"{"sources": 9, "m": 3, "ratio": 0.2}"#, "P_block_time"),
        ask("engset", engset, "P_block_call"),
    );
}

#[test]
fn bounds_hold_what_they_bound() {
    for users in [1, 5, 20, 100] {
        let inputs = format!(r#"{{"D": [0.05, 0.03, 0.08], "Z": 1, "N": {users}}}"#);
        let exact = |quantity| ask("closed_mva", &inputs, quantity);
        for model in ["asymptotic_bounds", "balanced_job_bounds"] {
            let of = |quantity| ask(model, &inputs, quantity);
            let within = |low: f64, value: f64, high: f64| {
                assert!(
                    low <= value * (1.0 + 1e-12) && value <= high * (1.0 + 1e-12),
                    "{low} {value} {high}"
                );
            };
            within(of("X_lower"), exact("throughput"), of("X_upper"));
            within(of("R_lower"), exact("R_mean"), of("R_upper"));
            near(of("N_star"), 1.16 / 0.08);
        }
    }
}

#[test]
fn fits_report_their_intervals() {
    let points = r#"{"N": [1, 18, 36, 72, 108, 144, 216], "X": [64.9, 995.9, 1652.4, 1853.2, 1828.9, 1775.0, 1702.2]}"#;
    let of = |quantity: &str| ask("usl_fit", points, quantity);
    for name in ["alpha", "beta", "gamma"] {
        let t = (of(&format!("ci95_{name}_hi")) - of(name)) / of(&format!("se_{name}"));
        // Student's t for four degrees of freedom.
        assert!((t - 2.776_445_105).abs() < 1e-6, "{t}");
        let (low, high) = (of(&format!("profile95_{name}_lo")), of(&format!("profile95_{name}_hi")));
        assert!(0.0 <= low && low < of(name) && of(name) < high, "{name}: {low} {high}");
    }
    near(of("N_peak"), ((1.0 - of("alpha")) / of("beta")).sqrt());
    let at_peak = format!(
        r#"{{"alpha": {}, "beta": {}, "gamma": {}, "N": {}}}"#,
        of("alpha"),
        of("beta"),
        of("gamma"),
        of("N_peak")
    );
    near(ask("usl_predict", &at_peak, "throughput"), of("X_peak"));
    near(ask("usl_predict", &at_peak, "N_peak"), of("N_peak"));
    assert!(of("profile95_N_peak_lo") < of("N_peak") && of("N_peak") < of("profile95_N_peak_hi"));
    near(of("residual_se"), (of("rss") / 4.0).sqrt());
    let criterion = format!(r#"{{"rss": {}, "n": 7, "params_incl_sigma": 4}}"#, of("rss"));
    near(ask("aicc", &criterion, "AICc_no_const"), of("AICc_no_const"));
    near(
        ask("amdahl", r#"{"serial": 0.1, "N": 10}"#, "speedup") * 1.9,
        ask("gustafson", r#"{"serial": 0.0, "N": 10}"#, "speedup"),
    );
    assert!(ask("amdahl_fit", points, "X_limit") > 1853.2);
    let flat = r#"{"N": [1, 2, 3], "X": [1, 2, 3]}"#;
    assert!(refused("usl_fit", flat, "alpha").starts_with("3 points at 3 different loads are too few"));
    let short = r#"{"N": [1, 2], "X": [1]}"#;
    assert!(refused("usl_fit", short, "alpha").contains("2 loads, 1 throughputs"));
}
