//! Reads procfs at the least cost: open descriptors, one `pread` for each reading, no allocation.

pub(crate) mod parse;
mod place;
mod process;
mod system;
mod thread;

pub(crate) use process::Process;
pub(crate) use system::{Group, Network, System};

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rustix::io::pread;

/// No file that is read here is longer, except `net/netstat` of some kernels, whose end is not needed.
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

    /// Reads its content; `None` where it is empty because its process or thread has ended.
    pub(crate) fn read<'b>(&self, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
        let length = pread(&self.0, &mut buffer[..], 0).ok()?;
        (length > 0).then(|| &buffer[..length])
    }
}

/// Converts clock ticks to seconds.
pub(crate) fn ticks_s(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

/// When the process or thread with this folder started, in clock ticks since the machine started; 0 where it has ended.
pub(crate) fn start_ticks(folder: &Path) -> u64 {
    let stat = fs::read(folder.join("stat")).ok().and_then(|text| parse::stat(&text));
    stat.map_or(0, |stat| stat.start_ticks)
}
