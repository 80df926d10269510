//! The receiver: writes what a sender sends into the target folder. It does not trust the sender.
//!
//! Fed with bytes as they arrive, in its own thread, since files block.

use std::collections::HashMap;
use std::io;

use rustix::fs::{self, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use crate::copy::failures::Failures;
use crate::copy::incoming::Incoming;
use crate::copy::metadata::{apply, apply_to_link};
use crate::copy::partial::{self, PartialFile};
use crate::copy::progress::Progress;
use crate::copy::protocol::{self, CopyOptions, DATA, FileEnd, Message, Metadata, SourcePath};
use crate::copy::target::Target;
use crate::error::RemoteError;
use crate::frame::{Frame, FrameDecoder};
use crate::opening::{ALIVE, REFUSED, decode_refused};
use crate::path::TreePath;

/// Files that may get further names, at most: as many as a sender recognises.
const MAX_LINKED: usize = 1 << 20;
/// The bytes of their names, at most.
const MAX_LINKED_BYTES: usize = 256 << 20;
/// The name under which a link is made that then replaces something.
const LINK: &[u8] = b".kendall-partial.link";

/// What the receiver reports to the sender during the copy.
pub(crate) trait Answers {
    /// Sends a message; where the connection is lost, it is dropped.
    fn send(&mut self, message: &Message);
}

/// The receiver's side of a copy.
pub(crate) struct Receiver<A> {
    target: Target,
    options: CopyOptions,
    decoder: FrameDecoder,
    partials: Vec<Option<PartialFile>>,
    answers: A,
    progress: Progress,
    failures: Failures,
    /// The number of the next entry.
    next: u64,
    failed: u64,
    file: Option<Incoming>,
    /// Folders whose content may still come, each inside the one before: they get their times last.
    folders: Vec<(u64, TreePath, Metadata)>,
    /// Files that may get further names.
    linked: HashMap<u64, TreePath>,
    linked_bytes: usize,
    finished: bool,
}

impl<A: Answers> Receiver<A> {
    /// A receiver that has sent its partial files to the sender.
    pub(crate) fn new(
        target: Target,
        options: CopyOptions,
        partials: Vec<Option<PartialFile>>,
        answers: A,
        progress: Progress,
        failures: Failures,
    ) -> Self {
        Self {
            target,
            options,
            decoder: FrameDecoder::new(DATA),
            partials,
            answers,
            progress,
            failures,
            next: 0,
            failed: 0,
            file: None,
            folders: Vec::new(),
            linked: HashMap::new(),
            linked_bytes: 0,
            finished: false,
        }
    }

    /// Whether the sender has sent everything.
    pub(crate) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Takes the next bytes of the sender.
    ///
    /// # Errors
    /// Where the sender breaks the protocol, or refuses. That one file fails is not an error.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<(), RemoteError> {
        // Taken out while it lends bytes.
        let mut decoder = std::mem::replace(&mut self.decoder, FrameDecoder::new(DATA));
        let mut input = bytes;
        while let Some(frame) = decoder.next(&mut input)? {
            match frame {
                _ if self.finished => return Err(RemoteError::unexpected("after the end")),
                Frame::Data(piece) => self.data(piece)?,
                Frame::Whole { kind: ALIVE, .. } => {}
                Frame::Whole { kind: REFUSED, body } => {
                    return Err(RemoteError::refused(&decode_refused(body)?));
                }
                Frame::Whole { kind, body } => self.message(Message::decode(kind, body)?)?,
            }
        }
        self.decoder = decoder;
        Ok(())
    }

    /// The sender has finished. An incomplete file is kept where it is worth continuing.
    pub(crate) fn interrupted(&mut self) {
        if let Some(file) = self.file.take() {
            file.interrupt(&self.target.folder);
        }
        self.leave_folders(None);
    }

    fn message(&mut self, message: Message) -> Result<(), RemoteError> {
        match message {
            Message::Total { entries, bytes } => {
                self.progress.set_total(entries, bytes);
                return Ok(());
            }
            Message::Problem(text) => {
                self.failures.add(&text);
                return Ok(());
            }
            Message::Hole(length) => return self.hole(length),
            Message::FileEnd(end) => return self.file_end(end),
            _ if self.file.is_some() => return Err(RemoteError::unexpected("within a file")),
            Message::Done => {
                self.done();
                return Ok(());
            }
            _ => {}
        }
        let number = self.next;
        self.next += 1;
        self.progress.add_entry();
        match message {
            Message::Folder { place, metadata } => {
                self.entry(number, &place, |receiver, path| receiver.folder(number, path, metadata))
            }
            Message::File { place, metadata, size, has_links, resumes } => {
                self.begin_file(number, &place, metadata, size, has_links, resumes)?;
            }
            Message::Symlink { place, metadata, target } => {
                self.entry(number, &place, |receiver, path| receiver.symlink(path, &metadata, &target))
            }
            Message::HardLink { place, of } => {
                self.entry(number, &place, |receiver, path| receiver.hard_link(path, of));
            }
            _ => return Err(RemoteError::unexpected("of the other direction")),
        }
        Ok(())
    }

    /// Does what an entry asks for, and reports it where that fails.
    fn entry(
        &mut self,
        number: u64,
        place: &SourcePath,
        make: impl FnOnce(&mut Self, &TreePath) -> io::Result<()>,
    ) {
        match self.target.path(place) {
            Ok(path) => {
                self.leave_folders(Some(&path));
                if let Err(error) = make(self, &path) {
                    self.fail(number, &format!("cannot write {path}: {error}"));
                }
            }
            Err(error) => self.fail(number, &error.to_string()),
        }
    }

    fn fail(&mut self, entry: u64, text: &str) {
        self.failed += 1;
        self.failures.add(text);
        self.answers.send(&Message::Failed { entry, text: text.into() });
    }

    fn folder(&mut self, number: u64, path: &TreePath, metadata: Metadata) -> io::Result<()> {
        let (parent, name) = self.target.folder.parent(path)?;
        match fs::mkdirat(parent, name, Mode::RWXU) {
            Ok(()) => {}
            Err(Errno::EXIST) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let folder = fs::openat(parent, name, flags, Mode::empty())?;
                let mode = Mode::from_raw_mode(fs::fstat(&folder)?.st_mode & 0o7777);
                // Its own bits come when everything is in it.
                if !mode.contains(Mode::RWXU) {
                    fs::fchmod(&folder, mode | Mode::RWXU)?;
                }
            }
            Err(error) => return Err(error.into()),
        }
        self.folders.push((number, path.clone(), metadata));
        Ok(())
    }

    /// Gives folders their metadata that this path is not in; all of them at the end.
    fn leave_folders(&mut self, for_path: Option<&TreePath>) {
        while let Some((_, folder, _)) = self.folders.last()
            && for_path.is_none_or(|path| !path.is_within(folder) || path == folder)
        {
            let (number, path, metadata) = self.folders.pop().expect("it was just there");
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let applied = self
                .target
                .folder
                .open_at(&path, flags)
                .and_then(|folder| apply(&folder, &metadata, self.options));
            if let Err(error) = applied {
                self.fail(number, &format!("cannot set the permissions and times of {path}: {error}"));
            }
        }
    }

    fn begin_file(
        &mut self,
        number: u64,
        place: &SourcePath,
        metadata: Metadata,
        size: u64,
        has_links: bool,
        resumes: Option<u16>,
    ) -> Result<(), RemoteError> {
        let held = match resumes {
            None => None,
            Some(number) => {
                let held = self.partials.get_mut(usize::from(number)).and_then(Option::take);
                let held = held.filter(|held| held.offer.length <= size);
                Some(held.ok_or_else(|| {
                    RemoteError::unexpected("continues a partial file that was not offered")
                })?)
            }
        };
        let offset = held.as_ref().map_or(0, |held| held.offer.length);
        self.progress.add_resumed_bytes(offset);
        let path = match self.target.path(place) {
            Ok(path) => path,
            Err(error) => {
                self.fail(number, &error.to_string());
                self.file = Some(Incoming::failed(number, size, offset));
                return Ok(());
            }
        };
        self.leave_folders(Some(&path));
        let name = partial::name(&path, protocol::identity(&place.path, size, metadata.modified));
        let folder = &self.target.folder;
        let file = match held {
            Some(held) => held.continued(folder, &name),
            None => partial::create(folder, &name),
        };
        match file {
            Ok(file) => {
                if has_links && self.linked.len() < MAX_LINKED && self.linked_bytes < MAX_LINKED_BYTES {
                    self.linked_bytes += path.as_bytes().len();
                    self.linked.insert(number, path.clone());
                }
                self.file = Some(Incoming::new(number, path, name, file, metadata, size, offset));
            }
            Err(error) => {
                let text = match error.kind() {
                    io::ErrorKind::WouldBlock => {
                        format!("another copy is writing {path}: wait until it is done")
                    }
                    _ => format!("cannot write {path}: {error}"),
                };
                self.fail(number, &text);
                self.file = Some(Incoming::failed(number, size, offset));
            }
        }
        Ok(())
    }

    fn data(&mut self, piece: &[u8]) -> Result<(), RemoteError> {
        let file = self.file.as_mut().ok_or_else(|| RemoteError::unexpected("data without a file"))?;
        self.progress.add_bytes(piece.len() as u64);
        if let Some(error) = file.data(piece, &self.target.folder)? {
            let (number, text) = (file.number(), error);
            self.fail(number, &text);
        }
        Ok(())
    }

    fn hole(&mut self, length: u64) -> Result<(), RemoteError> {
        let file = self.file.as_mut().ok_or_else(|| RemoteError::unexpected("a hole without a file"))?;
        self.progress.add_bytes(length);
        file.hole(length)
    }

    fn file_end(&mut self, end: FileEnd) -> Result<(), RemoteError> {
        let mut file = self.file.take().ok_or_else(|| RemoteError::unexpected("the end of no file"))?;
        let number = file.number();
        match end {
            FileEnd::Whole(digest) => {
                if let Err(text) = file.complete(&digest, &mut self.target.folder, self.options) {
                    self.linked.remove(&number);
                    self.fail(number, &text);
                } else {
                    partial::remove_others(&self.target.folder, file.name(), &self.partials);
                }
            }
            FileEnd::Broken(text) => {
                file.discard(&self.target.folder);
                self.linked.remove(&number);
                self.failed += 1;
                self.failures.add(&text);
            }
            FileEnd::Stopped => {
                self.linked.remove(&number);
                file.discard(&self.target.folder);
            }
        }
        Ok(())
    }

    fn symlink(&mut self, path: &TreePath, metadata: &Metadata, target: &[u8]) -> io::Result<()> {
        let options = self.options;
        let (parent, name) = self.target.folder.parent(path)?;
        match fs::symlinkat(target, parent, name) {
            Ok(()) => {
                apply_to_link(parent, name, metadata, options)?;
            }
            Err(Errno::EXIST) => {
                let temporary = link_name(path);
                let folder =
                    self.target.folder.open_at(&TreePath::default(), OFlags::PATH | OFlags::DIRECTORY)?;
                fs::symlinkat(target, &folder, &temporary[..])?;
                let replaced = apply_to_link(&folder, &temporary, metadata, options).and_then(|()| {
                    let (parent, name) = self.target.folder.parent(path)?;
                    Ok(fs::renameat(&folder, &temporary[..], parent, name)?)
                });
                remove_unless_replaced(&folder, &temporary, replaced)?;
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn hard_link(&mut self, path: &TreePath, of: u64) -> io::Result<()> {
        let unknown = || io::Error::other("the file that it links to failed, or there are too many links");
        let earlier = self.linked.get(&of).ok_or_else(unknown)?;
        let (source_parent, source) = earlier.split_last().expect("a file has a name");
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let source_parent = self.target.folder.open_at(&source_parent, flags)?;
        let source = source.to_vec();
        let (parent, name) = self.target.folder.parent(path)?;
        match fs::linkat(&source_parent, &source[..], parent, name, AtFlags::empty()) {
            Err(Errno::EXIST) => {
                let temporary = link_name(path);
                let folder = self.target.folder.open_at(&TreePath::default(), flags)?;
                fs::linkat(&source_parent, &source[..], &folder, &temporary[..], AtFlags::empty())?;
                let (parent, name) = self.target.folder.parent(path)?;
                let replaced = fs::renameat(&folder, &temporary[..], parent, name).map_err(Into::into);
                // Renaming does nothing where both names are of the same file already.
                _ = fs::unlinkat(&folder, &temporary[..], AtFlags::empty());
                replaced
            }
            linked => Ok(linked?),
        }
    }

    fn done(&mut self) {
        self.leave_folders(None);
        if self.options.sync
            && let Err(error) = fs::syncfs(&self.target.folder)
        {
            self.fail(self.next, &format!("the disk has not confirmed that it has everything: {error}"));
        }
        self.finished = true;
        let entries = self.next - self.failed.min(self.next);
        self.answers.send(&Message::Finished { entries, failed: self.failed });
    }
}

/// The name of a link until it replaces something.
fn link_name(path: &TreePath) -> Vec<u8> {
    let digest = blake3::hash(path.as_bytes()).to_hex();
    [LINK, b".", &digest.as_bytes()[..16], format!(".{}", std::process::id()).as_bytes()].concat()
}

fn remove_unless_replaced(
    folder: &impl std::os::fd::AsFd,
    name: &[u8],
    replaced: io::Result<()>,
) -> io::Result<()> {
    if replaced.is_err() {
        _ = fs::unlinkat(folder, name, AtFlags::empty());
    }
    replaced
}
