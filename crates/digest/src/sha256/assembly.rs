//! The vector kernels for x86-64, as text for the assembler. Used by the build script.
//!
//! A kernel is a function of the System V calling convention, `(block, wanted, wanted_end, interrupt, from,
//! groups) -> groups`, with the meaning of [`super::Kernel`].

use std::mem::{offset_of, size_of};

use super::formula::{Block, residue};
use crate::generator::graph::{Address, Graph, Source, Symbol, record};
use crate::generator::isa::Isa;
use crate::generator::{Tuning, turn};

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
    record(|| {
        use crate::lane::Lane;
        residue(&block, Symbol::read(LANES).plus(Symbol::read(BASE)))
    })
}

/// The cuts and the window that were fastest on Zen 5.
pub(crate) fn tuning(isa: Isa) -> Tuning {
    match isa {
        Isa::Avx512 => Tuning { cuts: &[0.37, 0.70], window: 40 },
        Isa::Avx2 => Tuning { cuts: &[0.4], window: 20 },
    }
}

/// The whole kernel.
pub(crate) fn kernel(isa: Isa, tuning: &Tuning) -> String {
    let turn = turn(&graph(), isa, tuning);
    let lanes = isa.vector_bytes() / size_of::<u32>();
    let fill = tuning.cuts.len();
    let frame = isa.frame_bytes(&turn);
    let align = isa.vector_bytes();
    let body = isa.print(&turn);
    let result = isa.register(turn.result);
    let compare = match isa {
        Isa::Avx512 => format!(
            "    vpcmpeqd k1, {result}, dword ptr [r11]{{1to16}}
    kortestw k1, k1"
        ),
        Isa::Avx2 => {
            let spare = isa.register(turn.result - 1);
            format!(
                "    vpbroadcastd {spare}, dword ptr [r11]
    vpcmpeqd {spare}, {spare}, {result}
    vptest {spare}, {spare}"
            )
        }
    };
    // The place of a candidate in its vector is the top byte of its first word.
    let places: String = (0..lanes).map(|lane| format!("    .long {}\n", lane << 24)).collect();
    // Vectors a group.
    let split = 16 / lanes;
    format!(
        "    push rbp
    mov rbp, rsp
    sub rsp, {frame}
    and rsp, -{align}
    lea rax, [rip + 9f]
    mov r11d, r8d
    bswap r11d
    mov dword ptr [rsp], r11d
    imul r9d, r9d, {split}
    mov r10d, -{fill}
    .p2align 6
2:
    cmp dword ptr [rcx], 0
    jne 5f
{body}    add r8d, {lanes}
    mov r11d, r8d
    bswap r11d
    mov dword ptr [rsp], r11d
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
    shr eax, {shift}
    mov rsp, rbp
    pop rbp
    vzeroupper
    ret
6:
    test r10d, r10d
    js 4b
    jmp 5b
    .p2align 6
9:
{places}",
        shift = split.ilog2(),
    )
}
