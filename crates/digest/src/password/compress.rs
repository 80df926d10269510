//! SHA-1 of independent whole blocks (FIPS 180-4, section 6.1.2), one in each lane.

use super::sha1::{INITIAL, k};
use crate::lane::Lane;
use crate::vector::{Streams, Vector};

/// The five words of a state, in each lane.
pub(crate) type State<V, const N: usize> = [Streams<V, N>; 5];

/// The state before the first block.
#[inline(always)]
pub(crate) fn initial<V: Vector, const N: usize>() -> State<V, N> {
    let [a, b, c, d, e] = INITIAL;
    [Streams::same(a), Streams::same(b), Streams::same(c), Streams::same(d), Streams::same(e)]
}

/// Rounds with these numbers and this function. Spelled out: the compiler may keep a loop, and then moves all
/// words in each turn.
macro_rules! rounds {
    ($state:ident, $w:ident, $f:path; $($t:literal)*) => {$(
        if $t >= 16 {
            let word = Streams::xor3($w[($t + 13) % 16], $w[($t + 8) % 16], $w[($t + 2) % 16]);
            $w[$t % 16] = word.xor($w[$t % 16]).rotate_right::<31>();
        }
        let [a, b, c, d, e] = $state;
        let sum = e.plus_word([const { k($t) }; N]).plus($w[$t % 16]).plus($f(b, c, d));
        $state = [sum.plus(a.rotate_right::<27>()), a, b.rotate_right::<2>(), c, d];
    )*};
}

/// The state after a block.
#[inline(always)]
pub(crate) fn compress<V: Vector, const N: usize>(
    before: &State<V, N>,
    block: [Streams<V, N>; 16],
) -> State<V, N> {
    let mut w = block;
    let mut state = *before;
    rounds!(state, w, Lane::choose; 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19);
    rounds!(state, w, Lane::xor3; 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39);
    rounds!(state, w, Lane::majority; 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59);
    rounds!(state, w, Lane::xor3; 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79);
    for i in 0..5 {
        state[i] = state[i].plus(before[i]);
    }
    state
}
