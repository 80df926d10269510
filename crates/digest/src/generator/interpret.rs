//! Runs the output of the generator, one candidate wide, to compare it with the formula.

use super::allocate::{Instruction, Location, REGISTERS, Turn};
use super::graph::Source;

/// The vector registers and the frame, which one turn of a loop leaves to the next. Reading a value before it is
/// written fails.
pub(crate) struct Machine {
    registers: Vec<Option<u32>>,
    slots: Vec<Option<u32>>,
}

impl Machine {
    /// The state before the first turn: arbitrary numbers.
    pub(crate) fn new(turn: &Turn) -> Self {
        let garbage = |i: usize| Some((i as u32).wrapping_mul(0x9e37_79b9));
        Self {
            registers: (0..REGISTERS).map(garbage).collect(),
            slots: (100..100 + turn.slots).map(garbage).collect(),
        }
    }

    /// Runs one turn and returns its result.
    pub(crate) fn run(&mut self, turn: &Turn, memory: impl Fn(Source) -> u32) -> u32 {
        for instruction in &turn.instructions {
            let get = |place: Location| self.get(place, &memory);
            let (to, word) = match instruction {
                Instruction::Move { to, from } => (*to, get(*from)),
                Instruction::Compute { op, to, from } => {
                    let from: Vec<u32> = from.iter().map(|&place| get(place)).collect();
                    (Location::Register(*to), op.of(&from))
                }
            };
            match to {
                Location::Register(register) => self.registers[register] = Some(word),
                Location::Slot(slot) => self.slots[slot] = Some(word),
                Location::Source(source) => panic!("{source:?} is only read"),
            }
        }
        // The last two registers are the loop's between turns.
        let result = self.registers[turn.result].take().expect("it was computed");
        self.registers.iter_mut().rev().take(2).for_each(|register| *register = None);
        result
    }

    fn get(&self, place: Location, memory: impl Fn(Source) -> u32) -> u32 {
        match place {
            Location::Register(register) => self.registers[register].expect("it was written"),
            Location::Slot(slot) => self.slots[slot].expect("it was written"),
            Location::Source(source) => memory(source),
        }
    }
}
