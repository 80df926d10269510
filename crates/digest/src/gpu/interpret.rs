//! Interprets the text of the kernel on the processor, one instruction at a time, so that it is tested where
//! there is no card. It knows only the instructions that the kernel uses, and is strict: anything that a
//! translator could reject, or leave undefined, ends the test.

mod parse;

pub(super) use parse::parse;

use super::launch::{BLOCK_THREADS, Words};

/// The source of a kernel's operand.
#[derive(Clone, Copy, Debug)]
enum Source {
    Absent,
    Register(usize),
    Number(u64),
    Special(Special),
}

/// The registers that identify a thread.
#[derive(Clone, Copy, Debug)]
enum Special {
    Thread,
    Threads,
    Block,
    Blocks,
}

#[derive(Clone, Copy, Debug)]
enum Opcode {
    Move,
    Add,
    Multiply,
    MultiplyAdd,
    Minimum,
    FunnelRight,
    ShiftRight,
    Logic3,
    Permute,
    Equal,
    EqualOr,
    NotEqual,
    Less,
    NotLess,
    LoadParameter32,
    LoadParameter64,
    ToGlobal,
    Load,
    AtomicMinimum,
    Branch,
    Return,
}

/// An instruction. An address is two sources: the register that holds it, and the offset.
#[derive(Clone, Debug)]
struct Instruction {
    opcode: Opcode,
    /// The instruction is only executed if this predicate is set.
    guard: Option<usize>,
    to: Option<usize>,
    sources: [Source; 4],
}

impl Instruction {
    fn push(&mut self, source: Source) {
        let free = self.sources.iter_mut().find(|place| matches!(place, Source::Absent));
        *free.expect("no instruction has more") = source;
    }
}

/// A kernel that was parsed without an error.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) name: String,
    parameter_bytes: usize,
    registers: Vec<String>,
    instructions: Vec<Instruction>,
}

/// The memory that a kernel accesses.
#[derive(Debug)]
pub(super) struct Memory {
    pub(super) words: Words,
    /// How many more reads find the flag lowered.
    pub(super) looks_left: usize,
}

/// The addresses of the two parts.
pub(super) const WORDS_AT: u64 = 0x7f00_0000_1000;
pub(super) const STOP_AT: u64 = 0x7e00_0000_2000;

impl Memory {
    fn word(&mut self, address: u64) -> &mut u32 {
        let byte = address.checked_sub(WORDS_AT).expect("an address below the words") as usize;
        assert_eq!(byte % 4, 0, "the address is not aligned");
        &mut self.words[byte / 4]
    }

    fn load(&mut self, address: u64) -> u32 {
        if address != STOP_AT {
            return *self.word(address);
        }
        let raised = self.looks_left == 0;
        self.looks_left = self.looks_left.saturating_sub(1);
        u32::from(raised)
    }
}

struct Thread {
    number: u32,
    block: u32,
    next: usize,
    registers: Vec<Option<u64>>,
}

/// Runs a launch to its end. Threads alternate, in an order drawn from the seed; a turn ends with a jump.
pub(super) fn run(kernel: &Kernel, blocks: u32, call: &[u32], memory: &mut Memory, seed: u64) {
    assert_eq!(call.len() * 4, kernel.parameter_bytes, "the parameter has another size");
    let thread = |index| Thread {
        number: index % BLOCK_THREADS,
        block: index / BLOCK_THREADS,
        next: 0,
        registers: vec![None; kernel.registers.len()],
    };
    let mut threads: Vec<Thread> = (0..blocks * BLOCK_THREADS).map(thread).collect();
    let mut state = seed | 1;
    while !threads.is_empty() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let drawn = (state % threads.len() as u64) as usize;
        if let TurnEnd::Returned = (Run { kernel, blocks, call, memory }).turn(&mut threads[drawn]) {
            threads.swap_remove(drawn);
        }
    }
}

enum TurnEnd {
    Jumped,
    Returned,
}

struct Run<'a> {
    kernel: &'a Kernel,
    blocks: u32,
    call: &'a [u32],
    memory: &'a mut Memory,
}

