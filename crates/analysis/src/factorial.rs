//! The effect of each factor of an experiment on a time, and of two factors together, in every combination of their levels.
//!
//! Times are compared by their ratios, since what slows a server down slows it by a factor: all is computed of logarithms, and
//! an effect of 1.8 is 1.8 times the geometric mean. The main effect of a level is the mean over all combinations that have it
//! against the mean over all; the effect of two levels together is what is left of the mean of those that have both once their
//! main effects are taken away (Jain 1991, chapters 21 to 23; Montgomery 2017, chapter 5). Combinations weigh alike, however
//! often each was tried.
//!
//! Trials of a busy server differ more than those of an idle one, so nothing is pooled: an interval is of the combination's own
//! variances, with the degrees of freedom by Welch and Satterthwaite. Trials that were asked the same are taken as independent,
//! which makes the interval of a ratio wider than it need be.

use kendall_station::Estimate;
use serde::{Deserialize, Serialize};

use kendall_stats::{mean, student_t, variance};

/// The largest number of combinations: an experiment with more would take too long.
const MOST_CELLS: usize = 10_000;

/// The measurements of one combination.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The level of each factor, counted from 0.
    pub levels: Vec<usize>,
    /// One value for each trial, above 0.
    pub values: Vec<f64>,
}

/// The effects of all factors with two levels or more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// The geometric mean over all combinations, in the unit of the values.
    pub mean: Estimate,
    /// The effect of each level of each factor.
    pub main: Vec<Main>,
    /// The further effect of each two levels of two factors.
    pub pairs: Vec<Pair>,
    /// How much of the variation between combinations each factor explains, as a share of the squares of logarithms.
    pub explained: Vec<(Vec<usize>, f64)>,
}

/// The effect of a level of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Main {
    /// The factor, counted from 0.
    pub factor: usize,
    /// The index of the level.
    pub level: usize,
    /// The ratio to the geometric mean.
    pub ratio: Estimate,
}

/// The effect of two levels of two factors together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pair {
    /// The factors, the lower one first.
    pub factors: (usize, usize),
    /// The indices of the two levels.
    pub levels: (usize, usize),
    /// The geometric mean of the combinations that have both, in the unit of the values.
    pub mean: Estimate,
    /// The ratio of the joint effect to the product of the two main effects; 1 where they do not depend on each other.
    pub ratio: Estimate,
}

/// The reason why effects cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum NoEffects {
    #[error(
        "effects need at least two factors with several levels each; measure with a second list of values"
    )]
    OneFactor,
    #[error(
        "only {found} of {needed} combinations have a value, and effects need all of them; run the missing trials"
    )]
    Incomplete { found: usize, needed: usize },
    #[error("{0} combinations are too many to compute effects; at most 10000 are allowed")]
    TooMany(usize),
    #[error("a value is not above zero, so its ratio to other values is undefined")]
    NoRatio,
    #[error("two cells have the same combination, or one names a level that its factor does not have")]
    Odd,
}

/// Computes the effects of factors with the given numbers of levels.
///
/// # Errors
/// Fails where fewer than two factors have several levels, where a combination is missing or there twice, and on values that
/// are not above zero.
pub fn effects(levels: &[usize], cells: &[Cell]) -> Result<Effects, NoEffects> {
    let factors: Vec<usize> = (0..levels.len()).filter(|&factor| levels[factor] > 1).collect();
    if factors.len() < 2 {
        return Err(NoEffects::OneFactor);
    }
    let table = Table::new(levels, cells)?;
    let all = |_: &[usize]| true;
    let mean = table.mean(&all);
    let mut effects = Effects { mean: exp(mean), main: vec![], pairs: vec![], explained: vec![] };
    let whole = table.squares(&|cell| table.logarithm(cell) - mean.value);
    for (place, &a) in factors.iter().enumerate() {
        let main = |level: usize| table.contrast(&[(1.0, &|of| of[a] == level), (-1.0, &all)]);
        let ratios: Vec<Estimate> = (0..levels[a]).map(main).collect();
        let squares = table.squares(&|cell| ratios[table.cells[cell].levels[a]].value);
        effects.explained.push((vec![a], squares / whole));
        let own = ratios.iter().enumerate();
        effects.main.extend(own.map(|(level, ratio)| Main { factor: a, level, ratio: exp(*ratio) }));
        for &b in &factors[place + 1..] {
            let pair = |(i, j): (usize, usize)| {
                let both = |of: &[usize]| of[a] == i && of[b] == j;
                let (only_a, only_b) = (|of: &[usize]| of[a] == i, |of: &[usize]| of[b] == j);
                let ratio = table.contrast(&[(1.0, &both), (-1.0, &only_a), (-1.0, &only_b), (1.0, &all)]);
                Pair { factors: (a, b), levels: (i, j), mean: exp(table.mean(&both)), ratio: exp(ratio) }
            };
            let all_levels = (0..levels[a]).flat_map(|i| (0..levels[b]).map(move |j| (i, j)));
            let pairs: Vec<Pair> = all_levels.map(pair).collect();
            let of = |cell: usize| {
                let own = &table.cells[cell].levels;
                pairs[own[a] * levels[b] + own[b]].ratio.value.ln()
            };
            effects.explained.push((vec![a, b], table.squares(&of) / whole));
            effects.pairs.extend(pairs);
        }
    }
    // Where nothing differs, nothing is explained.
    effects.explained.iter_mut().for_each(|(_, share)| *share = if share.is_finite() { *share } else { 0.0 });
    Ok(effects)
}

