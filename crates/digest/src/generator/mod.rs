//! Writes vector kernels of AVX-512 in machine code, from the same formulas that the portable kernels run.
//!
//! A formula written over [`Lane`](crate::lane::Lane) is recorded as a [`Graph`](graph::Graph) by running it over
//! [`Symbol`](graph::Symbol)s. One evaluation is a long chain of operations that wait for each other, so a loop
//! over evaluations would leave most of the processor idle; and compilers undo every attempt to interleave several
//! in the source. So the graph is cut into [stages](stages), of which a turn of the loop does each for another
//! vector; the turn's operations are put in [order](schedule), given [registers](allocate), and [printed](print).
//!
//! ```text
//! let graph = record(|| my_formula(Symbol::read(…)));      // any formula over Lane
//! let turn = turn(graph, &Tuning { … });
//! ```
//!
//! The caller wraps the printed turn in a loop; `sha256/assembly.rs` is the example. In turn `i` (from 0) the first
//! stage begins vector `i`, so that vector's inputs must be in memory, and the result in register `turn.result` is
//! that of vector `i - cuts`; in the first turns it belongs to no vector. Between turns that register and the one
//! before it belong to the caller, which also owns the general registers and the mask registers throughout, and the
//! first [`OWN_BYTES`](print::OWN_BYTES) at the stack pointer. All other vector registers, and the rest of the
//! [frame](print::frame_bytes), carry values from one turn to the next.
//!
//! This module is not part of the library: the build script runs it, and tests interpret its output.

pub(crate) mod allocate;
pub(crate) mod graph;
#[cfg(test)]
pub(crate) mod interpret;
pub(crate) mod print;
mod schedule;
mod stages;

use allocate::Turn;
use graph::Graph;
use stages::Staged;

/// The tuning parameters, found by measuring.
#[derive(Clone, Debug)]
pub(crate) struct Tuning {
    /// Where stages end, as shares of the longest chain of operations; empty for one stage.
    pub(crate) cuts: Vec<f64>,
    /// The number of operations that the scheduler looks ahead.
    pub(crate) window: usize,
}

/// One turn of the loop that evaluates the formula, for the caller to wrap.
pub(crate) fn turn(graph: Graph, tuning: &Tuning) -> Turn {
    let staged = Staged::new(graph, &tuning.cuts);
    let order = schedule::schedule(&staged, tuning.window);
    allocate::allocate(&staged, &order)
}
