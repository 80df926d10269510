//! Derivations in the lanes of vectors.

use std::marker::PhantomData;

use super::chain::{BLOCK_BYTES, Chain, State};
use crate::password::compress::{self, compress};
use crate::vector::{MOST_LANES, Streams, Task, Vector};

/// Chains that are run together; the last is repeated in spare lanes.
pub(super) struct Chains<'a, V, const N: usize> {
    chains: &'a [Chain],
    rounds: u32,
    kind: PhantomData<V>,
}

impl<'a, V: Vector, const N: usize> Chains<'a, V, N> {
    pub(super) fn new(chains: &'a [Chain], rounds: u32) -> Self {
        assert!((1..=V::LANES * N).contains(&chains.len()), "{} chains", chains.len());
        Self { chains, rounds, kind: PhantomData }
    }

    /// One of the states of each chain.
    #[inline(always)]
    fn load(&self, state: fn(&Chain) -> &State) -> compress::State<V, N> {
        let mut loaded = [Streams::same(0); 5];
        for (word, loaded) in loaded.iter_mut().enumerate() {
            for stream in 0..N {
                let mut words = [0; MOST_LANES];
                for (lane, lane_word) in words[..V::LANES].iter_mut().enumerate() {
                    let chain = (stream * V::LANES + lane).min(self.chains.len() - 1);
                    *lane_word = state(&self.chains[chain])[word];
                }
                loaded.0[stream] = V::of(&words[..V::LANES]);
            }
        }
        loaded
    }
}

impl<V: Vector, const N: usize> Task for Chains<'_, V, N> {
    type Output = Vec<State>;

    #[inline(always)]
    fn run(self) -> Vec<State> {
        let inner = self.load(|chain| &chain.inner);
        let outer = self.load(|chain| &chain.outer);
        let mut last = self.load(|chain| &chain.first);
        let mut sum = last;
        for _ in 1..self.rounds {
            last = compress(&outer, block_of(compress(&inner, block_of(last))));
            for i in 0..5 {
                sum[i] = sum[i].xor(last[i]);
            }
        }
        let mut states = vec![State::default(); self.chains.len()];
        for (word, sum) in sum.iter().enumerate() {
            for (stream, states) in states.chunks_mut(V::LANES).enumerate() {
                let mut words = [0; MOST_LANES];
                sum.0[stream].write(&mut words[..V::LANES]);
                states.iter_mut().zip(words).for_each(|(state, lane)| state[word] = lane);
            }
        }
        states
    }
}

/// A digest as a message, with which HMAC continues after the block of its key.
#[inline(always)]
fn block_of<V: Vector, const N: usize>([a, b, c, d, e]: compress::State<V, N>) -> [Streams<V, N>; 16] {
    let zero = Streams::same(0);
    let length = Streams::same(8 * (64 + BLOCK_BYTES as u32));
    let end = Streams::same(0x8000_0000);
    [a, b, c, d, e, end, zero, zero, zero, zero, zero, zero, zero, zero, zero, length]
}
