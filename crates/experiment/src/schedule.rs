//! The trials of an experiment, in seeded order.

use kendall_stats::random::{Purpose, derive, stream};
use rand::seq::SliceRandom;

/// One trial of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The trial's number in the order of running, from 1.
    pub number: usize,
    /// The trial's combination, as an index into [`crate::Experiment::combinations`].
    pub combination: usize,
    /// The repeat of its combination, from 0; the trials of one repeat form a block.
    pub repeat: u32,
    /// The attempt, from 0: a disturbed trial is repeated with the same requests.
    pub attempt: u32,
    /// The seed of its requests and arrivals.
    pub seed: u64,
}

/// Every combination `repeats` times, in randomised blocks: each repeat runs all combinations in a separate random order, so that
/// a slow drift of the machine affects all of them alike.
///
/// `asks` gives for each combination the first one with the same workload and load. Such trials of one repeat share a seed:
/// server settings are compared on the same requests (common random numbers).
pub(crate) fn schedule(asks: &[usize], repeats: u32, seed: u64) -> Vec<Trial> {
    (0..repeats).flat_map(|repeat| block(asks, repeat, seed)).collect()
}

/// One block of trials, numbered after those of all earlier blocks.
pub(crate) fn block(asks: &[usize], repeat: u32, seed: u64) -> Vec<Trial> {
    let mut order: Vec<usize> = (0..asks.len()).collect();
    order.shuffle(&mut stream(seed, Purpose::Order, u64::from(repeat)));
    let before = asks.len() * repeat as usize;
    let trial = |(place, combination): (usize, usize)| Trial {
        number: before + place + 1,
        combination,
        repeat,
        attempt: 0,
        seed: derive(seed, Purpose::Trial, (asks[combination] as u64) << 32 | u64::from(repeat)),
    };
    order.into_iter().enumerate().map(trial).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_holds_every_combination_once_in_an_order_of_its_own() {
        let asks: Vec<usize> = (0..8).collect();
        let trials = schedule(&asks, 5, 1);
        assert_eq!(trials.len(), 40);
        let blocks: Vec<Vec<usize>> =
            trials.chunks(8).map(|block| block.iter().map(|trial| trial.combination).collect()).collect();
        for block in &blocks {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        }
        assert_ne!(blocks[0], blocks[1]);
        assert_eq!(trials, schedule(&asks, 5, 1));
        assert_ne!(trials, schedule(&asks, 5, 2));
    }

    #[test]
    fn trials_share_a_seed_where_one_repeat_asks_the_same() {
        let asks = [0, 1, 0, 1, 0, 1, 6, 7];
        let trials = schedule(&asks, 5, 1);
        for (a, b) in trials.iter().flat_map(|a| trials.iter().map(move |b| (a, b))) {
            let same = asks[a.combination] == asks[b.combination] && a.repeat == b.repeat;
            assert_eq!(a.seed == b.seed, same, "{a:?} {b:?}");
        }
    }
}
