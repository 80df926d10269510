use kendall_station::Law;
use kendall_stats::random::{Purpose, stream};

use super::*;

fn mean() -> Vec<Metric> {
    vec![Metric::new("mean", Unit::Seconds)]
}

fn side(name: &str, values: &[f64]) -> Side {
    let run = |(block, &value): (usize, &f64)| Run {
        block: Some(block as u64),
        values: vec![Some(value)],
        quantiles_s: Vec::new(),
    };
    Side { name: name.into(), runs: values.iter().enumerate().map(run).collect() }
}

/// Runs that belong to no block.
fn loose(mut side: Side) -> Side {
    side.runs.iter_mut().for_each(|run| run.block = None);
    side
}

fn place(sides: Vec<Side>) -> SideGroup {
    SideGroup { name: String::new(), sides }
}

fn one(sides: Vec<Side>) -> Compared {
    compare(&mean(), &[place(sides)], &Terms::default()).against[0].metrics[0].clone()
}

/// Means of runs that scatter by about 5 %.
fn runs(n: usize, factor: f64, seed: u64) -> Vec<f64> {
    let mut rng = stream(seed, Purpose::Trial, 0);
    let law = Law::LogNormal { mean_s: 0.01, scv: 0.0025 };
    (0..n).map(|_| factor * law.sample(&mut rng)).collect()
}

/// Three metrics a comparison, 200 comparisons of equals: with Holm at 5 % more than 22 false alarms in a comparison happen less than
/// once in 1,000.
#[test]
fn equals_are_called_different_as_seldom_as_the_level_says() {
    let metrics: Vec<Metric> = ["a", "b", "c"].map(|name| Metric::new(name, Unit::Seconds)).into();
    let terms = Terms { margin: 0.0, ..Terms::default() };
    let mut alarms = 0;
    for run in 0..200 {
        let of = |which: u64| -> Side {
            let columns: Vec<Vec<f64>> = (0..3).map(|i| runs(8, 1.0, 1000 * run + 10 * which + i)).collect();
            let row = |i: usize| Run {
                values: columns.iter().map(|column| Some(column[i])).collect(),
                ..Run::default()
            };
            Side { name: which.to_string(), runs: (0..8).map(row).collect() }
        };
        let found = compare(&metrics, &[place(vec![of(1), of(2)])], &terms);
        let differs =
            |one: &Compared| matches!(one.verdict, ComparisonVerdict::Better | ComparisonVerdict::Worse);
        alarms += u32::from(found.against[0].metrics.iter().any(differs));
    }
    assert!(alarms <= 22, "{alarms} of 200");
}

/// A ratio of 0.88 measured by ten runs of 5 % scatter: the interval holds it in 95 of 100, so that fewer than 86 happen less
/// than once in 5,000; and that it is faster is seen nearly always.
#[test]
fn a_known_ratio_is_found() {
    let (mut held, mut seen) = (0, 0);
    for run in 0..100 {
        let found = one(vec![
            loose(side("a", &runs(10, 1.0, 2 * run))),
            loose(side("b", &runs(10, 0.88, 2 * run + 1))),
        ]);
        let (low, high) = found.effect.unwrap().interval;
        held += u32::from(low <= 0.88 && 0.88 <= high);
        seen += u32::from(found.verdict == ComparisonVerdict::Better);
    }
    assert!(held >= 86 && seen >= 75, "{held} {seen}");
}

#[test]
fn what_a_block_has_in_common_falls_out() {
    // The machine slows down by half from the first block to the last; the second side is 5 % slower throughout.
    let drift: Vec<f64> = (0..12).map(|block| 0.010 * (1.0 + f64::from(block) / 22.0)).collect();
    let noise = runs(12, 1.0, 3);
    let slower: Vec<f64> = drift.iter().zip(&noise).map(|(x, n)| x * 1.05 * (n / 0.01).powf(0.1)).collect();
    let found = one(vec![side("a", &drift), side("b", &slower)]);
    assert!(found.paired && found.runs == (12, 12) && found.verdict == ComparisonVerdict::Worse, "{found:?}");
    assert!((found.effect.unwrap().value - 1.05).abs() < 0.01);
    let unpaired = one(vec![loose(side("a", &drift)), loose(side("b", &slower))]);
    assert!(
        !unpaired.paired && matches!(unpaired.verdict, ComparisonVerdict::Undecided { .. }),
        "{unpaired:?}"
    );
}

