//! The kernel of AVX-512, as text for the assembler. The build script writes it.
//!
//! It is a function of the System V calling convention, `(block, wanted, wanted_end, interrupt, from, groups) ->
//! groups`, with the meaning of `Kernel` in `sweep.rs`. A vector is a group. It reads the interrupt before each
//! turn, which costs nothing.

use std::mem::{offset_of, size_of};

use super::formula::{Block, residue};
use crate::generator::graph::{Address, Graph, Source, Symbol, record};
use crate::generator::print::{VECTOR_BYTES, frame_bytes, print};
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
pub(crate) fn tuning() -> Tuning {
    Tuning { cuts: vec![0.37, 0.70], window: 40 }
}

/// The whole kernel.
pub(crate) fn kernel(tuning: &Tuning) -> String {
    let turn = turn(graph(), tuning);
    let lanes = VECTOR_BYTES / size_of::<u32>();
    // The index of a candidate in its vector is the top byte of its first word.
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
    vpcmpeqd k1, zmm{result}, dword ptr [r11]{{1to16}}
    kortestw k1, k1
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
        frame = frame_bytes(&turn),
        align = VECTOR_BYTES,
        fill = tuning.cuts.len(),
        body = print(&turn),
        result = turn.result,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::Engine;
    use crate::generator::interpret::Machine;

    /// Compares the results of a turn, vector by vector, with the portable formula.
    fn check(tuning: &Tuning, upper: u32, lower: u32) {
        let turn = turn(graph(), tuning);
        let block = Block::new(upper);
        let fill = tuning.cuts.len();
        let first = |turn: usize| lower.wrapping_add(turn as u32).swap_bytes();
        let mut machine = Machine::new(&turn);
        for index in 0..fill + 4 {
            let result = machine.run(&turn, |source| match source {
                LANES => 0,
                BASE => first(index),
                Source::Word(address) => word(&block, address.offset),
                Source::Vector(_) => unreachable!("there is one vector in memory"),
            });
            if index >= fill {
                assert_eq!(result, residue(&block, first(index - fill)), "{tuning:?}, turn {index}");
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
    fn the_kernel_in_use_computes_the_formula() {
        check(&tuning(), 0x89ab_cdef, 0x0123_4567);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn any_stages_and_any_order_compute_the_formula(
            mut cuts in prop::collection::vec(0.05..0.95, 0..5),
            window in 1usize..200,
            upper: u32,
            lower: u32,
        ) {
            cuts.sort_by(f64::total_cmp);
            check(&Tuning { cuts, window }, upper, lower);
        }
    }

    #[test]
    fn the_bound_is_that_of_the_operations() {
        // The comparison is one more.
        let operations = graph().operations() + 1;
        let cycles = operations as f64 / 4.0 / (VECTOR_BYTES / size_of::<u32>()) as f64;
        assert_eq!(crate::sha256::least_cycles(Engine::Avx512), Some(cycles), "{operations} operations");
    }

    #[test]
    fn the_kernel_is_one_loop_that_fits_the_instruction_cache() {
        let text = kernel(&tuning());
        // An instruction takes 7 bytes or less on average.
        assert!(text.lines().count() * 7 < 28 << 10, "{} lines", text.lines().count());
        assert_eq!(text.matches("jl 2b").count(), 1);
    }
}
