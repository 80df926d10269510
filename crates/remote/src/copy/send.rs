//! The sender: reads sources and sends their entries one after another, without waiting for an answer. Runs in a separate
//! thread, since files block.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{io, thread};

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, SeekFrom, Stat};
use rustix::io::Errno;

use crate::copy::digest::ContentHasher;
use crate::copy::failures::Failures;
use crate::copy::outbox::{Outbox, StreamClosed};
use crate::copy::partial;
use crate::copy::progress::Progress;
use crate::copy::protocol::{self, FileEnd, Message, Partial, SourcePath};
use crate::copy::source::{self, Source};
use crate::copy::stat::{kind, metadata};
use crate::path::{TreePath, shown};

/// Files whose further names are recognised as hard links, at most; those of others become their own files.
const MAX_LINKED: usize = 1 << 20;

/// What a sender needs.
pub(crate) struct Sending {
    /// Sources with their numbers on the command line.
    pub(crate) sources: Vec<(u16, Source)>,
    /// Sentences about sources that cannot be read.
    pub(crate) problems: Vec<String>,
    /// What the receiver has.
    pub(crate) partials: Vec<Partial>,
    /// Whether to count files and bytes.
    pub(crate) count: bool,
    pub(crate) progress: Progress,
    pub(crate) failures: Failures,
}

/// Sends all sources.
pub(crate) fn send(sending: Sending, outbox: &mut Outbox) -> Result<(), StreamClosed> {
    let (total, stop) = (OnceLock::new(), AtomicBool::new(false));
    thread::scope(|scope| {
        if sending.count {
            let sources = sending.sources.iter().map(|(_, source)| source);
            let count = || source::count(sources, || !stop.load(Ordering::Relaxed));
            // Without the thread there is no time left to show, and nothing else is lost.
            let counting = || _ = total.set(count());
            _ = thread::Builder::new().name("copy-count".into()).spawn_scoped(scope, counting);
        }
        let mut sender = Sender {
            sending: &sending,
            total: &total,
            outbox,
            entries: 0,
            linked: HashMap::new(),
            continued: vec![false; sending.partials.len()],
        };
        let sent = sender.send_all();
        stop.store(true, Ordering::Relaxed);
        sent
    })
}

struct Sender<'a> {
    sending: &'a Sending,
    /// Set by the thread that counts; taken when it was sent.
    total: &'a OnceLock<(u64, u64)>,
    outbox: &'a mut Outbox,
    /// Entries that were sent.
    entries: u64,
    /// The number of the entry of a file that has several names.
    linked: HashMap<(u64, u64), u64>,
    /// Whether a file continues the partial file of this number already.
    continued: Vec<bool>,
}

