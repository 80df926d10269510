//! A word by which a running scan can be stopped from another thread.

use std::sync::atomic::{AtomicU32, Ordering};

/// A word by which a running scan can be stopped from another thread. Kernels look at it every few candidates,
/// so a scan ends within about a microsecond of [`raise`](Self::raise). It has a cache line pair of its own, so
/// that looking costs nothing while nobody writes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Interrupt(AtomicU32);

impl Interrupt {
    /// Not raised.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Asks the scans that look at it to stop.
    pub fn raise(&self) {
        self.0.store(1, Ordering::Release);
    }

    /// Takes the wish back.
    pub fn lower(&self) {
        self.0.store(0, Ordering::Release);
    }

    /// Whether scans are to stop.
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The word itself, for kernels in machine code.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn as_ptr(&self) -> *const u32 {
        self.0.as_ptr()
    }
}
