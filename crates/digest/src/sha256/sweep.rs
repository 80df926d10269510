//! The interface of a kernel: it tests groups of candidates that share their upper 32 bits.

use super::formula::Block;
use crate::interrupt::Interrupt;

/// The number of candidates that kernels test between two checks of the interrupt. Lanes differ in the low
/// bits.
pub(crate) const GROUP: u32 = 16;

/// A piece of work for a kernel: whole groups of candidates that share their upper 32 bits.
pub(crate) struct Sweep<'a> {
    pub(crate) block: &'a Block<u32>,
    /// The lower 32 bits of the first candidate, a multiple of [`GROUP`].
    pub(crate) from: u32,
    /// The number of groups; at least one.
    pub(crate) groups: u32,
    /// The value of [`residue`](super::formula::residue) for each target; at least one.
    pub(crate) wanted: &'a [u32],
    pub(crate) interrupt: &'a Interrupt,
}

/// Tests groups of candidates in order. Returns how many it has tested in full without a match: it stops
/// before a group with a candidate that matches, and before any group once it sees the interrupt raised. A
/// match is not yet a find: one in 2³² other candidates matches for each target.
pub(crate) type Kernel = fn(&Sweep<'_>) -> u32;
