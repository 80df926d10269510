//! The kernel as text: a [`Program`] in the instructions of NVIDIA's virtual machine (PTX ISA 7.0). The driver
//! translates it for the card at hand, so nothing of CUDA is needed to build.
//!
//! Candidates are counted from the first of a launch. Each thread tests the one with its own index and goes on by
//! the number of threads, so that all of them together test the candidates nearly in order. Every few candidates
//! it reads the flag by which the host stops it, and checks whether an earlier candidate has matched.
//!
//! **Where the sums are computed.** On cards from Volta to Hopper, each quarter of a multiprocessor can begin one
//! instruction of 32 lanes per cycle, but the pipe for logic, shifts and additions and the one for multiplications
//! take 16 lanes per cycle each. Rotates and logic (796 per candidate) must use the former and alone keep it busy,
//! so the sums use the latter as `a · 1 + b`. The 1 is a word of the launch: a translator that knew it would turn
//! the sum back into an addition. It must not be in a register of the threads either: three registers for one
//! instruction are more than the two banks of the register file deliver in a cycle, and an H100 then did 15.7 G/s
//! instead of 19.1.

use std::fmt::Write as _;

use super::launch::{BLOCK_THREADS, WIDTHS, call, outcome};
use super::record::{Operation, Program, Value};

/// The instruction for the sums of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sums {
    /// The multiply-add, in parallel with the logic.
    #[default]
    Multiplier,
    /// The addition. The driver may put two into one instruction, and moves some to the multiplier.
    Adder,
}

/// The number of candidates that a thread tests between two readings of the flag: some 0.2 ms on a full card.
const LOOK_EVERY: u32 = 16;

/// The name of the kernel of a width.
pub(super) fn name(width: usize) -> String {
    format!("kendall_sha256_{width}")
}

/// The text of a module with a kernel of each width.
pub(super) fn module(sums: Sums) -> String {
    let program = Program::residue();
    let mut text = String::from(".version 7.0\n.target sm_70\n.address_size 64\n");
    for width in WIDTHS {
        text += &kernel(&program, sums, width);
    }
    text
}

fn kernel(program: &Program, sums: Sums, width: usize) -> String {
    let name = name(width);
    let bytes = (call::WANTED + width) * 4;
    let values = program.operations.len();
    let body = body(program, sums);
    let compare = compare(Value(values - 1), width);
    let [outcome, stop, from, count, one] =
        [call::OUTCOME, call::STOP, call::FROM, call::COUNT, call::ONE].map(|word| word * 4);
    let [first, cut] = [outcome::FIRST, outcome::CUT].map(|word| word * 4);
    format!(
        "
.visible .entry {name}(.param .align 8 .b8 launch[{bytes}])
.maxntid {BLOCK_THREADS}, 1, 1
{{
.reg .pred %test, %matches;
.reg .b32 %v<{values}>;
.reg .b32 %index, %stride, %until, %count, %from, %one, %low, %place, %threads, %seen, %wanted;
.reg .b64 %outcome, %stop;

ld.param.u64 %outcome, [launch+{outcome}];
cvta.to.global.u64 %outcome, %outcome;
ld.param.u64 %stop, [launch+{stop}];
cvta.to.global.u64 %stop, %stop;
ld.param.u32 %from, [launch+{from}];
ld.param.u32 %count, [launch+{count}];
ld.param.u32 %one, [launch+{one}];
mov.u32 %place, %ctaid.x;
mov.u32 %threads, %ntid.x;
mov.u32 %index, %tid.x;
mad.lo.u32 %index, %place, %threads, %index;
mov.u32 %place, %nctaid.x;
mul.lo.u32 %stride, %place, %threads;
setp.ge.u32 %test, %index, %count;
@%test bra DONE;

LOOK:
ld.volatile.global.u32 %seen, [%stop];
setp.ne.u32 %test, %seen, 0;
@%test bra CUT;
ld.volatile.global.u32 %seen, [%outcome+{first}];
setp.lt.u32 %test, %seen, %index;
@%test bra DONE;
mad.lo.u32 %until, %stride, {LOOK_EVERY}, %index;
min.u32 %until, %until, %count;

NEXT:
add.u32 %low, %from, %index;
{body}
{compare}
@%matches bra MATCH;
add.u32 %index, %index, %stride;
setp.lt.u32 %test, %index, %until;
@%test bra NEXT;
setp.lt.u32 %test, %index, %count;
@%test bra LOOK;

DONE:
ret;

MATCH:
atom.global.min.u32 %seen, [%outcome+{first}], %index;
ret;

CUT:
atom.global.min.u32 %seen, [%outcome+{cut}], %index;
ret;
}}
"
    )
}

