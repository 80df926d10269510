//! SHA-256 of 64-bit integers on an NVIDIA graphics card, where there is one.
//!
//! Nothing of it is needed to build or to run: [`Gpu::find`] looks for the driver's library, and its absence is an
//! ordinary answer. The program writes the kernel (module `ptx`, from the same formulas as all others) and the
//! driver translates it for the card. The processor checks every find with the whole hash, so a card can miss an
//! answer but not invent one; it is tested on known answers before use, to detect a card that misses them.
//!
//! A failure of the card is an error and not a panic, so that the search can continue without it.

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
    /// The first card that the driver names (`CUDA_VISIBLE_DEVICES` chooses), tested on known answers. It takes some
    /// tenths of a second the first time, while the driver translates the kernel.
    ///
    /// # Errors
    /// Reports what is missing.
    pub fn find(sums: Sums) -> Result<Self, GpuAbsent> {
        let mut card = driver::Driver::find(sums)?;
        match scan::finds_known_answers(&mut card)? {
            true => Ok(Self(card)),
            false => Err(GpuAbsent::Wrong { name: card.name().into() }),
        }
    }

    /// The name of the card.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The number of candidates that keep the card busy for some milliseconds. Make a scan several times as long:
    /// its start and end cost about a tenth of a millisecond.
    pub fn batch(&self) -> u32 {
        self.0.batch()
    }

    /// The first candidate in `range` that is behind one of the targets, as [`crate::sha256::scan`] finds it. An
    /// interrupt takes effect within about a millisecond.
    ///
    /// # Errors
    /// Fails if the card does; then use it no more.
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
