//! The moments and functions of laws, and samples from them.

use super::*;
use kendall_stats::random::{Purpose, stream};

fn laws() -> Vec<Law> {
    vec![
        Law::Exponential { mean_s: 0.2 },
        Law::Constant { mean_s: 0.2 },
        Law::Erlang { shape: 3, mean_s: 0.2 },
        Law::Hyperexponential { parts: vec![(0.9, 0.05), (0.1, 1.0)] },
        Law::Uniform { low_s: 0.1, high_s: 0.3 },
        Law::LogNormal { mean_s: 0.2, scv: 2.0 },
        Law::Pareto { shape: 5.0, mean_s: 0.2 },
        Law::Mixture {
            parts: vec![
                Part { probability: 0.3, of: Law::Constant { mean_s: 0.0 } },
                Part { probability: 0.7, of: Law::Uniform { low_s: 0.0, high_s: 0.5 } },
            ],
        },
        Law::empirical(vec![0.3, 0.1, 0.2, 0.2, 0.25]).unwrap(),
    ]
}

/// Five standard errors: a false alarm in 1.7 million comparisons; 27 are made.
#[test]
fn samples_have_the_moments_and_the_survival_that_the_law_states() {
    const N: usize = 200_000;
    for law in laws() {
        let mut rng = stream(11, Purpose::Service, 0);
        let samples: Vec<f64> = (0..N).map(|_| law.sample(&mut rng)).collect();
        let n = N as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let sd = (law.moment(2) - law.mean_s().powi(2)).max(0.0).sqrt();
        assert!((mean - law.mean_s()).abs() <= 5.0 * sd / n.sqrt() + 1e-12, "{}: mean {mean}", law.name());
        for t in [0.05, 0.2, 0.4] {
            let share = samples.iter().filter(|&&x| x > t).count() as f64 / n;
            let p = law.survival(t);
            assert!(
                (share - p).abs() <= 5.0 * (p * (1.0 - p) / n).sqrt() + 1e-12,
                "{}: P(S>{t}) {share}, law says {p}",
                law.name()
            );
        }
    }
}

#[test]
fn a_filled_slice_equals_single_draws() {
    for law in laws() {
        let (mut one, mut many) = (stream(12, Purpose::Service, 0), stream(12, Purpose::Service, 0));
        let mut times_s = [0.0; 100];
        law.fill(&mut many, &mut times_s[..37]);
        law.fill(&mut many, &mut times_s[37..]);
        assert!(times_s.iter().all(|&time_s| time_s == law.sample(&mut one)), "{}", law.name());
    }
}

#[test]
fn the_limited_mean_is_the_integral_of_the_survival_function() {
    for law in laws() {
        let (t, steps) = (0.37, 100_000);
        let h = t / f64::from(steps);
        let integral: f64 = (0..steps).map(|i| h * law.survival((f64::from(i) + 0.5) * h)).sum();
        let closed = law.limited_mean_s(t);
        assert!((integral - closed).abs() < 1e-5, "{}: {closed}, integral {integral}", law.name());
        assert!((law.limited_mean_s(1e9) - law.mean_s()).abs() < 1e-6, "{}", law.name());
    }
}

#[test]
fn quantiles_invert_the_survival_function() {
    for law in laws() {
        for p in [0.05, 0.5, 0.99] {
            let t = law.quantile_s(p);
            assert!(law.survival(t) <= 1.0 - p + 1e-9, "{}", law.name());
            assert!(t == 0.0 || law.survival(t * (1.0 - 1e-9)) >= 1.0 - p - 1e-6, "{} at {p}", law.name());
        }
    }
}

#[test]
fn stretching_scales_every_moment() {
    for law in laws() {
        let twice = law.with_mean(2.0 * law.mean_s());
        for n in 1..=3 {
            let ratio = twice.moment(n) / law.moment(n);
            assert!((ratio / 2f64.powi(n as i32) - 1.0).abs() < 1e-12, "{}", law.name());
        }
    }
}

#[test]
fn impossible_laws_are_refused_in_words() {
    let refused = |law: Law| law.validate().unwrap_err().to_string();
    assert_eq!(
        refused(Law::Exponential { mean_s: -1.0 }),
        "the mean of the exponential law is -1; it must be positive and finite"
    );
    assert!(refused(Law::Pareto { shape: 1.0, mean_s: 1.0 }).contains("above 1"));
    assert!(refused(Law::Hyperexponential { parts: vec![(0.5, 1.0)] }).contains("add up to 0.5"));
    assert!(refused(Law::Uniform { low_s: 2.0, high_s: 1.0 }).contains("upper end"));
    assert!(Law::empirical(vec![]).is_err());
    assert!(Law::empirical(vec![f64::NAN]).is_err());
}

#[test]
fn a_heavy_tail_has_no_second_moment() {
    assert_eq!(Law::Pareto { shape: 1.5, mean_s: 1.0 }.moment(2), f64::INFINITY);
}

#[test]
fn erlang_laws_of_extreme_parameters_have_moments_and_quantiles() {
    let many = Law::Erlang { shape: u32::MAX, mean_s: 0.2 };
    assert!((many.moment(4) - 0.2_f64.powi(4)).abs() < 1e-9);
    let short = Law::Erlang { shape: 2, mean_s: 1e-308 };
    assert_eq!(short.survival(1e9), 0.0);
    assert!(short.quantile_s(0.5) < 1e-307);
}
