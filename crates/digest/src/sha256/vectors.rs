//! The kernel of vectors that the compiler orders, one vector after the other: for AVX2.
//!
//! Its frame holds the words that do not fit the registers and a vector of each constant. The processor hides the
//! latency of one vector's operations with its own reordering where they take one cycle.

use std::marker::PhantomData;

use super::formula::residue;
use super::sweep::{GROUP, Sweep};
use crate::vector::{MOST_LANES, Task, Vector};

/// See [`Kernel`](super::sweep::Kernel).
///
/// # Panics
/// Panics on a processor without these vectors.
pub(crate) fn sweep<V: Vector>(sweep: &Sweep<'_>) -> u32 {
    V::run(Groups::<V> { sweep, kind: PhantomData })
}

/// The groups of a sweep, for vectors of a kind.
struct Groups<'a, V> {
    sweep: &'a Sweep<'a>,
    kind: PhantomData<V>,
}

impl<V: Vector> Task for Groups<'_, V> {
    type Output = u32;

    #[inline(always)]
    fn run(self) -> u32 {
        let &Sweep { block, from, groups, wanted, interrupt } = self.sweep;
        // The index of a candidate in its vector is the top byte of its first word.
        let mut places = [0; MOST_LANES];
        for (place, word) in places.iter_mut().enumerate() {
            *word = (place as u32) << 24;
        }
        let places = V::of(&places[..V::LANES]);
        for group in 0..groups {
            if interrupt.is_raised() {
                return group;
            }
            for at in (0..GROUP).step_by(V::LANES) {
                let first = (from + group * GROUP + at).swap_bytes();
                let residue = residue(block, places.plus_word(first));
                let mut equal = 0;
                for wanted in wanted {
                    equal |= residue.equal(V::splat(*wanted));
                }
                if equal != 0 {
                    return group;
                }
            }
        }
        groups
    }
}