impl Run<'_> {
    fn turn(&mut self, thread: &mut Thread) -> TurnEnd {
        loop {
            let instruction = &self.kernel.instructions[thread.next];
            thread.next += 1;
            if instruction.guard.is_some_and(|guard| self.register(thread, guard) == 0) {
                continue;
            }
            let value = |place: usize| self.value(thread, instruction.sources[place]);
            let word = |place: usize| value(place) as u32;
            let address = || value(0).wrapping_add(value(1));
            let result = match instruction.opcode {
                Opcode::Move => word(0),
                Opcode::Add => word(0).wrapping_add(word(1)),
                Opcode::Multiply => word(0).wrapping_mul(word(1)),
                Opcode::MultiplyAdd => word(0).wrapping_mul(word(1)).wrapping_add(word(2)),
                Opcode::Minimum => word(0).min(word(1)),
                Opcode::FunnelRight => {
                    (((u64::from(word(1)) << 32) | u64::from(word(0))) >> (word(2) % 32)) as u32
                }
                Opcode::ShiftRight => word(0).checked_shr(word(1)).unwrap_or(0),
                Opcode::Logic3 => logic3([word(0), word(1), word(2)], word(3)),
                Opcode::Permute => permute([word(0), word(1)], word(2)),
                Opcode::Equal => u32::from(word(0) == word(1)),
                Opcode::EqualOr => u32::from(word(0) == word(1)) | word(2),
                Opcode::NotEqual => u32::from(word(0) != word(1)),
                Opcode::Less => u32::from(word(0) < word(1)),
                Opcode::NotLess => u32::from(word(0) >= word(1)),
                Opcode::LoadParameter32 => self.call[word(0) as usize / 4],
                Opcode::LoadParameter64 => {
                    let at = word(0) as usize / 4;
                    let address = u64::from(self.call[at]) | (u64::from(self.call[at + 1]) << 32);
                    thread.registers[instruction.to.expect("loads have a register")] = Some(address);
                    continue;
                }
                // Addresses in the card's memory are the same with and without a state space.
                Opcode::ToGlobal => {
                    let address = value(0);
                    thread.registers[instruction.to.expect("the result has a register")] = Some(address);
                    continue;
                }
                Opcode::Load => {
                    let address = address();
                    self.memory.load(address)
                }
                Opcode::AtomicMinimum => {
                    let (address, word) = (address(), word(2));
                    let least = self.memory.word(address);
                    std::mem::replace(least, word.min(*least))
                }
                Opcode::Branch => {
                    thread.next = value(0) as usize;
                    return TurnEnd::Jumped;
                }
                Opcode::Return => return TurnEnd::Returned,
            };
            thread.registers[instruction.to.expect("the result has a register")] = Some(u64::from(result));
        }
    }

    fn register(&self, thread: &Thread, register: usize) -> u64 {
        let value = thread.registers[register];
        value.unwrap_or_else(|| panic!("{} is read before it is set", self.kernel.registers[register]))
    }

    fn value(&self, thread: &Thread, source: Source) -> u64 {
        match source {
            Source::Absent => unreachable!("the form of the instruction was checked"),
            Source::Register(register) => self.register(thread, register),
            Source::Number(number) => number,
            Source::Special(Special::Thread) => u64::from(thread.number),
            Source::Special(Special::Threads) => u64::from(BLOCK_THREADS),
            Source::Special(Special::Block) => u64::from(thread.block),
            Source::Special(Special::Blocks) => u64::from(self.blocks),
        }
    }
}

/// Each bit by the table: the three bits form its index there, the first one highest.
fn logic3(operands: [u32; 3], table: u32) -> u32 {
    let (mut result, mut place) = (0, 0);
    while place < 8 {
        let agrees = |operand: usize| {
            let bit = (place >> (2 - operand)) & 1;
            if bit == 1 { operands[operand] } else { !operands[operand] }
        };
        if (table >> place) & 1 == 1 {
            result |= agrees(0) & agrees(1) & agrees(2);
        }
        place += 1;
    }
    result
}

/// Four of the eight bytes of two words, chosen by the four digits of the selector, lowest first.
fn permute(words: [u32; 2], selector: u32) -> u32 {
    let bytes = (u64::from(words[1]) << 32) | u64::from(words[0]);
    let byte = |at: u32| {
        let digit = (selector >> (4 * at)) & 0xf;
        assert!(digit < 8, "the sign of a byte is not emulated");
        (((bytes >> (8 * digit)) & 0xff) as u32) << (8 * at)
    };
    (0..4).map(byte).sum()
}
