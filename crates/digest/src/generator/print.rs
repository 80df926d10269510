//! Instructions as text for the assembler, in Intel's syntax.

use super::allocate::{Instruction, Location, Register, Turn};
use super::graph::{Address, Op, Source};
use crate::lane::Lane;

/// The length of a vector.
pub(crate) const VECTOR_BYTES: usize = 64;
/// The bytes at the stack pointer that belong to the kernel; the slots lie above.
pub(crate) const OWN_BYTES: usize = 64;

/// The bytes that a turn needs at the stack pointer, which must be aligned to a vector.
pub(crate) fn frame_bytes(turn: &Turn) -> usize {
    OWN_BYTES + turn.slots * VECTOR_BYTES
}

/// One line for each instruction.
pub(crate) fn print(turn: &Turn) -> String {
    turn.instructions.iter().map(|one| format!("    {}\n", instruction(one))).collect()
}

fn instruction(instruction: &Instruction) -> String {
    match instruction {
        Instruction::Move { to, from: Location::Source(Source::Word(address)) } => {
            format!("vpbroadcastd {}, dword ptr {}", whole(*to), text(*address))
        }
        Instruction::Move { to, from } => format!("vmovdqa64 {}, {}", whole(*to), whole(*from)),
        Instruction::Compute { op, to, from } => compute(*op, *to, from),
    }
}

fn compute(op: Op, to: Register, from: &[Location]) -> String {
    match op {
        Op::Add => {
            // Only the last operand may be in memory; the order does not matter.
            let (first, last) = if is_register(&from[0]) { (from[0], from[1]) } else { (from[1], from[0]) };
            format!("vpaddd zmm{to}, {}, {}", operand(first), operand(last))
        }
        Op::ShiftRight(bits) => format!("vpsrld zmm{to}, {}, {bits}", operand(from[0])),
        Op::RotateRight(bits) => format!("vprord zmm{to}, {}, {bits}", operand(from[0])),
        Op::Xor3 => ternary(u32::xor3, to, from),
        Op::Choose => ternary(u32::choose, to, from),
        Op::Majority => ternary(u32::majority, to, from),
        Op::Read(_) | Op::Copy => unreachable!("{op:?} is a move"),
    }
}

/// The instruction for any function of three bits overwrites its first operand. The function is given by its
/// value for each combination of the operands' bits, in three patterns.
fn ternary(function: fn(u32, u32, u32) -> u32, to: Register, from: &[Location]) -> String {
    const PATTERNS: [u32; 3] = [0xf0, 0xcc, 0xaa];
    let mut operands = from.to_vec();
    operands.sort_by_key(|place| (*place != Location::Register(to), !is_register(place)));
    let pattern = |argument: usize| {
        let place = operands.iter().position(|operand| *operand == from[argument]);
        PATTERNS[place.expect("they are the same places")]
    };
    let value = function(pattern(0), pattern(1), pattern(2));
    let [first, second, third] = [0, 1, 2].map(|place| operand(operands[place]));
    format!("vpternlogd {first}, {second}, {third}, {value:#x}")
}

/// An operand of an operation: words in memory are broadcast.
fn operand(place: Location) -> String {
    match place {
        Location::Source(Source::Word(address)) => format!("dword ptr {}{{1to16}}", text(address)),
        place => whole(place),
    }
}

/// A vector.
fn whole(place: Location) -> String {
    match place {
        Location::Register(register) => format!("zmm{register}"),
        Location::Slot(slot) => {
            let address = Address { base: "rsp", offset: OWN_BYTES + slot * VECTOR_BYTES };
            format!("zmmword ptr {}", text(address))
        }
        Location::Source(Source::Vector(address)) => format!("zmmword ptr {}", text(address)),
        Location::Source(Source::Word(_)) => unreachable!("words are broadcast"),
    }
}

fn text(Address { base, offset }: Address) -> String {
    format!("[{base} + {offset}]")
}

fn is_register(place: &Location) -> bool {
    matches!(place, Location::Register(_))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORD: Location = Location::Source(Source::Word(Address { base: "rdi", offset: 8 }));
    const SLOT: Location = Location::Slot(2);
    const ONE: Location = Location::Register(1);
    const TWO: Location = Location::Register(2);
    const THREE: Location = Location::Register(3);

    #[test]
    fn functions_of_three_bits_follow_the_order_of_their_operands() {
        let print = |op, from: [Location; 3]| compute(op, 1, &from);
        assert_eq!(
            print(Op::Xor3, [WORD, ONE, TWO]),
            "vpternlogd zmm1, zmm2, dword ptr [rdi + 8]{1to16}, 0x96"
        );
        assert_eq!(print(Op::Majority, [TWO, THREE, ONE]), "vpternlogd zmm1, zmm2, zmm3, 0xe8");
        assert_eq!(print(Op::Choose, [ONE, TWO, THREE]), "vpternlogd zmm1, zmm2, zmm3, 0xca");
        // Here the overwritten operand is the one chosen where a bit of the first is not set.
        let printed = print(Op::Choose, [SLOT, TWO, ONE]);
        assert_eq!(printed, "vpternlogd zmm1, zmm2, zmmword ptr [rsp + 192], 0xd8");
    }

    #[test]
    fn the_operand_in_memory_comes_last() {
        assert_eq!(compute(Op::Add, 3, &[WORD, ONE]), "vpaddd zmm3, zmm1, dword ptr [rdi + 8]{1to16}");
    }
}
