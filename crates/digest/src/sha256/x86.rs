//! The kernels for x86-64.

#![allow(unsafe_code, reason = "vector instructions")]

use super::Sweep;
use super::formula::Block;
use crate::engine::Engine;

/// What the build script writes: `(block, wanted, wanted_end, interrupt, from, groups) -> groups`.
type Assembly =
    unsafe extern "sysv64" fn(*const Block<u32>, *const u32, *const u32, *const u32, u32, u32) -> u32;

macro_rules! assembly {
    ($name:ident, $file:literal) => {
        #[unsafe(naked)]
        unsafe extern "sysv64" fn $name(
            block: *const Block<u32>,
            wanted: *const u32,
            wanted_end: *const u32,
            interrupt: *const u32,
            from: u32,
            groups: u32,
        ) -> u32 {
            std::arch::naked_asm!(include_str!(concat!(env!("OUT_DIR"), "/", $file)), options(raw))
        }
    };
}

assembly!(avx2_assembly, "sha256_avx2.s");
assembly!(avx512_assembly, "sha256_avx512.s");

/// See [`super::Kernel`].
///
/// # Panics
/// Panics on a processor without AVX2.
pub(crate) fn avx2(sweep: &Sweep<'_>) -> u32 {
    run(Engine::Avx2, avx2_assembly, sweep)
}

/// See [`super::Kernel`].
///
/// # Panics
/// Panics on a processor without AVX-512.
pub(crate) fn avx512(sweep: &Sweep<'_>) -> u32 {
    run(Engine::Avx512, avx512_assembly, sweep)
}

fn run(engine: Engine, assembly: Assembly, sweep: &Sweep<'_>) -> u32 {
    assert!(engine.is_available(), "this processor cannot run the {engine} engine");
    let &Sweep { block, from, groups, wanted, interrupt } = sweep;
    let wanted = wanted.as_ptr_range();
    // SAFETY: the processor has the instructions. The assembly reads the block, the wanted words, of which there
    // is at least one, and the interrupt, and writes only its own frame.
    unsafe { assembly(block, wanted.start, wanted.end, interrupt.as_ptr(), from, groups) }
}
