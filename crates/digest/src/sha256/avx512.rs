//! The kernel of AVX-512, which the build script writes in machine code.

#![allow(unsafe_code, reason = "machine code")]

use super::formula::Block;
use super::sweep::Sweep;
use crate::engine::Engine;

/// `(block, wanted, wanted_end, interrupt, from, groups) -> groups`.
#[unsafe(naked)]
unsafe extern "sysv64" fn assembly(
    block: *const Block<u32>,
    wanted: *const u32,
    wanted_end: *const u32,
    interrupt: *const u32,
    from: u32,
    groups: u32,
) -> u32 {
    std::arch::naked_asm!(include_str!(concat!(env!("OUT_DIR"), "/sha256_avx512.s")), options(raw))
}

/// See [`Kernel`](super::sweep::Kernel).
///
/// # Panics
/// Panics on a processor without AVX-512.
pub(crate) fn sweep(sweep: &Sweep<'_>) -> u32 {
    assert!(Engine::Avx512.is_available(), "this processor cannot run the avx512 engine");
    let &Sweep { block, from, groups, wanted, interrupt } = sweep;
    let wanted = wanted.as_ptr_range();
    // SAFETY: the processor has the instructions. The assembly reads the block, the wanted words, of which there
    // is at least one, and the interrupt, and writes only its own frame.
    unsafe { assembly(block, wanted.start, wanted.end, interrupt.as_ptr(), from, groups) }
}
