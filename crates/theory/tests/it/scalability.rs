//! Fits of scalability laws: their results, and the coverage of their intervals.

use kendall_station::Law;
use kendall_stats::random;
use kendall_theory::scalability::{FitError, PeakSeen, Point, fit_amdahl, fit_usl, fit_usl_linearised, usl};
use proptest::prelude::*;

const RUNS: u32 = 2000;

/// Standard normal numbers from a seed: sums of twelve uniform ones would have short tails, so by Box and Muller.
fn normals(seed: u64) -> impl FnMut() -> f64 {
    let mut rng = random::stream(seed, random::Purpose::Service, 0);
    let uniform = Law::Uniform { low_s: 0.0, high_s: 1.0 };
    move || {
        let radius = (-2.0 * (1.0 - uniform.sample(&mut rng)).ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform.sample(&mut rng)).cos()
    }
}

/// How often the 95 % intervals of α, β, γ and the peak contain the truth, of [`RUNS`] fits to noisy points. With the
/// true share at 95 %, one count strays by more than 1.5 % to either side once in 500; the seeds are fixed.
fn covers(loads: &[f64], alpha: f64, beta: f64) {
    let (gamma, noise) = (100.0, 0.02 * usl(alpha, beta, 100.0, 20.0));
    let mut normal = normals(7);
    let peak = if beta > 0.0 { ((1.0 - alpha) / beta).sqrt() } else { f64::INFINITY };
    let mut hits = [0u32; 4];
    for _ in 0..RUNS {
        let point = |&users: &f64| Point::new(users, usl(alpha, beta, gamma, users) + noise * normal());
        let fit = fit_usl(&loads.iter().map(point).collect::<Vec<_>>()).unwrap();
        let found = [
            (fit.alpha.interval, alpha),
            (fit.beta.interval, beta),
            (fit.gamma_per_s.interval, gamma),
            (fit.peak.interval, peak),
        ];
        for (hits, (interval, truth)) in hits.iter_mut().zip(found) {
            *hits += u32::from(interval.0 <= truth && truth <= interval.1);
        }
    }
    let shares = hits.map(|hits| f64::from(hits) / f64::from(RUNS));
    println!("{} points, α = {alpha}, β = {beta}: {shares:.4?}", loads.len());
    assert!(shares.iter().all(|share| (share - 0.95).abs() <= 0.015), "{alpha} {beta}: {shares:?}");
}

#[test]
fn intervals_of_five_points_have_their_coverage() {
    covers(&[1.0, 4.0, 12.0, 24.0, 48.0], 0.05, 1e-3);
}

#[test]
fn intervals_of_seven_points_cover_where_beta_is_all_but_zero() {
    covers(&[1.0, 4.0, 8.0, 16.0, 24.0, 32.0, 48.0], 0.1, 1e-5);
}

#[test]
fn intervals_of_eleven_points_cover_at_both_bounds() {
    let loads = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0, 32.0, 40.0, 48.0];
    covers(&loads, 0.02, 0.0);
    covers(&loads, 0.0, 1e-3);
}

/// The chat server of study D, backed by Redis: threads and requests per second.
const REDIS: [(f64, f64); 11] = [
    (2.0, 140.93),
    (5.0, 249.84),
    (7.0, 307.71),
    (8.0, 322.81),
    (9.0, 340.36),
    (15.0, 368.54),
    (20.0, 407.89),
    (25.0, 457.27),
    (35.0, 493.13),
    (50.0, 531.86),
    (70.0, 522.06),
];

fn points(table: &[(f64, f64)]) -> Vec<Point> {
    table.iter().map(|&(users, throughput)| Point::new(users, throughput)).collect()
}

/// β is at its bound, and its interval says that it may be; so the peak has no upper end.
#[test]
fn a_peak_that_no_point_shows_has_no_upper_end() {
    let usl = fit_usl(&points(&REDIS)).unwrap();
    assert_eq!((usl.beta.value, usl.peak.seen, usl.peak.interval.1), (0.0, PeakSeen::Nowhere, f64::INFINITY));
    assert!(usl.beta.interval.1 > 0.0 && usl.peak.interval.0 > 35.0, "{usl}");
}

