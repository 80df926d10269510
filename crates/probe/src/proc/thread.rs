//! Readings of one thread.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use super::parse;
use super::place::{Direction, ThreadActivity, by_kernel_function, found};
use super::{Buffer, PolledFile, start_ticks, ticks_s};
use crate::row::{Column, Reading, ThreadState};

/// A watched thread.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) tid: u32,
    /// The thread's name and number, such as "worker 4711".
    pub(crate) label: String,
    /// When it started, in clock ticks since the machine started.
    pub(crate) start_ticks: u64,
    folder: PathBuf,
    schedstat: PolledFile,
    /// The files for [`Thread::more`], kept open while there are few threads.
    kept: Vec<(&'static str, PolledFile)>,
    /// The times in its last row, if there was one.
    last_times: Option<[u64; 3]>,
}

impl Thread {
    /// Starts to watch a thread. With `keep`, the files that are read less often stay open as well.
    pub(crate) fn new(pid: u32, tid: u32, keep: Keep) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}/task/{tid}"));
        let schedstat = PolledFile::open(&folder.join("schedstat"))?;
        let name = fs::read_to_string(folder.join("comm"))?;
        let open = |name| Some((name, PolledFile::open(&folder.join(name)).ok()?));
        let kept = match keep {
            Keep::All => ["stat", "status", "syscall"].into_iter().filter_map(open).collect(),
            Keep::Time => Vec::new(),
        };
        Ok(Self {
            tid,
            label: format!("{} {tid}", name.trim_end()),
            start_ticks: start_ticks(&folder),
            folder,
            schedstat,
            kept,
            last_times: None,
        })
    }

    /// Reads its time on cores and without one. `None` where it has ended; otherwise whether anything has changed.
    pub(crate) fn time(&mut self, buffer: &mut Buffer, reading: &mut Reading) -> Option<bool> {
        let times = parse::schedstat(self.schedstat.read(buffer)?)?;
        let [cpu_ns, wait_ns, turns] = times;
        reading.set(Column::Cpu, cpu_ns as f64 / 1e9);
        reading.set(Column::RunQueueWait, wait_ns as f64 / 1e9);
        reading.set(Column::Turns, turns as f64);
        Some(self.last_times.replace(times) != Some(times))
    }

    /// Makes the expensive readings: times by mode, context switches, and its state. Omits what cannot be read.
    pub(crate) fn more(&self, buffer: &mut Buffer, sockets: &Sockets<'_>, reading: &mut Reading) {
        let mut state = 0;
        if let Some(stat) = self.read("stat", buffer).and_then(parse::stat) {
            reading.set(Column::User, ticks_s(stat.user));
            reading.set(Column::System, ticks_s(stat.system));
            state = stat.state;
        }
        if let Some(status) = self.read("status", buffer) {
            let switches = |name| parse::field(status, name).map(|count| count as f64);
            reading.put(Column::Voluntary, switches(b"voluntary_ctxt_switches"));
            reading.put(Column::Involuntary, switches(b"nonvoluntary_ctxt_switches"));
        }
        let Some(call) = self.read("syscall", buffer).and_then(parse::call) else {
            let function = self.read("wchan", buffer).and_then(|text| std::str::from_utf8(text).ok());
            reading.place = by_kernel_function(state, function.unwrap_or_default().trim());
            return;
        };
        reading.place = Some(match found(call) {
            // An uninterruptible wait is almost always one for a disk.
            ThreadActivity::At(ThreadState::Idle | ThreadState::Other) if state == b'D' => ThreadState::Disk,
            ThreadActivity::At(place) => place,
            ThreadActivity::Lock(address) => {
                reading.set(Column::LockAddress, address as f64);
                ThreadState::Lock
            }
            ThreadActivity::Transfer(direction, descriptor) => sockets.place(direction, descriptor),
        });
    }

    fn read<'b>(&self, name: &str, buffer: &'b mut Buffer) -> Option<&'b [u8]> {
        match self.kept.iter().find(|(kept, _)| *kept == name) {
            Some((_, file)) => file.read(buffer),
            None => PolledFile::open(&self.folder.join(name)).ok()?.read(buffer),
        }
    }
}

/// The files of a thread that stay open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// Every file is kept open.
    All,
    /// Only the file that every reading needs is kept open.
    Time,
}

/// The known sockets of a process.
pub(crate) struct Sockets<'a> {
    pub(crate) pid: u32,
    /// The inodes of connections that it opened to other servers.
    pub(crate) back_ends: &'a HashSet<u64>,
}

impl Sockets<'_> {
    /// The state of a thread that waits for a transfer on a descriptor.
    fn place(&self, direction: Direction, descriptor: u64) -> ThreadState {
        let Ok(behind) = fs::read_link(format!("/proc/{}/fd/{descriptor}", self.pid)) else {
            return ThreadState::Other;
        };
        let behind = behind.to_string_lossy();
        if let Some(inode) = inode(&behind) {
            return match direction {
                _ if self.back_ends.contains(&inode) => ThreadState::BackEnd,
                Direction::Read => ThreadState::Client,
                Direction::Write => ThreadState::Sending,
            };
        }
        if behind.starts_with('/') && !behind.starts_with("/dev/") {
            ThreadState::Disk
        } else {
            ThreadState::Idle
        }
    }
}

/// Parses the inode of "socket:[4711]".
pub(crate) fn inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}