impl Sender<'_> {
    fn send_all(&mut self) -> Result<(), StreamClosed> {
        for text in &self.sending.problems {
            self.problem(text)?;
        }
        for (root, source) in &self.sending.sources {
            self.send_source(*root, source)?;
        }
        self.send_total()?;
        self.outbox.message(&Message::Done)?;
        self.outbox.flush()
    }

    fn send_source(&mut self, root: u16, source: &Source) -> Result<(), StreamClosed> {
        if source.is_folder() {
            return self.send_tree(root, source);
        }
        let sent = source.parent().and_then(|(folder, name)| {
            let stat = fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
            Ok((folder, name, kind(&stat)))
        });
        let place = SourcePath { root, path: TreePath::default() };
        match sent {
            Ok((folder, name, kind)) => self.send_entry(folder.as_fd(), name, kind, place),
            Err(error) => self.problem(&format!("cannot read a source: {error}")),
        }
    }

    /// Sends a folder with what is in it: its files first, then its folders.
    fn send_tree(&mut self, root: u16, source: &Source) -> Result<(), StreamClosed> {
        let mut folders = vec![TreePath::default()];
        while let Some(path) = folders.pop() {
            let read = source.open_folder(&path).and_then(|folder| {
                let stat = fs::fstat(&folder)?;
                Ok((source::entries(&folder)?, stat, folder))
            });
            let (entries, stat, folder) = match read {
                Ok(read) => read,
                Err(error) => {
                    self.problem(&format!("cannot read the folder {path}: {error}"))?;
                    continue;
                }
            };
            if !(path.is_empty() && source.is_content()) {
                let place = SourcePath { root, path: path.clone() };
                self.entry(&Message::Folder { place, metadata: metadata(&stat) })?;
            }
            let first = folders.len();
            for entry in entries {
                match TreePath::new(entry.name).and_then(|name| Ok((path.join(&name)?, name))) {
                    Ok((inner, _)) if entry.kind == FileType::Directory => folders.push(inner),
                    Ok((path, name)) => {
                        let place = SourcePath { root, path };
                        self.send_entry(folder.as_fd(), name.as_bytes(), entry.kind, place)?;
                    }
                    Err(error) => self.problem(&error.to_string())?,
                }
            }
            // The last is taken first.
            folders[first..].reverse();
        }
        Ok(())
    }

    fn send_entry(
        &mut self,
        folder: BorrowedFd<'_>,
        name: &[u8],
        kind: FileType,
        place: SourcePath,
    ) -> Result<(), StreamClosed> {
        self.send_total()?;
        let sent = match kind {
            FileType::RegularFile => match open(folder, name) {
                Ok((file, stat)) => return self.send_file(&file, &stat, name, place),
                Err(error) => Err(error),
            },
            FileType::Symlink => match read_link(folder, name) {
                Ok((stat, target)) => {
                    return self.entry(&Message::Symlink { place, metadata: metadata(&stat), target });
                }
                Err(error) => Err(error),
            },
            _ => Err(io::Error::other(
                "it is neither a file nor a folder nor a symbolic link, and was left out",
            )),
        };
        match sent {
            Ok(()) => Ok(()),
            Err(error) => self.problem(&format!("cannot read {}: {error}", described(&place, name))),
        }
    }

    fn send_file(
        &mut self,
        file: &OwnedFd,
        stat: &Stat,
        name: &[u8],
        place: SourcePath,
    ) -> Result<(), StreamClosed> {
        let has_links = stat.st_nlink > 1;
        if has_links {
            let inode = (stat.st_dev, stat.st_ino);
            if let Some(of) = self.linked.get(&inode) {
                return self.entry(&Message::HardLink { place, of: *of });
            }
            if self.linked.len() < MAX_LINKED {
                self.linked.insert(inode, self.entries);
            }
        }
        let (size, metadata) = (stat.st_size.cast_unsigned(), metadata(stat));
        let identity = protocol::identity(&place.path, size, metadata.modified);
        let resumes = self.matching(file, identity, size);
        let from = resumes.map_or(0, |number| self.sending.partials[usize::from(number)].length);
        self.sending.progress.add_resumed_bytes(from);
        let (number, described) = (self.entries, described(&place, name));
        self.entry(&Message::File { place, metadata, size, has_links, resumes })?;
        let end = self.send_content(file, from, stat, number, &described)?;
        if let FileEnd::Broken(text) = &end {
            self.sending.failures.add(text);
        }
        self.outbox.message(&Message::FileEnd(end))
    }

    /// The longest partial file of the receiver with which this file begins.
    fn matching(&mut self, file: &OwnedFd, identity: [u8; 8], size: u64) -> Option<u16> {
        let partials = &self.sending.partials;
        let mut candidates: Vec<usize> = (0..partials.len())
            .filter(|number| !self.continued[*number] && partials[*number].identity == identity)
            .filter(|number| partials[*number].length <= size)
            .collect();
        candidates.sort_by_key(|number| partials[*number].length);
        let lengths: Vec<u64> = candidates.iter().map(|number| partials[*number].length).collect();
        let digests = partial::digests(file, &lengths, &|| !self.outbox.is_closed()).ok()?;
        let begins_with = |(number, digest): &(usize, [u8; 32])| partials[*number].digest == *digest;
        let (number, _) = candidates.into_iter().zip(digests).rfind(begins_with)?;
        self.continued[number] = true;
        u16::try_from(number).ok()
    }

    /// Sends the bytes and holes of a file, and returns how its content ended.
    fn send_content(
        &mut self,
        file: &OwnedFd,
        from: u64,
        before: &Stat,
        number: u64,
        described: &str,
    ) -> Result<FileEnd, StreamClosed> {
        let size = before.st_size.cast_unsigned();
        // Blocks are counted in 512 bytes; a file that has all of them has no hole to look for.
        let may_have_holes = before.st_blocks.cast_unsigned().saturating_mul(512) < size;
        let broken = |what: &str| Ok(FileEnd::Broken(format!("{described} {what}; copy it again")));
        let mut hasher = ContentHasher::from_offset(from);
        while hasher.offset() < size {
            let begin = hasher.offset();
            let data = if may_have_holes { next_data(file, begin, size) } else { begin..size };
            if data.start > begin {
                hasher.hole(data.start - begin);
                self.outbox.message(&Message::Hole(data.start - begin))?;
                self.sending.progress.add_bytes(data.start - begin);
            }
            while hasher.offset() < data.end {
                if self.sending.failures.has(number) {
                    return Ok(FileEnd::Stopped);
                }
                match self.outbox.data(file, hasher.offset(), data.end - hasher.offset())? {
                    Ok([]) => return broken("became shorter while it was read"),
                    Ok(bytes) => {
                        hasher.data(bytes);
                        self.sending.progress.add_bytes(bytes.len() as u64);
                    }
                    Err(error) => return broken(&format!("could not be read: {error}")),
                }
                self.send_total()?;
            }
        }
        let state = |stat: &Stat| {
            (stat.st_size, stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec)
        };
        match fs::fstat(file) {
            Ok(after) if state(&after) == state(before) => Ok(FileEnd::Whole(hasher.finish())),
            _ => broken("changed while it was read"),
        }
    }

    fn entry(&mut self, message: &Message) -> Result<(), StreamClosed> {
        self.entries += 1;
        self.sending.progress.add_entry();
        self.outbox.message(message)
    }

    /// Reports something that is left out, to this side's user and to the peer's.
    fn problem(&mut self, text: &str) -> Result<(), StreamClosed> {
        self.sending.failures.add(text);
        self.outbox.message(&Message::Problem(text.into()))
    }

    /// Sends the total as soon as it is known.
    fn send_total(&mut self) -> Result<(), StreamClosed> {
        if self.sending.progress.total().is_none()
            && let Some((entries, bytes)) = self.total.get().copied()
        {
            self.sending.progress.set_total(entries, bytes);
            self.outbox.message(&Message::Total { entries, bytes })?;
        }
        Ok(())
    }
}