/// A level or more of a mean: which combinations belong to it.
type Which<'a> = &'a dyn Fn(&[usize]) -> bool;

/// The logarithms of every combination.
struct Table<'a> {
    cells: &'a [Cell],
    /// Mean, variance of the mean, and degrees of freedom; no variance for a single trial.
    seen: Vec<(f64, Option<(f64, f64)>)>,
}

impl<'a> Table<'a> {
    fn new(levels: &[usize], cells: &'a [Cell]) -> Result<Self, NoEffects> {
        let needed =
            levels.iter().try_fold(1usize, |all, count| all.checked_mul(*count)).unwrap_or(usize::MAX);
        if needed > MOST_CELLS || cells.len() > MOST_CELLS {
            return Err(NoEffects::TooMany(needed.max(cells.len())));
        }
        let fits = |cell: &Cell| {
            cell.levels.len() == levels.len() && cell.levels.iter().zip(levels).all(|(own, most)| own < most)
        };
        let mut places: Vec<&[usize]> = cells.iter().map(|cell| cell.levels.as_slice()).collect();
        places.sort_unstable();
        if !cells.iter().all(fits) || places.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(NoEffects::Odd);
        }
        let found = cells.iter().filter(|cell| !cell.values.is_empty()).count();
        if found < needed {
            return Err(NoEffects::Incomplete { found, needed });
        }
        if cells.iter().flat_map(|cell| &cell.values).any(|&value| !(value.is_finite() && value > 0.0)) {
            return Err(NoEffects::NoRatio);
        }
        let of = |cell: &Cell| {
            let logarithms: Vec<f64> = cell.values.iter().map(|value| value.ln()).collect();
            let n = logarithms.len() as f64;
            (mean(&logarithms), (n > 1.0).then(|| (variance(&logarithms) / n, n - 1.0)))
        };
        Ok(Self { cells, seen: cells.iter().map(of).collect() })
    }

    /// The mean logarithm of a combination.
    fn logarithm(&self, cell: usize) -> f64 {
        self.seen[cell].0
    }

    fn mean(&self, which: Which<'_>) -> Estimate {
        self.contrast(&[(1.0, which)])
    }

    /// A sum of means, each with its factor.
    fn contrast(&self, means: &[(f64, Which<'_>)]) -> Estimate {
        let mut weights = vec![0.0; self.cells.len()];
        for (factor, which) in means {
            let members: Vec<usize> =
                (0..self.cells.len()).filter(|&cell| which(&self.cells[cell].levels)).collect();
            members.iter().for_each(|&cell| weights[cell] += factor / members.len() as f64);
        }
        let value = weights.iter().zip(&self.seen).map(|(weight, seen)| weight * seen.0).sum();
        let (mut error, mut spread) = (0.0, 0.0);
        for (weight, (_, known)) in weights.iter().zip(&self.seen).filter(|(weight, _)| **weight != 0.0) {
            let Some((of_mean, freedom)) = known else { return Estimate::exact(value) };
            let part = weight * weight * of_mean;
            error += part;
            spread += part * part / freedom;
        }
        let half = if spread > 0.0 { student_t(error * error / spread, 0.975) * error.sqrt() } else { 0.0 };
        Estimate::within(value, half)
    }

    /// The sum of the squares of something over all combinations.
    fn squares(&self, of: &dyn Fn(usize) -> f64) -> f64 {
        (0..self.cells.len()).map(|cell| of(cell).powi(2)).sum()
    }
}

/// A logarithm as the ratio that it is of.
fn exp(logarithm: Estimate) -> Estimate {
    Estimate {
        value: logarithm.value.exp(),
        interval: logarithm.interval.map(|(low, high)| (low.exp(), high.exp())),
    }
}

#[cfg(test)]
mod tests {
    use kendall_station::Law;
    use kendall_stats::random::{Purpose, stream};

    use super::*;

    /// Every combination of levels, with values made by a function of level and trial.
    fn cells(levels: &[usize], trials: usize, mut value: impl FnMut(&[usize], usize) -> f64) -> Vec<Cell> {
        let all: usize = levels.iter().product();
        let of = |mut place: usize| {
            let own = levels.iter().rev().map(|count| {
                let level = place % count;
                place /= count;
                level
            });
            let mut own: Vec<usize> = own.collect();
            own.reverse();
            own
        };
        let mut cell = |place| {
            let levels = of(place);
            let values = (0..trials).map(|trial| value(&levels, trial)).collect();
            Cell { levels, values }
        };
        (0..all).map(&mut cell).collect()
    }

    const RATES: [f64; 3] = [1.0, 2.0, 8.0];
    const LENGTHS: [f64; 2] = [1.0, 3.0];

    #[test]
    fn factors_that_multiply_have_no_effect_together() {
        let product = |of: &[usize], _| 0.01 * RATES[of[0]] * LENGTHS[of[1]];
        let seen = effects(&[3, 2], &cells(&[3, 2], 2, product)).unwrap();
        assert!(seen.pairs.iter().all(|pair| (pair.ratio.value - 1.0).abs() < 1e-12));
        let of = |factor, level| {
            seen.main.iter().find(|main| (main.factor, main.level) == (factor, level)).unwrap().ratio.value
        };
        assert!((of(0, 2) / of(0, 0) - 8.0).abs() < 1e-12 && (of(1, 1) / of(1, 0) - 3.0).abs() < 1e-12);
        let explained: f64 = seen.explained.iter().map(|(_, share)| share).sum();
        assert!((explained - 1.0).abs() < 1e-12, "{explained}");
    }

    #[test]
    fn effects_of_a_factor_cancel_out_and_all_of_them_make_the_cell() {
        let value = |of: &[usize], trial: usize| 1.0 + ((17 * of[0] + 5 * of[1] + 3 * trial) % 7) as f64;
        let cells = cells(&[3, 2, 1], 4, value);
        let seen = effects(&[3, 2, 1], &cells).unwrap();
        for factor in 0..2 {
            let sum: f64 =
                seen.main.iter().filter(|main| main.factor == factor).map(|main| main.ratio.value.ln()).sum();
            assert!(sum.abs() < 1e-12);
        }
        let main = |factor, level| {
            seen.main.iter().find(|main| (main.factor, main.level) == (factor, level)).unwrap().ratio.value
        };
        for pair in &seen.pairs {
            let (i, j) = pair.levels;
            let made = seen.mean.value * main(0, i) * main(1, j) * pair.ratio.value;
            assert!((made / pair.mean.value - 1.0).abs() < 1e-12);
        }
        assert!(seen.main.iter().all(|main| main.factor != 2), "one level has no effect");
    }

    /// The intervals hold the truth as often as they say, also where combinations differ in their noise. Of 600 intervals of
    /// 95 %, fewer than 546 or more than 594 hold it with a probability below 1e-5.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let normal = |rng: &mut _| {
            let uniform = Law::Uniform { low_s: 0.0, high_s: 1.0 };
            (0..12).map(|_| uniform.sample(rng)).sum::<f64>() - 6.0
        };
        let mut held = 0;
        for run in 0..600 {
            let mut rng = stream(11, Purpose::Trial, run);
            let noisy = |of: &[usize], _| {
                let noise = if of[0] == 1 { 0.2 } else { 0.02 };
                (LENGTHS[of[1]].ln() + noise * normal(&mut rng)).exp()
            };
            let seen = effects(&[2, 2], &cells(&[2, 2], 5, noisy)).unwrap();
            let upper = seen.main.iter().find(|main| (main.factor, main.level) == (1, 1)).unwrap();
            let (low, high) = upper.ratio.interval.unwrap();
            held += u32::from(low < 3f64.sqrt() && 3f64.sqrt() < high);
        }
        assert!((546..=594).contains(&held), "{held}");
    }

    #[test]
    fn what_cannot_be_told_is_refused() {
        let one = |_: &[usize], _| 1.0;
        assert_eq!(effects(&[3, 1], &cells(&[3, 1], 1, one)), Err(NoEffects::OneFactor));
        let mut some = cells(&[2, 2], 1, one);
        assert!(effects(&[2, 2], &some).unwrap().main.iter().all(|main| main.ratio.interval.is_none()));
        some[1].values = vec![0.0];
        assert_eq!(effects(&[2, 2], &some), Err(NoEffects::NoRatio));
        let last = some.pop().unwrap();
        assert_eq!(effects(&[2, 2], &some), Err(NoEffects::Incomplete { found: 3, needed: 4 }));
        some.push(Cell { levels: vec![0, 0], ..last });
        assert_eq!(effects(&[2, 2], &some), Err(NoEffects::Odd));
    }
}
