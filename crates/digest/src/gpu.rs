//! SHA-256 of 64-bit integers on a graphics card of NVIDIA, where there is one.
//!
//! Nothing of it is needed to build or to run: the driver's library is looked for when [`Gpu::find`] is called,
//! and that there is none is an answer like another. The kernel is written by the program itself (module `ptx`, from
//! the same formulas as all others) and translated by the driver for the card at hand. Every find is checked by
//! the whole hash on the processor, so a card can miss an answer but not invent one; that it misses none is tried
//! on known answers before it is used.
//!
//! What a card does wrong is an error and no panic, so that the search can go on without it.

mod device;
mod driver;
mod error;
#[cfg(test)]
mod interpret;
mod launch;
mod ptx;
mod record;
mod scan;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

pub use device::{Device, UnknownDevice};
pub use error::{GpuAbsent, GpuError};
pub use ptx::Sums;

use scan::Card as _;

use crate::interrupt::Interrupt;
use crate::sha256::{Outcome, Targets};

/// A graphics card that searches.
pub struct Gpu(driver::Driver);

impl Gpu {
    /// The first card that the driver names (`CUDA_VISIBLE_DEVICES` chooses), tried on known answers. It takes
    /// some tenths of a second the first time, while the driver translates the kernel.
    ///
    /// # Errors
    /// Says what is missing.
    pub fn find(sums: Sums) -> Result<Self, GpuAbsent> {
        let mut card = driver::Driver::find(sums)?;
        match scan::finds_known_answers(&mut card)? {
            true => Ok(Self(card)),
            false => Err(GpuAbsent::Wrong { name: card.name().into() }),
        }
    }

    /// What the card is called.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// How many candidates keep the card busy for some milliseconds. A scan should be given several times as many:
    /// beginning and ending it costs about a tenth of a millisecond.
    pub fn batch(&self) -> u32 {
        self.0.batch()
    }

    /// The first candidate in `range` that is behind one of the targets, as [`crate::sha256::scan`] finds it. An
    /// interrupt is seen within about a millisecond.
    ///
    /// # Errors
    /// Fails if the card does, which should then be used no more.
    pub fn scan(
        &mut self,
        targets: &Targets,
        range: Range<u64>,
        interrupt: &Interrupt,
    ) -> Result<Outcome, GpuError> {
        scan::scan(&mut self.0, targets, range, interrupt)
    }
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Gpu").field(&self.name()).finish()
    }
}
