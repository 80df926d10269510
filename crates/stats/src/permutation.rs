//! Permutation tests on ranks: whether the side of a run matters.
//!
//! Ranks, because one disturbed run in ten must not decide. With ties they are midranks, and the distribution is that of these very
//! midranks, so the tests are exact with ties, too.

use crate::random::{Purpose, stream};
use rand::{RngExt as _, seq::SliceRandom as _};

/// Up to this total number of runs or pairs, every permutation is counted.
const EXACT_UP_TO: usize = 100;
/// Beyond, this number of permutations is drawn.
const DRAWN: u32 = 20_000;

/// The result of a permutation test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Permuted {
    /// The two-sided probability of ranks at least this far apart, if the side does not matter.
    pub p_value: f64,
    /// The number of drawn permutations; `None` if all were counted.
    pub drawn: Option<u32>,
}

/// The rank-sum test of Wilcoxon (1945) for two independent samples, by the permutations of their midranks: all of them, counted by
/// the recursion of Streitberg and Röhmel (1986), up to 100 values, otherwise 20,000 drawn ones. `None` if a side is empty.
pub fn rank_sum(first: &[f64], second: &[f64], seed: u64) -> Option<Permuted> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let all: Vec<f64> = second.iter().chain(first).copied().collect();
    let ranks = doubled_midranks(&all);
    let k = second.len();
    let observed: u64 = ranks[..k].iter().sum();
    // Twice the expected sum, so that it is whole.
    let centre = ranks.iter().sum::<u64>() * k as u64;
    let n = ranks.len() as u64;
    let off = |sum: u64| (sum * n).abs_diff(centre);
    let far = off(observed);
    if ranks.len() > EXACT_UP_TO {
        return Some(drawn(ranks, k, seed, |sum| off(sum) >= far));
    }
    // ways[j][s]: the share of all sets that are sets of j runs whose doubled ranks add up to s.
    let most: u64 = ranks.iter().sum();
    let mut ways = vec![vec![0.0f64; most as usize + 1]; k + 1];
    ways[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for j in (1..=k.min(seen + 1)).rev() {
            for sum in (rank as usize..=most as usize).rev() {
                let fewer = ways[j - 1][sum - rank as usize];
                ways[j][sum] += fewer;
            }
        }
    }
    Some(Permuted { p_value: share(&ways[k], |sum| off(sum) >= far), drawn: None })
}

/// The signed-rank test of Wilcoxon (1945) that pairs have no systematic difference, by the changes of their signs: all of them up to
/// 100 pairs, otherwise 20,000 drawn ones. Pairs without a difference are left out; if no other is left, the p-value is 1.
pub fn signed_rank(differences: &[f64], seed: u64) -> Permuted {
    let differing: Vec<f64> = differences.iter().copied().filter(|&difference| difference != 0.0).collect();
    let sizes: Vec<f64> = differing.iter().map(|difference| difference.abs()).collect();
    let ranks = doubled_midranks(&sizes);
    let total: u64 = ranks.iter().sum();
    let positive = differing.iter().zip(&ranks).filter(|(difference, _)| **difference > 0.0);
    let observed: u64 = positive.map(|(_, rank)| rank).sum();
    let off = |sum: u64| (2 * sum).abs_diff(total);
    let far = off(observed);
    if ranks.len() > EXACT_UP_TO {
        return drawn_signs(&ranks, seed, |sum| off(sum) >= far);
    }
    // Probabilities from the start: there are 2ⁿ ways, which soon exceeds every number type.
    let mut ways = vec![0.0f64; total as usize + 1];
    ways[0] = 1.0;
    for &rank in &ranks {
        for sum in (0..=total as usize).rev() {
            let with = if sum >= rank as usize { ways[sum - rank as usize] } else { 0.0 };
            ways[sum] = 0.5 * (ways[sum] + with);
        }
    }
    Permuted { p_value: share(&ways, |sum| off(sum) >= far), drawn: None }
}

