//! The trials of an experiment, in seeded order.

use kendall_station::random::{Purpose, derive, stream};
use rand::seq::SliceRandom;

/// One trial to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trial {
    /// Its number in the order of running, from 1.
    pub number: usize,
    /// Its combination, as an index into [`crate::Experiment::combinations`].
    pub combination: usize,
    /// Which repeat of its combination it is, from 0.
    pub repeat: u32,
    /// The seed of its requests and arrivals.
    pub seed: u64,
}

/// Every combination `repeats` times, in randomised blocks: each repeat tries all combinations in an order of its
/// own, so that a slow drift of the machine falls on all of them alike.
pub(crate) fn schedule(combinations: usize, repeats: u32, seed: u64) -> Vec<Trial> {
    let mut trials = Vec::with_capacity(combinations * repeats as usize);
    for repeat in 0..repeats {
        let mut block: Vec<usize> = (0..combinations).collect();
        block.shuffle(&mut stream(seed, Purpose::Order, u64::from(repeat)));
        for combination in block {
            let seed = derive(seed, Purpose::Trial, (combination as u64) << 32 | u64::from(repeat));
            trials.push(Trial { number: trials.len() + 1, combination, repeat, seed });
        }
    }
    trials
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_holds_every_combination_once_in_an_order_of_its_own() {
        let trials = schedule(8, 5, 1);
        assert_eq!(trials.len(), 40);
        let blocks: Vec<Vec<usize>> =
            trials.chunks(8).map(|block| block.iter().map(|trial| trial.combination).collect()).collect();
        for block in &blocks {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..8).collect::<Vec<_>>());
        }
        assert_ne!(blocks[0], blocks[1]);
        assert_eq!(trials, schedule(8, 5, 1));
        assert_ne!(trials, schedule(8, 5, 2));
    }

    #[test]
    fn no_two_trials_share_a_seed() {
        let mut seeds: Vec<u64> = schedule(8, 5, 1).iter().map(|trial| trial.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 40);
    }
}
