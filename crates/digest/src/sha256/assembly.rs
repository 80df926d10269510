//! The vector kernels for x86-64, as text for the assembler. Used by the build script.
//!
//! A kernel is a function of the System V calling convention, `(block, wanted, wanted_end, interrupt, from,
//! groups) -> groups`, with the meaning of [`super::Kernel`]. It looks at the interrupt before each turn, which
//! costs nothing.

use std::mem::{offset_of, size_of};

use super::formula::{Block, residue};
use crate::generator::allocate::Register;
use crate::generator::graph::{Address, Graph, Source, Symbol, record};
use crate::generator::isa::Isa;
use crate::generator::{Tuning, turn};
use crate::lane::Lane;

/// The first words of 16 candidates: the bits in which lanes differ …
const LANES: Source = Source::Vector(Address { base: "rax", offset: 0 });
/// … and the others.
const BASE: Source = Source::Word(Address { base: "rsp", offset: 0 });

/// The formula, reading the block through `rdi`.
pub(crate) fn graph() -> Graph {
    fn words<const N: usize>(offset: usize) -> [Address; N] {
        std::array::from_fn(|i| Address { base: "rdi", offset: offset + i * size_of::<u32>() })
    }
    let block = Block {
        initial: words(offset_of!(Block<u32>, initial)),
        first: words(offset_of!(Block<u32>, first)),
        early: words(offset_of!(Block<u32>, early)),
        k: words(offset_of!(Block<u32>, k)),
        w: words(offset_of!(Block<u32>, w)),
    };
    record(|| residue(&block, Symbol::read(LANES).plus(Symbol::read(BASE))))
}

/// The cuts and the window that were fastest on Zen 5.
pub(crate) fn tuning(isa: Isa) -> Tuning {
    match isa {
        Isa::Avx512 => Tuning { cuts: vec![0.37, 0.70], window: 40 },
        Isa::Avx2 => Tuning { cuts: vec![0.4], window: 20 },
    }
}

/// The whole kernel.
pub(crate) fn kernel(isa: Isa, tuning: &Tuning) -> String {
    let turn = turn(&graph(), isa, tuning);
    let lanes = isa.vector_bytes() / size_of::<u32>();
    // The place of a candidate in its vector is the top byte of its first word.
    let places: String = (0..lanes).map(|lane| format!("    .long {}\n", lane << 24)).collect();
    format!(
        "    push rbp
    mov rbp, rsp
    sub rsp, {frame}
    and rsp, -{align}
    lea rax, [rip + 9f]
    mov r11d, r8d
    bswap r11d
    mov dword ptr [rsp], r11d
    imul r9d, r9d, {vectors_a_group}
    # The vector whose result a turn has. The first turns have none.
    mov r10d, -{fill}
    .p2align 6
2:
    cmp dword ptr [rcx], 0
    jne 5f
{body}
    # The next turn's candidates.
    add r8d, {lanes}
    mov r11d, r8d
    bswap r11d
    mov dword ptr [rsp], r11d
    # The result against each wanted word.
    mov r11, rsi
3:
{compare}
    jne 6f
4:
    add r11, 4
    cmp r11, rdx
    jne 3b
    inc r10d
    cmp r10d, r9d
    jl 2b
5:
    xor eax, eax
    test r10d, r10d
    cmovns eax, r10d
    shr eax, {log_vectors_a_group}
    mov rsp, rbp
    pop rbp
    vzeroupper
    ret
6:
    # A match counts if it is one of a candidate.
    test r10d, r10d
    jns 5b
    jmp 4b
    .p2align 6
9:
{places}",
        frame = isa.frame_bytes(&turn),
        align = isa.vector_bytes(),
        fill = tuning.cuts.len(),
        body = isa.print(&turn),
        compare = compare(isa, turn.result),
        vectors_a_group = 16 / lanes,
        log_vectors_a_group = (16 / lanes).ilog2(),
    )
}

/// Clears the zero flag if a word of the result is the one at `r11`.
fn compare(isa: Isa, result: Register) -> String {
    let [result, spare] = [result, result - 1].map(|register| isa.register(register));
    match isa {
        Isa::Avx512 => format!(
            "    vpcmpeqd k1, {result}, dword ptr [r11]{{1to16}}
    kortestw k1, k1"
        ),
        Isa::Avx2 => format!(
            "    vpbroadcastd {spare}, dword ptr [r11]
    vpcmpeqd {spare}, {spare}, {result}
    vptest {spare}, {spare}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Engine;
    use crate::generator::interpret::Machine;

    /// Compares what a turn computes, vector by vector, with the portable formula.
    fn check(isa: Isa, tuning: &Tuning, upper: u32, lower: u32) {
        let turn = turn(&graph(), isa, tuning);
        let block = Block::new(upper);
        let fill = tuning.cuts.len();
        let first = |turn: usize| lower.wrapping_add(turn as u32).swap_bytes();
        let mut machine = Machine::new(isa, &turn);
        for index in 0..fill + 4 {
            let result = machine.run(&turn, |source| match source {
                LANES => 0,
                BASE => first(index),
                Source::Word(address) => word(&block, address.offset),
                Source::Vector(_) => unreachable!("there is one vector in memory"),
            });
            if index >= fill {
                assert_eq!(result, residue(&block, first(index - fill)), "{isa:?} {tuning:?}, turn {index}");
            }
        }
    }

    /// The word of a block at an offset in bytes.
    fn word(block: &Block<u32>, offset: usize) -> u32 {
        let Block { initial, first, early, k, w } = block;
        let words: Vec<u32> = [&initial[..], first, early, k, w].concat();
        words[offset / size_of::<u32>()]
    }

    #[test]
    fn the_kernels_in_use_compute_the_formula() {
        for isa in [Isa::Avx2, Isa::Avx512] {
            check(isa, &tuning(isa), 0x89ab_cdef, 0x0123_4567);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_stages_and_any_order_compute_the_formula(
            wide: bool,
            mut cuts in prop::collection::vec(0.05..0.95, 0..5),
            window in 1usize..200,
            upper: u32,
            lower: u32,
        ) {
            cuts.sort_by(f64::total_cmp);
            let isa = if wide { Isa::Avx512 } else { Isa::Avx2 };
            check(isa, &Tuning { cuts, window }, upper, lower);
        }
    }

    #[test]
    fn the_bounds_are_those_of_the_operations() {
        for (isa, engine) in [(Isa::Avx2, Engine::Avx2), (Isa::Avx512, Engine::Avx512)] {
            let operations = isa.lower(&graph()).operations() + 1;
            let lanes = isa.vector_bytes() / size_of::<u32>();
            let cycles = operations as f64 / 4.0 / lanes as f64;
            assert_eq!(super::super::least_cycles(engine), Some(cycles), "{operations} operations");
        }
    }

    #[test]
    fn a_kernel_is_one_loop_that_fits_the_instruction_cache() {
        for isa in [Isa::Avx2, Isa::Avx512] {
            let text = kernel(isa, &tuning(isa));
            // An instruction takes 7 bytes or less on average.
            assert!(text.lines().count() * 7 < 28 << 10, "{} lines", text.lines().count());
            assert_eq!(text.matches("jl 2b").count(), 1);
        }
    }
}
