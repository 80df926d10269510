//! The formulas of [`crate::sha256::formula`], recorded instead of computed: a [`Lane`] whose values are positions in a
//! list of operations. The result is a straight-line [`Program`], to be printed in the language of another processor.
//!
//! A lane is `Copy` and its functions are given no context, so the list belongs to the thread.

use std::cell::RefCell;

use crate::lane::Lane;
use crate::sha256::formula::{Block, residue};

/// A value of a [`Program`]: the place of the operation that makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value(pub(super) usize);

/// An operation on 32-bit words. Its operands come before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// The first word of the message: the candidate's lower 32 bits in the order of the message's bytes.
    First,
    /// The word at this place of the [`Block`].
    Word(usize),
    Add(Value, Value),
    RotateRight(Value, u32),
    ShiftRight(Value, u32),
    Xor3([Value; 3]),
    /// Mask, yes, no.
    Choose([Value; 3]),
    Majority([Value; 3]),
}

impl Operation {
    /// The same operation on other operands.
    fn map(self, mut other: impl FnMut(Value) -> Value) -> Self {
        match self {
            Self::First | Self::Word(_) => self,
            Self::Add(x, y) => Self::Add(other(x), other(y)),
            Self::RotateRight(x, bits) => Self::RotateRight(other(x), bits),
            Self::ShiftRight(x, bits) => Self::ShiftRight(other(x), bits),
            Self::Xor3(operands) => Self::Xor3(operands.map(other)),
            Self::Choose(operands) => Self::Choose(operands.map(other)),
            Self::Majority(operands) => Self::Majority(operands.map(other)),
        }
    }
}

thread_local! {
    static WRITTEN: RefCell<Vec<Operation>> = const { RefCell::new(Vec::new()) };
}

// Not inlined: the formulas call it about a thousand times, and inlined the function takes minutes to compile.
#[inline(never)]
fn write(operation: Operation) -> Value {
    WRITTEN.with_borrow_mut(|written| {
        written.push(operation);
        Value(written.len() - 1)
    })
}

impl Lane for Value {
    type Word = Self;

    fn splat(word: Self) -> Self {
        word
    }

    fn plus(self, other: Self) -> Self {
        write(Operation::Add(self, other))
    }

    fn rotate_right<const N: u32>(self) -> Self {
        write(Operation::RotateRight(self, N))
    }

    fn shift_right<const N: u32>(self) -> Self {
        write(Operation::ShiftRight(self, N))
    }

    fn xor3(a: Self, b: Self, c: Self) -> Self {
        write(Operation::Xor3([a, b, c]))
    }

    fn choose(self, yes: Self, no: Self) -> Self {
        write(Operation::Choose([self, yes, no]))
    }

    fn majority(a: Self, b: Self, c: Self) -> Self {
        write(Operation::Majority([a, b, c]))
    }
}

/// Operations in a valid order. Each is used; the last one computes the result.
#[derive(Clone, Debug)]
pub(super) struct Program {
    pub(super) operations: Vec<Operation>,
}

impl Program {
    /// The operations of [`residue`].
    pub(super) fn residue() -> Self {
        WRITTEN.take();
        let mut place = 0;
        let block = block(|| {
            place += 1;
            write(Operation::Word(place - 1))
        });
        let result = residue(&block, write(Operation::First));
        Self::leading_to(result, &WRITTEN.take())
    }

    /// The operations that a result needs.
    fn leading_to(result: Value, written: &[Operation]) -> Self {
        let mut needed = vec![false; written.len()];
        needed[result.0] = true;
        for place in (0..=result.0).rev() {
            if needed[place] {
                written[place].map(|operand| {
                    needed[operand.0] = true;
                    operand
                });
            }
        }
        let mut moved = vec![Value(usize::MAX); written.len()];
        let mut operations = Vec::new();
        for (place, operation) in written.iter().enumerate().filter(|(place, _)| needed[*place]) {
            moved[place] = Value(operations.len());
            operations.push(operation.map(|operand| moved[operand.0]));
        }
        Self { operations }
    }
}

/// The number of words of a [`Block`].
pub(super) const BLOCK_WORDS: usize = size_of::<Block<u32>>() / size_of::<u32>();

/// A block of the next words, in the order in which it stores them.
fn block<Word>(mut next: impl FnMut() -> Word) -> Block<Word> {
    Block {
        initial: std::array::from_fn(|_| next()),
        first: std::array::from_fn(|_| next()),
        early: std::array::from_fn(|_| next()),
        k: std::array::from_fn(|_| next()),
        w: std::array::from_fn(|_| next()),
    }
}

/// The words of a block, in the order in which it holds them.
pub(super) fn words(block: &Block<u32>) -> impl Iterator<Item = u32> {
    let Block { initial, first, early, k, w } = block;
    [&initial[..], first, early, k, w].into_iter().flatten().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Executes the operations.
    fn run(program: &Program, block: &Block<u32>, first: u32) -> u32 {
        let words: Vec<u32> = words(block).collect();
        let mut values: Vec<u32> = Vec::new();
        for operation in &program.operations {
            let value = |value: Value| values[value.0];
            values.push(match *operation {
                Operation::First => first,
                Operation::Word(place) => words[place],
                Operation::Add(x, y) => value(x).plus(value(y)),
                Operation::RotateRight(x, bits) => value(x).rotate_right(bits),
                Operation::ShiftRight(x, bits) => value(x) >> bits,
                Operation::Xor3([a, b, c]) => u32::xor3(value(a), value(b), value(c)),
                Operation::Choose([mask, yes, no]) => value(mask).choose(value(yes), value(no)),
                Operation::Majority([a, b, c]) => u32::majority(value(a), value(b), value(c)),
            });
        }
        *values.last().unwrap()
    }

    #[test]
    fn the_program_computes_what_it_was_written_from() {
        let program = Program::residue();
        for (upper, low) in [(0, 0), (0, 1), (1, u32::MAX), (u32::MAX, 0x1234_5678), (0x0102_0304, 7)] {
            let block = Block::new(upper);
            assert_eq!(run(&program, &block, low), residue(&block, low));
        }
    }

    #[test]
    fn a_block_of_its_words_is_the_same_block() {
        let original = Block::new(77);
        let mut words_left = words(&original);
        let copy = block(|| words_left.next().unwrap());
        assert!(words_left.next().is_none());
        assert_eq!(format!("{copy:?}"), format!("{original:?}"));
        assert_eq!(words(&original).count(), BLOCK_WORDS);
    }

    #[test]
    fn every_operation_has_a_use() {
        let operations = Program::residue().operations;
        let mut used = vec![false; operations.len()];
        for operation in &operations {
            operation.map(|operand| {
                used[operand.0] = true;
                operand
            });
        }
        let unused: Vec<usize> = (0..operations.len()).filter(|place| !used[*place]).collect();
        assert_eq!(unused, [operations.len() - 1], "only the result is for others");
    }
}