/// Points of a law are fitted by it exactly, and a missing peak is reported.
#[test]
fn a_law_finds_itself() {
    let of = |law: &dyn Fn(f64) -> f64| -> Vec<Point> {
        [1.0, 3.0, 7.0, 20.0, 45.0, 80.0].iter().map(|&users| Point::new(users, law(users))).collect()
    };
    for (alpha, beta, gamma) in [(0.02, 1e-4, 900.0), (0.5, 0.0, 3.0), (0.0, 2e-3, 1e-3), (0.0, 0.0, 1e6)] {
        let points = of(&|users| usl(alpha, beta, gamma, users));
        let fit = fit_usl(&points).unwrap();
        let near = |found: f64, truth: f64| (found - truth).abs() <= 1e-6 * truth.max(1e-3);
        assert!(near(fit.alpha.value, alpha) && near(fit.beta.value, beta), "{fit}");
        assert!((fit.gamma_per_s.value / gamma - 1.0).abs() < 1e-6, "{fit}");
        let old = fit_usl_linearised(&points).unwrap();
        assert!(near(old.sigma, alpha) && near(old.kappa, beta), "{old:?}");
        if beta == 0.0 {
            let amdahl = fit_amdahl(&points).unwrap();
            assert!(
                near(amdahl.alpha.value, alpha)
                    && (amdahl.predict(30.0) / fit.predict(30.0) - 1.0).abs() < 1e-6
            );
        }
    }
    let peaked = fit_usl(&of(&|users| usl(0.02, 1e-3, 1.0, users))).unwrap();
    assert_eq!(peaked.peak.seen, PeakSeen::Within);
    assert!((peaked.peak.users - 980f64.sqrt()).abs() < 1e-3);
    let far = fit_usl(&of(&|users| usl(0.02, 1e-5, 1.0, users))).unwrap();
    assert_eq!(far.peak.seen, PeakSeen::Beyond);
    assert!(far.to_string().ends_with("beyond the measured loads"), "{far}");
}

/// More than its share for each user: reported, and not extrapolated.
#[test]
fn a_superlinear_rise_is_distinguished() {
    let users = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];
    let points: Vec<Point> =
        users.iter().map(|&users| Point::new(users, usl(-0.02, 6e-4, 10.0, users))).collect();
    let fit = fit_usl(&points).unwrap();
    assert_eq!(fit.alpha.value, 0.0);
    assert!((fit.superlinear_alpha.unwrap() + 0.02).abs() < 1e-6, "{fit:?}");
    assert!(fit_usl(&points_of_amdahl()).unwrap().superlinear_alpha.is_none());
}

fn points_of_amdahl() -> Vec<Point> {
    [1.0, 2.0, 4.0, 8.0, 16.0].iter().map(|&users| Point::new(users, usl(0.1, 0.0, 10.0, users))).collect()
}

/// A point with a small standard error counts for more, and the same error everywhere counts for nothing.
#[test]
fn points_weigh_by_their_standard_errors() {
    let weighed = |errors: [f64; 5]| {
        let mut points = points_of_amdahl();
        points[4].throughput_per_s *= 0.9;
        for (point, error) in points.iter_mut().zip(errors) {
            point.standard_error_per_s = Some(error);
        }
        fit_usl(&points).unwrap()
    };
    let alike = weighed([3.0; 5]);
    let mut plain = points_of_amdahl();
    plain[4].throughput_per_s *= 0.9;
    let plain = fit_usl(&plain).unwrap();
    assert!((alike.alpha.value - plain.alpha.value).abs() < 1e-9);
    assert!((alike.residual_se_per_s / plain.residual_se_per_s - 1.0).abs() < 1e-6);
    let doubted = weighed([0.1, 0.1, 0.1, 0.1, 1000.0]);
    assert!((doubted.alpha.value - 0.1).abs() < 1e-3, "{doubted}");
}

#[test]
fn points_that_cannot_be_fitted_are_rejected() {
    let points = |table: &[(f64, f64)]| points(table);
    let why = |table: &[(f64, f64)]| fit_usl(&points(table)).unwrap_err().to_string();
    assert!(
        why(&[(1.0, 1.0), (2.0, 2.0), (2.0, 2.1), (3.0, 3.0)]).starts_with("4 points at 3 different loads")
    );
    assert!(
        why(&[(1.0, 1.0), (2.0, -2.0), (3.0, 3.0), (4.0, 4.0)]).starts_with("point 2 has 2 users and -2")
    );
    assert_eq!(fit_usl_linearised(&points(&REDIS)), Err(FitError::NoSingle));
    let mut odd = points(&REDIS);
    odd[1].standard_error_per_s = Some(0.0);
    assert_eq!(fit_amdahl(&odd), Err(FitError::StandardError { place: 2, standard_error: 0.0 }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the points, nothing is negative or not a number, and each interval holds its value.
    #[test]
    fn any_points_give_numbers(table in proptest::collection::btree_map(1u32..200, -9.0..9.0f64, 4..12), unit in -6.0..6.0f64) {
        let point = |(&users, noise): (&u32, &f64)| {
            Point::new(f64::from(users), 10f64.powf(unit) * f64::from(users).sqrt() * (0.3 * noise).exp())
        };
        let points: Vec<Point> = table.iter().map(point).collect();
        let fit = fit_usl(&points).unwrap();
        for parameter in [fit.alpha, fit.beta, fit.gamma_per_s] {
            let (low, high) = parameter.interval;
            prop_assert!(parameter.value >= 0.0 && parameter.value.is_finite(), "{}", fit);
            prop_assert!(0.0 <= low && low <= parameter.value && parameter.value <= high, "{}", fit);
        }
        let (low, high) = fit.peak.interval;
        prop_assert!(1.0 <= low && low <= fit.peak.users && fit.peak.users <= high, "{}", fit);
        prop_assert!(fit.predict(500.0) > 0.0 && fit.predict(1e6).is_finite());
    }
}
