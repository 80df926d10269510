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
        let bitwise = |name| if self == Self::Avx512 { format!("{name}d") } else { String::from(name) };
        let name = match op {
            Op::Add => "vpaddd".into(),
            Op::Xor => bitwise("vpxor"),
            Op::And => bitwise("vpand"),
            Op::Or => bitwise("vpor"),
            Op::ShiftRight(n) => return self.shift("vpsrld", to, from[0], n),
            Op::ShiftLeft(n) => return self.shift("vpslld", to, from[0], n),
            Op::RotateRight(n) => return self.shift("vprord", to, from[0], n),
            Op::Xor3 => return self.ternary(u32::xor3, to, from),
            Op::Choose => return self.ternary(u32::choose, to, from),
            Op::Majority => return self.ternary(u32::majority, to, from),
            Op::Read(_) | Op::Copy => unreachable!("{op:?} is a move"),
        };
        // Only the last operand may be in memory; the order does not matter to any of these.
        let (first, last) = if is_register(&from[0]) { (from[0], from[1]) } else { (from[1], from[0]) };
        format!("{name} {}, {}, {}", self.register(to), self.operand(first), self.operand(last))
    }

    fn shift(self, name: &str, to: Register, from: Place, bits: u32) -> String {
        format!("{name} {}, {}, {bits}", self.register(to), self.operand(from))
    }

    /// The instruction for any function of three bits overwrites its first operand. The function is given by its
    /// value for each combination of the operands' bits: those of three patterns.
    fn ternary(self, function: fn(u32, u32, u32) -> u32, to: Register, from: &[Place]) -> String {
        const PATTERNS: [u32; 3] = [0xf0, 0xcc, 0xaa];
        let mut operands = from.to_vec();
        operands.sort_by_key(|place| (*place != Place::Register(to), !is_register(place)));
        let pattern = |argument: usize| {
            let place = operands.iter().position(|operand| *operand == from[argument]);
            PATTERNS[place.expect("they are the same places")]
        };
        let value = function(pattern(0), pattern(1), pattern(2));
        let [first, second, third] = [0, 1, 2].map(|operand| self.operand(operands[operand]));
        format!("vpternlogd {first}, {second}, {third}, {value:#x}")
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
            Place::Source(Source::Vector(address)) => format!("{width} ptr {}", text(address)),
            Place::Source(Source::Word(_)) => unreachable!("words are broadcast"),
        }
    }
}

fn text(Address { base, offset }: Address) -> String {
    format!("[{base} + {offset}]")
}

fn is_register(place: &Place) -> bool {
    matches!(place, Place::Register(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Place = Place::Source(Source::Word(Address { base: "rdi", offset: 8 }));
    const SLOT: Place = Place::Slot(2);
    const ONE: Place = Place::Register(1);
    const TWO: Place = Place::Register(2);
    const THREE: Place = Place::Register(3);

    #[test]
    fn functions_of_three_bits_follow_the_order_of_their_operands() {
        let print = |op, from: [Place; 3]| Isa::Avx512.compute(op, 1, &from);
        assert_eq!(
            print(Op::Xor3, [WORD, ONE, TWO]),
            "vpternlogd zmm1, zmm2, dword ptr [rdi + 8]{1to16}, 0x96"
        );
        assert_eq!(print(Op::Majority, [TWO, THREE, ONE]), "vpternlogd zmm1, zmm2, zmm3, 0xe8");
        assert_eq!(print(Op::Choose, [ONE, TWO, THREE]), "vpternlogd zmm1, zmm2, zmm3, 0xca");
        // Here the overwritten operand is what is taken where a bit of the first is not set.
        let printed = print(Op::Choose, [SLOT, TWO, ONE]);
        assert_eq!(printed, "vpternlogd zmm1, zmm2, zmmword ptr [rsp + 192], 0xd8");
    }

    #[test]
    fn the_operand_in_memory_comes_last() {
        assert_eq!(
            Isa::Avx512.compute(Op::Add, 3, &[WORD, ONE]),
            "vpaddd zmm3, zmm1, dword ptr [rdi + 8]{1to16}"
        );
        assert_eq!(Isa::Avx2.compute(Op::Xor, 3, &[SLOT, ONE]), "vpxor ymm3, ymm1, ymmword ptr [rsp + 128]");
        assert_eq!(Isa::Avx2.compute(Op::ShiftLeft(7), 3, &[ONE]), "vpslld ymm3, ymm1, 7");
    }
}