/// All sign changes of 150 pairs are too many to count.
#[test]
fn many_pairs_are_tested_by_drawn_signs() {
    let found = one(vec![side("a", &runs(150, 1.0, 1)), side("b", &runs(150, 1.1, 2))]);
    assert!(found.paired && found.test.unwrap().drawn.is_some(), "{found:?}");
    assert_eq!(found.verdict, ComparisonVerdict::Worse);
}

#[test]
fn pairs_that_could_show_nothing_are_not_used() {
    // Six pairs have a smallest chance of 1/32; over four tests that cannot get below 5 %.
    let metrics: Vec<Metric> = ["a", "b", "c", "d"].map(|name| Metric::new(name, Unit::Seconds)).into();
    let side = |factor: f64| {
        let run = |block: u64| Run {
            block: Some(block),
            values: vec![Some(factor * (1.0 + block as f64 / 100.0)); 4],
            quantiles_s: Vec::new(),
        };
        Side { name: factor.to_string(), runs: (0..6).map(run).collect() }
    };
    let found = compare(&metrics, &[place(vec![side(1.0), side(1.5)])], &Terms::default());
    for compared in &found.against[0].metrics {
        assert!(!compared.paired && compared.verdict == ComparisonVerdict::Worse, "{compared:?}");
    }
}

#[test]
fn verdicts_read_as_sentences() {
    let terms = Terms::default();
    let words = |base: &[f64], other: &[f64]| {
        let found = one(vec![loose(side("a", base)), loose(side("b", other))]);
        found.words(&terms)
    };
    let near = |centre: f64, by: f64| -> Vec<f64> {
        (0..8).map(|i| centre * (1.0 + by * (f64::from(i) - 3.5) / 3.5)).collect()
    };
    assert!(words(&near(1.0, 0.02), &near(0.88, 0.02)).starts_with("faster by 12 % ("));
    assert!(words(&near(1.0, 0.02), &near(3.0, 0.02)).starts_with("slower 3.0 times ("));
    assert_eq!(words(&near(1.0, 0.003), &near(1.001, 0.003)), "equivalent within 2 %");
    let undecided = words(&near(1.0, 0.2), &near(1.05, 0.2));
    assert!(undecided.starts_with("undecided (−") && undecided.ends_with("more runs"), "{undecided}");
    assert_eq!(words(&[1.0; 4], &[2.0; 9]), "4 runs allow 87.5 %; 2 more runs of each side for 95 %");
    assert_eq!(words(&[1.0], &[2.0]), "1 run cannot show significance; 5 more runs of each side for 95 %");
    assert_eq!(words(&[], &[2.0]), "not measured on both sides");
}

#[test]
fn errors_are_compared_by_their_difference() {
    let metrics = vec![Metric::new("errors", Unit::Share)];
    let terms = Terms::default();
    let found = |base: &[f64], other: &[f64]| {
        let sides = vec![loose(side("a", base)), loose(side("b", other))];
        let found = compare(&metrics, &[place(sides)], &terms).against[0].metrics[0].clone();
        found.words(&terms)
    };
    assert_eq!(found(&[0.0; 6], &[0.0; 6]), "equivalent within 0.1 pp");
    let some: Vec<f64> = (0..6).map(|i| 0.05 + f64::from(i) / 1000.0).collect();
    assert_eq!(found(&[0.0; 6], &some), "more by 5.3 pp (5.1 pp–5.5 pp)");
}

/// The number of runs that is asked for is about what decides.
#[test]
fn so_many_more_runs_decide() {
    let found = one(vec![loose(side("a", &runs(8, 1.0, 5))), loose(side("b", &runs(8, 1.06, 6)))]);
    let ComparisonVerdict::Undecided { more_runs: Some(more) } = found.verdict else { panic!("{found:?}") };
    let n = 8 + 2 * more as usize;
    let decided = one(vec![loose(side("a", &runs(n, 1.0, 5))), loose(side("b", &runs(n, 1.06, 6)))]);
    assert!(!matches!(decided.verdict, ComparisonVerdict::Undecided { .. }), "{more}: {decided:?}");
}
