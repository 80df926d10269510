//! Reads one process with its threads, and the children that it starts.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::PathBuf;

use super::parse;
use super::thread::{Keep, Sockets, Thread, inode};
use super::{Buffer, PolledFile, start_ticks, ticks_s};
use crate::row::{Column, Reading, Role};

/// The most threads of one process that are watched; a process with more is watched in part.
const MOST_THREADS: usize = 256;
/// The number of threads of one process whose files all stay open.
const KEPT_THREADS: usize = 32;
/// The most descriptors of a process that are searched for its sockets.
const MOST_DESCRIPTORS: usize = 4096;

/// A process that is watched.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) role: Role,
    pub(crate) pid: u32,
    /// The process's name and number, such as "nginx 4711".
    pub(crate) label: String,
    /// When it started, in clock ticks since the machine started.
    pub(crate) start_ticks: u64,
    pub(crate) threads: Vec<Thread>,
    /// Whether the process has more threads than can be watched.
    pub(crate) is_partly_watched: bool,
    folder: PathBuf,
    stat: PolledFile,
    statm: PolledFile,
    /// Readable by the owner only.
    io: Option<PolledFile>,
    page_bytes: u64,
}

impl Process {
    /// Starts to watch a process, with the threads that it has now.
    pub(crate) fn new(role: Role, pid: u32) -> io::Result<Self> {
        let folder = PathBuf::from(format!("/proc/{pid}"));
        let name = fs::read_to_string(folder.join("comm"))?;
        let mut process = Self {
            role,
            pid,
            label: format!("{} {pid}", name.trim_end()),
            start_ticks: start_ticks(&folder),
            threads: Vec::new(),
            is_partly_watched: false,
            stat: PolledFile::open(&folder.join("stat"))?,
            statm: PolledFile::open(&folder.join("statm"))?,
            io: PolledFile::open(&folder.join("io"))
                .ok()
                .filter(|io| io.read(&mut [0; super::BUFFER_BYTES]).is_some()),
            folder,
            page_bytes: rustix::param::page_size() as u64,
        };
        process.find_threads()?;
        Ok(process)
    }

    /// Starts to watch new threads, and drops those that have ended.
    pub(crate) fn find_threads(&mut self) -> io::Result<()> {
        let tids: HashSet<u32> = entries(&self.folder.join("task"))?.collect();
        self.threads.retain(|thread| tids.contains(&thread.tid));
        let known: HashSet<u32> = self.threads.iter().map(|thread| thread.tid).collect();
        let room = MOST_THREADS.saturating_sub(known.len());
        self.is_partly_watched = tids.len() > known.len() + room;
        let mut new: Vec<u32> = tids.difference(&known).copied().collect();
        new.sort_unstable();
        // The thread may have ended in between.
        for tid in new.into_iter().take(room) {
            let keep = if self.threads.len() < KEPT_THREADS { Keep::All } else { Keep::Time };
            self.threads.extend(Thread::new(self.pid, tid, keep).ok());
        }
        Ok(())
    }

    /// The processes that its threads have started and that still run.
    pub(crate) fn children(&self) -> Vec<u32> {
        let of = |thread: &Thread| fs::read(self.folder.join(format!("task/{}/children", thread.tid)));
        let texts = self.threads.iter().filter_map(|thread| of(thread).ok());
        texts.flat_map(|text| parse::numbers(&text).map(|pid| pid as u32).collect::<Vec<_>>()).collect()
    }

    /// The inodes of its sockets.
    pub(crate) fn sockets(&self) -> HashSet<u64> {
        let Ok(descriptors) = fs::read_dir(self.folder.join("fd")) else { return HashSet::new() };
        let links =
            descriptors.take(MOST_DESCRIPTORS).filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        links.filter_map(|link| inode(link.to_str()?)).collect()
    }

    /// Reads the process as a whole. `None` where it has ended.
    pub(crate) fn read(&self, buffer: &mut Buffer, reading: &mut Reading) -> Option<()> {
        let stat = parse::stat(self.stat.read(buffer)?)?;
        if parse::has_ended(&stat) {
            return None;
        }
        reading.set(Column::Cpu, ticks_s(stat.user + stat.system));
        reading.set(Column::User, ticks_s(stat.user));
        reading.set(Column::System, ticks_s(stat.system));
        reading.set(Column::EndedChildren, ticks_s(stat.ended_children));
        reading.set(Column::Threads, stat.threads as f64);
        reading.set(Column::MinorFaults, stat.minor_faults as f64);
        reading.set(Column::MajorFaults, stat.major_faults as f64);
        let resident = self.statm.read(buffer).and_then(|text| parse::numbers(text).nth(1));
        reading.put(Column::Memory, resident.map(|pages| (pages * self.page_bytes) as f64));
        if let Some(text) = self.io.as_ref().and_then(|io| io.read(buffer)) {
            let bytes = |name| parse::field(text, name).map(|bytes| bytes as f64);
            reading.put(Column::Read, bytes(b"rchar"));
            reading.put(Column::Written, bytes(b"wchar"));
            reading.put(Column::DiskRead, bytes(b"read_bytes"));
            reading.put(Column::DiskWritten, bytes(b"write_bytes"));
        }
        Some(())
    }

    /// Makes the expensive readings of each thread, and passes each to `row`.
    pub(crate) fn more(
        &mut self,
        buffer: &mut Buffer,
        back_ends: &HashSet<u64>,
        mut row: impl FnMut(&Thread, &Reading),
    ) {
        let sockets = Sockets { pid: self.pid, back_ends };
        for thread in &mut self.threads {
            let mut reading = Reading::default();
            if thread.time(buffer, &mut reading).is_some() {
                thread.more(buffer, &sockets, &mut reading);
                row(thread, &reading);
            }
        }
    }

    /// Whether the kernel refuses to show the system calls of its threads.
    pub(crate) fn hides_calls(&self) -> bool {
        fs::read(self.folder.join("syscall"))
            .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
    }

    /// Whether the files that only its owner may read are open.
    pub(crate) fn reports_io(&self) -> bool {
        self.io.is_some()
    }

    /// The cores that it may use, by its affinity mask.
    pub(crate) fn cores(&self) -> Option<u32> {
        let status = fs::read_to_string(self.folder.join("status")).ok()?;
        let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
        let digits = mask.trim().chars().filter_map(|digit| digit.to_digit(16));
        Some(digits.map(u32::count_ones).sum())
    }
}

/// The names in a folder that are numbers.
fn entries(folder: &std::path::Path) -> io::Result<impl Iterator<Item = u32>> {
    let names = fs::read_dir(folder)?;
    Ok(names.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}