/// The p-values as adjusted by Holm (1979): the probability that any of them is at most this small if nothing differs is at most
/// the adjusted one.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut least = 0.0f64;
    for (place, &index) in order.iter().enumerate() {
        least = least.max((p_values.len() - place) as f64 * p_values[index]).min(1.0);
        adjusted[index] = least;
    }
    adjusted
}

/// The smallest two-sided p-value that is possible with these numbers of runs: every value of one sample is above every value of
/// the other.
pub fn smallest_rank_sum(first: usize, second: usize) -> f64 {
    let k = first.min(second) as f64;
    let n = (first + second) as f64;
    let ln_choose = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
    (2.0 * libm::exp(-ln_choose)).min(1.0)
}

/// The smallest two-sided p-value that is possible with this number of pairs: all differ in one direction.
pub fn smallest_signed_rank(pairs: usize) -> f64 {
    (2.0 * libm::exp2(-(pairs as f64))).min(1.0)
}

/// The share of all ways for which a condition holds.
fn share(ways: &[f64], holds: impl Fn(u64) -> bool) -> f64 {
    let all: f64 = ways.iter().sum();
    let far: f64 = ways.iter().enumerate().filter(|(sum, _)| holds(*sum as u64)).map(|(_, ways)| ways).sum();
    (far / all).min(1.0)
}

/// By drawn sets of k ranks.
fn drawn(mut ranks: Vec<u64>, k: usize, seed: u64, holds: impl Fn(u64) -> bool) -> Permuted {
    let mut rng = stream(seed, Purpose::Trial, 1);
    by_draws(|| holds(ranks.partial_shuffle(&mut rng, k).0.iter().sum()))
}

/// By drawn signs, of which the ranks with a positive one add up.
fn drawn_signs(ranks: &[u64], seed: u64, holds: impl Fn(u64) -> bool) -> Permuted {
    let mut rng = stream(seed, Purpose::Trial, 1);
    let positive = |ranks: &[u64], signs: u64| -> u64 {
        ranks.iter().enumerate().map(|(i, rank)| rank * (signs >> i & 1)).sum()
    };
    by_draws(|| holds(ranks.chunks(64).map(|ranks| positive(ranks, rng.random())).sum()))
}

/// By drawn permutations, with the observed one among them, so that the test keeps its level (Phipson and Smyth 2010).
fn by_draws(mut is_far: impl FnMut() -> bool) -> Permuted {
    let far: u32 = (0..DRAWN).map(|_| u32::from(is_far())).sum();
    Permuted { p_value: f64::from(far + 1) / f64::from(DRAWN + 1), drawn: Some(DRAWN) }
}

