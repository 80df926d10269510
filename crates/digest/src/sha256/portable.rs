//! The kernel that runs everywhere, one candidate at a time: the reference for the tests of the others.

use super::formula::residue;
use super::sweep::{GROUP, Sweep};

/// See [`Kernel`](super::sweep::Kernel).
pub(crate) fn sweep(sweep: &Sweep<'_>) -> u32 {
    let matches = |low: u32| sweep.wanted.contains(&residue(sweep.block, low.swap_bytes()));
    let group = |index: u32| sweep.from + index * GROUP;
    let stops = |&index: &u32| {
        sweep.interrupt.is_raised() || (group(index)..=group(index) + (GROUP - 1)).any(matches)
    };
    (0..sweep.groups).find(stops).unwrap_or(sweep.groups)
}