/// The instructions from `%low` to the last value, one per line.
fn body(program: &Program, sums: Sums) -> String {
    let mut text = String::new();
    for (place, operation) in program.operations.iter().enumerate() {
        let to = Value(place);
        let _ = match *operation {
            Operation::First => writeln!(text, "prmt.b32 {to}, %low, 0, 0x0123;"),
            Operation::Word(place) => {
                writeln!(text, "ld.param.u32 {to}, [launch+{}];", (call::BLOCK + place) * 4)
            }
            Operation::Add(x, y) => match sums {
                Sums::Multiplier => writeln!(text, "mad.lo.u32 {to}, {x}, %one, {y};"),
                Sums::Adder => writeln!(text, "add.u32 {to}, {x}, {y};"),
            },
            Operation::RotateRight(x, bits) => writeln!(text, "shf.r.wrap.b32 {to}, {x}, {x}, {bits};"),
            Operation::ShiftRight(x, bits) => writeln!(text, "shr.u32 {to}, {x}, {bits};"),
            // The last operand is the result for each of the eight ways in which three bits can be.
            Operation::Xor3([a, b, c]) => writeln!(text, "lop3.b32 {to}, {a}, {b}, {c}, 0x96;"),
            Operation::Choose([a, b, c]) => writeln!(text, "lop3.b32 {to}, {a}, {b}, {c}, 0xca;"),
            Operation::Majority([a, b, c]) => writeln!(text, "lop3.b32 {to}, {a}, {b}, {c}, 0xe8;"),
        };
    }
    text
}

/// Sets `%matches` if a value is one of the wanted ones.
fn compare(value: Value, width: usize) -> String {
    let mut text = String::new();
    for target in 0..width {
        let _ = writeln!(text, "ld.param.u32 %wanted, [launch+{}];", (call::WANTED + target) * 4);
        let _ = match target {
            0 => writeln!(text, "setp.eq.u32 %matches, {value}, %wanted;"),
            _ => writeln!(text, "setp.eq.or.u32 %matches, {value}, %wanted, %matches;"),
        };
    }
    text
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "%v{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// How often each instruction occurs in one turn of the loop.
    fn counts(sums: Sums, width: usize) -> BTreeMap<String, usize> {
        let text = kernel(&Program::residue(), sums, width);
        let (_, from_next) = text.split_once("NEXT:").unwrap();
        let (turn, _) = from_next.split_once("@%test bra NEXT;").unwrap();
        let mut counts = BTreeMap::new();
        for line in turn.lines().filter(|line| !line.is_empty() && !line.starts_with('@')) {
            *counts.entry(line.split_once(' ').unwrap().0.to_owned()).or_insert(0) += 1;
        }
        counts
    }

    #[test]
    fn a_candidate_takes_as_many_instructions_as_the_formulas_have() {
        let [one, adder] = [Sums::Multiplier, Sums::Adder].map(|sums| counts(sums, 1));
        assert_eq!(one["shf.r.wrap.b32"] + one["shr.u32"], 513);
        assert_eq!(one["lop3.b32"], 283);
        assert_eq!(one["mad.lo.u32"], 461);
        // The candidate, and the next one.
        assert_eq!(one["add.u32"], 2);
        assert_eq!(adder["add.u32"], 461 + 2);
        assert!(!adder.contains_key("mad.lo.u32"));
        // The order of its bytes, one comparison, and the test for the end.
        assert_eq!([one["prmt.b32"], one["setp.eq.u32"], one["setp.lt.u32"]], [1, 1, 1]);
        // The rest reads constant words, which costs nothing: an instruction has them as operands.
        let counted = 513 + 283 + 461 + 2 + 3;
        assert_eq!(one.values().sum::<usize>() - one["ld.param.u32"], counted);
    }

    #[test]
    fn each_further_target_takes_one_instruction() {
        for width in WIDTHS {
            let counts = counts(Sums::Multiplier, width);
            assert_eq!(counts.get("setp.eq.or.u32").copied().unwrap_or(0), width - 1);
        }
    }

    #[test]
    fn the_text_is_the_same_each_time() {
        assert_eq!(module(Sums::Multiplier), module(Sums::Multiplier));
    }
}