/// Twice the rank of each value, counted from 1; equal ones share the mean of theirs.
fn doubled_midranks(values: &[f64]) -> Vec<u64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0; values.len()];
    let mut before = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let count = equal.len() as u64;
        for &index in equal {
            ranks[index] = 2 * before + count + 1;
        }
        before += count;
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draws::Law;

    /// Every set of k of n, one by one.
    fn by_hand(first: &[f64], second: &[f64]) -> f64 {
        let all: Vec<f64> = second.iter().chain(first).copied().collect();
        let ranks = doubled_midranks(&all);
        let (n, k) = (ranks.len(), second.len());
        let centre = ranks.iter().sum::<u64>() as f64 * k as f64 / n as f64;
        let sum = |set: u32| (0..n).filter(|i| set >> i & 1 == 1).map(|i| ranks[i]).sum::<u64>() as f64;
        let observed = (sum((1 << k) - 1) - centre).abs();
        let sets: Vec<u32> = (0..1u32 << n).filter(|set| set.count_ones() as usize == k).collect();
        let far = sets.iter().filter(|&&set| (sum(set) - centre).abs() >= observed - 1e-9).count();
        far as f64 / sets.len() as f64
    }

    #[test]
    fn the_recursion_counts_what_a_list_of_all_permutations_does() {
        for run in 0..40 {
            let mut rng = stream(3, Purpose::Trial, run);
            // Few different values, so that there are ties.
            let mut value = || (Law::Uniform { low_s: 0.0, high_s: 9.0 }.sample(&mut rng)).floor();
            let first: Vec<f64> = (0..3 + run % 4).map(|_| value()).collect();
            let second: Vec<f64> = (0..4 + run % 5).map(|_| value() + 2.0).collect();
            let found = rank_sum(&first, &second, 0).unwrap();
            assert!((found.p_value - by_hand(&first, &second)).abs() < 1e-12, "{first:?} {second:?}");
        }
    }

    #[test]
    fn extremes_have_the_smallest_possible_p_value() {
        let (low, high) = ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [7.0, 8.0, 9.0, 10.0, 11.0, 12.0]);
        let found = rank_sum(&low, &high, 0).unwrap().p_value;
        assert!((found - 2.0 / 924.0).abs() < 1e-15 && (smallest_rank_sum(6, 6) / found - 1.0).abs() < 1e-9);
        assert!((signed_rank(&high, 0).p_value - 2.0 / 64.0).abs() < 1e-15);
        assert_eq!(smallest_signed_rank(6), 2.0 / 64.0);
        assert_eq!(signed_rank(&[0.0; 8], 0).p_value, 1.0);
        assert_eq!(rank_sum(&[2.0; 6], &[2.0; 6], 0).unwrap().p_value, 1.0);
        assert_eq!(rank_sum(&[], &low, 0), None);
        // Textbook (Hollander and Wolfe 1999, table A.4): n = 8, T+ = 3 has 5/256 on one side.
        let mut pairs: Vec<f64> = (1..=8).map(|i| -f64::from(i)).collect();
        (pairs[0], pairs[1]) = (1.0, 2.0);
        assert!((signed_rank(&pairs, 0).p_value - 10.0 / 256.0).abs() < 1e-12);
    }

    /// 20,000 draws: the standard error of a p-value of 0.05 is 0.0015, so a deviation of 0.008 happens less than once in 10⁶.
    #[test]
    fn many_runs_are_permuted_by_chance_with_the_same_result() {
        let mut rng = stream(9, Purpose::Trial, 0);
        let mut sample = |by: f64, n: usize| -> Vec<f64> {
            (0..n).map(|_| by + Law::Exponential { mean_s: 1.0 }.sample(&mut rng)).collect()
        };
        let (first, second) = (sample(0.0, 48), sample(0.25, 50));
        let counted = rank_sum(&first, &second, 0).unwrap();
        let all: Vec<f64> = second.iter().chain(&first).copied().collect();
        let ranks = doubled_midranks(&all);
        let (observed, centre) = (ranks[..50].iter().sum::<u64>(), 50 * ranks.iter().sum::<u64>());
        let far = (observed * 98).abs_diff(centre);
        let found = drawn(ranks, 50, 5, |sum| (sum * 98).abs_diff(centre) >= far);
        assert!((found.p_value - counted.p_value).abs() < 0.008, "{found:?} {counted:?}");
        assert!(rank_sum(&sample(0.0, 60), &sample(0.0, 60), 1).unwrap().drawn == Some(DRAWN));
        let pairs = sample(-0.8, 100);
        let counted = signed_rank(&pairs, 0);
        let sizes: Vec<f64> = pairs.iter().map(|pair| pair.abs()).collect();
        let ranks = doubled_midranks(&sizes);
        let positive = pairs.iter().zip(&ranks).filter(|(pair, _)| **pair > 0.0);
        let (observed, total) = (positive.map(|(_, rank)| rank).sum::<u64>(), ranks.iter().sum::<u64>());
        let far = (2 * observed).abs_diff(total);
        let found = drawn_signs(&ranks, 5, |sum| (2 * sum).abs_diff(total) >= far);
        assert!((found.p_value - counted.p_value).abs() < 0.008, "{found:?} {counted:?}");
        assert_eq!((counted.drawn, signed_rank(&sample(0.0, 101), 1).drawn), (None, Some(DRAWN)));
    }

    #[test]
    fn holm_steps_down() {
        let close = |found: Vec<f64>, wanted: [f64; 4]| {
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-12), "{found:?}");
        };
        close(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        close(holm(&[0.9, 0.5, 0.2, 0.3]), [1.0, 1.0, 0.8, 0.9]);
        assert!(holm(&[]).is_empty());
    }
}
