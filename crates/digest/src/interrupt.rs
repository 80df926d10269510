//! A word by which a running scan can be stopped from another thread.

use std::sync::atomic::{AtomicU32, Ordering};

/// A word by which a running scan can be stopped from another thread. Kernels poll it every few candidates, so a scan ends
/// within about a microsecond of [`raise`](Self::raise). Keep it on a separate pair of cache lines (`#[repr(align(128))]`),
/// so that reading it costs nothing while no thread writes.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Interrupt(AtomicU32);

impl Interrupt {
    /// Not raised.
    pub const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Uses a word of the caller: raised while it is not 0.
    #[allow(unsafe_code, reason = "a cast between a type and its transparent wrapper")]
    pub fn over(word: &AtomicU32) -> &Self {
        // SAFETY: `Self` is a transparent wrapper of `AtomicU32`, and the reference lives as long as the one it is made of.
        unsafe { &*std::ptr::from_ref(word).cast::<Self>() }
    }

    /// Stops the scans that poll it.
    pub fn raise(&self) {
        self.0.store(1, Ordering::Release);
    }

    /// Withdraws the interrupt.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_the_caller_is_the_interrupt() {
        let word = AtomicU32::new(0);
        let interrupt = Interrupt::over(&word);
        assert!(!interrupt.is_raised());
        word.store(7, Ordering::Relaxed);
        assert!(interrupt.is_raised());
        interrupt.lower();
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }
}
