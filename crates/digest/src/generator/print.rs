//! Instructions as text for the assembler, in Intel's syntax.

use super::allocate::{Instruction, Place, Register, Turn};
use super::graph::{Address, Op, Source};
use super::isa::Isa;
use crate::lane::Lane;

/// The bytes at the stack pointer that are the kernel's own; the slots lie above.
pub(crate) const OWN_BYTES: usize = 64;

impl Isa {
    /// The bytes that a turn needs at the stack pointer, which must be aligned to a vector.
    pub(crate) fn frame_bytes(self, turn: &Turn) -> usize {
        OWN_BYTES + turn.slots * self.vector_bytes()
    }

    /// One line for each instruction.
    pub(crate) fn print(self, turn: &Turn) -> String {
        let line = |instruction: &Instruction| format!("    {}\n", self.instruction(instruction));
        turn.instructions.iter().map(line).collect()
    }

    /// A register's name.
    pub(crate) fn register(self, register: Register) -> String {
        match self {
            Self::Avx2 => format!("ymm{register}"),
            Self::Avx512 => format!("zmm{register}"),
        }
    }

    fn instruction(self, instruction: &Instruction) -> String {
        match instruction {
            Instruction::Move { to, from: Place::Source(Source::Word(address)) } => {
                format!("vpbroadcastd {}, dword ptr {}", self.whole(*to), text(*address))
            }
            Instruction::Move { to, from } => {
                let name = if self == Self::Avx512 { "vmovdqa64" } else { "vmovdqa" };
                format!("{name} {}, {}", self.whole(*to), self.whole(*from))
            }
            Instruction::Compute { op, to, from } => self.compute(*op, *to, from),
        }
    }

    fn compute(self, op: Op, to: Register, from: &[Place]) -> String {
        let target = self.register(to);
        if self.overwrites_an_operand(op) {
            // The function of three bits is given by its value for each combination of the target's bit, the
            // second operand's and the third's: the bits of these patterns.
            let mut others: Vec<Place> =
                from.iter().copied().filter(|&place| place != Place::Register(to)).collect();
            others.sort_by_key(|place| !matches!(place, Place::Register(_)));
            let pattern_of = |place: &Place| {
                others.iter().position(|other| other == place).map_or(0xf0, |index| [0xcc, 0xaa][index])
            };
            let x: Vec<u32> = from.iter().map(pattern_of).collect();
            let function = match op {
                Op::Xor3 => u32::xor3(x[0], x[1], x[2]),
                Op::Choose => x[0].choose(x[1], x[2]),
                Op::Majority => u32::majority(x[0], x[1], x[2]),
                _ => unreachable!("{op:?} has not three inputs"),
            };
            let [second, third] = [0, 1].map(|index| self.operand(others[index]));
            return format!("vpternlogd {target}, {second}, {third}, {function}");
        }
        let name = match (op, self) {
            (Op::Add, _) => "vpaddd",
            (Op::ShiftRight(_), _) => "vpsrld",
            (Op::ShiftLeft(_), _) => "vpslld",
            (Op::RotateRight(_), Self::Avx512) => "vprord",
            (Op::Xor, Self::Avx2) => "vpxor",
            (Op::And, Self::Avx2) => "vpand",
            (Op::Or, Self::Avx2) => "vpor",
            (Op::Xor, Self::Avx512) => "vpxord",
            (Op::And, Self::Avx512) => "vpandd",
            (Op::Or, Self::Avx512) => "vpord",
            _ => unreachable!("{self:?} has no {op:?}"),
        };
        match op {
            Op::RotateRight(n) | Op::ShiftRight(n) | Op::ShiftLeft(n) => {
                format!("{name} {target}, {}, {n}", self.operand(from[0]))
            }
            _ => {
                // Only the last operand may be in memory, and the order does not matter.
                let (first, last) = match from {
                    [first @ Place::Register(_), last] => (first, last),
                    [last, first] => (first, last),
                    _ => unreachable!("{op:?} has two inputs"),
                };
                format!("{name} {target}, {}, {}", self.operand(*first), self.operand(*last))
            }
        }
    }

    /// An operand of an operation: words in memory are broadcast.
    fn operand(self, place: Place) -> String {
        match place {
            Place::Source(Source::Word(address)) => format!("dword ptr {}{{1to16}}", text(address)),
            place => self.whole(place),
        }
    }

    /// A vector.
    fn whole(self, place: Place) -> String {
        let width = if self == Self::Avx512 { "zmmword" } else { "ymmword" };
        match place {
            Place::Register(register) => self.register(register),
            Place::Slot(slot) => {
                let address = Address { base: "rsp", offset: OWN_BYTES + slot * self.vector_bytes() };
                format!("{width} ptr {}", text(address))
            }
            Place::Source(Source::Vector(address) | Source::Word(address)) => {
                format!("{width} ptr {}", text(address))
            }
        }
    }
}

fn text(Address { base, offset }: Address) -> String {
    format!("[{base} + {offset}]")
}