/// A file as errors name it.
fn described(place: &SourcePath, name: &[u8]) -> String {
    if place.path.is_empty() { shown(name).into_owned() } else { place.path.to_string() }
}

/// Opens a file that is neither a link nor a device, which opening could start.
fn open(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<(OwnedFd, Stat)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = fs::openat(folder, name, flags, Mode::empty())?;
    let stat = fs::fstat(&file)?;
    if kind(&stat) != FileType::RegularFile {
        return Err(io::Error::other("it is not a file any more"));
    }
    Ok((file, stat))
}

fn read_link(folder: BorrowedFd<'_>, name: &[u8]) -> io::Result<(Stat, Vec<u8>)> {
    let stat = fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok((stat, fs::readlinkat(folder, name, Vec::new())?.into_bytes()))
}

/// The next range of a sparse file that is data, at or after an offset; an empty one at the end where only a hole is left.
fn next_data(file: &OwnedFd, from: u64, size: u64) -> std::ops::Range<u64> {
    match fs::seek(file, SeekFrom::Data(from)) {
        Ok(start) => {
            let end = fs::seek(file, SeekFrom::Hole(start)).unwrap_or(size);
            // A hole that was made meanwhile reads as zeros, so that every step makes progress.
            if end > start { start.min(size)..end.min(size) } else { from..size }
        }
        Err(Errno::NXIO) => size..size,
        // The file system does not know of holes.
        Err(_) => from..size,
    }
}
