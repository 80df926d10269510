//! What the instruction sets can do.

use super::allocate::Place;
use super::graph::{Graph, Op, Source, Value};

/// An instruction set of x86-64 with vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isa {
    /// 16 registers of 8 words. No rotation, no operation of three inputs.
    Avx2,
    /// 32 registers of 16 words. Rotates, and computes any function of three bits, in one instruction.
    Avx512,
}

impl Isa {
    pub(crate) fn registers(self) -> usize {
        match self {
            Self::Avx2 => 16,
            Self::Avx512 => 32,
        }
    }

    /// The length of a vector.
    pub(crate) fn vector_bytes(self) -> usize {
        match self {
            Self::Avx2 => 32,
            Self::Avx512 => 64,
        }
    }

    /// The formula in operations that this set has.
    pub(crate) fn lower(self, graph: &Graph) -> Graph {
        match self {
            Self::Avx512 => graph.clone(),
            Self::Avx2 => graph.rewritten(in_two_inputs),
        }
    }

    /// Whether an operation takes this operand, alone of all, directly from memory.
    pub(crate) fn folds(self, op: Op, operand: Place) -> bool {
        match self {
            Self::Avx512 => true,
            Self::Avx2 => !op.shifts() && !matches!(operand, Place::Source(Source::Word(_))),
        }
    }

    /// Whether the result of an operation takes the place of one of its operands.
    pub(crate) fn overwrites_an_operand(self, op: Op) -> bool {
        matches!(op, Op::Xor3 | Op::Choose | Op::Majority) && self == Self::Avx512
    }

    /// A value that is used again within so many operations is better loaded once than read from memory twice.
    pub(crate) fn keep_within(self) -> usize {
        match self {
            Self::Avx2 => 20,
            Self::Avx512 => 40,
        }
    }
}

/// Expresses a step by shifts and operations of two inputs.
fn in_two_inputs(graph: &mut Graph, op: Op, x: Vec<Value>) -> Value {
    match op {
        Op::RotateRight(n) => {
            let right = graph.add(Op::ShiftRight(n), x.clone());
            let left = graph.add(Op::ShiftLeft(32 - n), x);
            graph.add(Op::Or, vec![right, left])
        }
        Op::Xor3 => {
            let first = graph.add(Op::Xor, vec![x[0], x[1]]);
            graph.add(Op::Xor, vec![first, x[2]])
        }
        Op::Choose => {
            let [select, yes, no] = x[..] else { unreachable!("it has three arguments") };
            let differ = graph.add(Op::Xor, vec![yes, no]);
            let chosen = graph.add(Op::And, vec![select, differ]);
            graph.add(Op::Xor, vec![chosen, no])
        }
        // The second difference is the first one of the next round.
        Op::Majority => {
            let [a, b, c] = x[..] else { unreachable!("it has three arguments") };
            let [ab, bc] = [[a, b], [b, c]].map(|pair| graph.add(Op::Xor, pair.to_vec()));
            let differ = graph.add(Op::And, vec![ab, bc]);
            graph.add(Op::Xor, vec![differ, b])
        }
        _ => graph.add(op, x),
    }
}
