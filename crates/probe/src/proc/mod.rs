//! Reading procfs as cheaply as it goes: descriptors that stay open, one `pread` a reading, no allocation.

mod parse;
mod place;
mod process;
mod system;
mod thread;

pub(crate) use process::Process;
pub(crate) use system::{Group, Network, System};

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::io::pread;

/// No file that is read here is longer, but for `net/netstat` of some kernels, of which the end is not needed.
pub(crate) const BUFFER_BYTES: usize = 8192;

/// The buffer of all readings.
pub(crate) type Buffer = [u8; BUFFER_BYTES];

/// An open file under `/proc` or `/sys` that the sampler reads repeatedly.
#[derive(Debug)]
pub(crate) struct PolledFile(File);

impl PolledFile {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self(File::open(path)?))
    }

    /// What it says now; `None` where it says nothing any more, because what it was about has ended.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
        let length = pread(&self.0, &mut buffer[..], 0).ok()?;
        (length > 0).then(|| &buffer[..length])
    }
}

/// Seconds of a count of clock ticks.
pub(crate) fn ticks_s(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}
