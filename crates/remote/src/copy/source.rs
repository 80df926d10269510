//! The sources of a copy, and the folders in them.

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, FileType, OFlags, Stat};

use crate::copy::folder::Folder;
use crate::copy::partial;
use crate::copy::protocol::Wanted;
use crate::copy::stat::{kind, size};
use crate::error::RemoteError;
use crate::path::{TreePath, is_name};

/// One source of a copy.
#[derive(Debug)]
pub(crate) struct Source {
    folder: Folder,
    /// The source within the folder; empty where its content is copied.
    inner: TreePath,
}

/// Something in a folder.
pub(crate) struct FolderEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) kind: FileType,
}

impl Source {
    /// A source that a user of this machine names. Links on the way to it are followed, itself not.
    pub(crate) fn local(path: &Path) -> Result<Self, RemoteError> {
        let failed = || RemoteError::file("read", path);
        // `file_name` has none for paths that end in `..`, and drops `.` at the end, which means the content.
        let bytes = path.as_os_str().as_encoded_bytes();
        let content = path.file_name().is_none() || bytes.ends_with(b"/.");
        if content {
            return Ok(Self { folder: Folder::open(path).map_err(failed())?, inner: TreePath::default() });
        }
        let name = path.file_name().expect("it was just checked");
        let parent =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        let source = Self {
            folder: Folder::open(parent).map_err(failed())?,
            inner: TreePath::new(name.as_encoded_bytes())?,
        };
        source.stat(&TreePath::default()).map_err(failed())?;
        Ok(source)
    }

    /// A source in a served folder.
    pub(crate) fn served(served: &Folder, wanted: &Wanted) -> std::io::Result<Self> {
        let (path, last) = (&wanted.path, wanted.path.split_last());
        let Some((parent, name)) = last.filter(|_| !wanted.is_content) else {
            return Ok(Self { folder: served.inner(path)?, inner: TreePath::default() });
        };
        let inner = TreePath::new(name).map_err(std::io::Error::other)?;
        let source = Self { folder: served.inner(&parent)?, inner };
        source.stat(&TreePath::default())?;
        Ok(source)
    }

    /// The last name of the source; empty where its content is copied.
    pub(crate) fn name(&self) -> &[u8] {
        self.inner.as_bytes()
    }

    /// Whether the content of a folder is copied, and not the folder.
    pub(crate) fn is_content(&self) -> bool {
        self.inner.is_empty()
    }

    /// Whether the source is a folder.
    pub(crate) fn is_folder(&self) -> bool {
        self.is_content()
            || self.stat(&TreePath::default()).is_ok_and(|stat| kind(&stat) == FileType::Directory)
    }

    /// What is known of something in the source, not following a link.
    pub(crate) fn stat(&self, path: &TreePath) -> std::io::Result<Stat> {
        let path = self.inner.join(path).map_err(std::io::Error::other)?;
        let Some((parent, name)) = path.split_last() else { return Ok(fs::fstat(&self.folder)?) };
        let parent = self.folder.open_at(&parent, OFlags::PATH | OFlags::DIRECTORY)?;
        Ok(fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW)?)
    }

    /// The folder that holds the source, and its name there.
    pub(crate) fn parent(&self) -> std::io::Result<(OwnedFd, &[u8])> {
        let parent = self.folder.open_at(&TreePath::default(), OFlags::PATH | OFlags::DIRECTORY)?;
        Ok((parent, self.inner.as_bytes()))
    }

    /// Opens a folder in the source, to read its entries.
    pub(crate) fn open_folder(&self, path: &TreePath) -> std::io::Result<OwnedFd> {
        let path = self.inner.join(path).map_err(std::io::Error::other)?;
        self.folder.open_at(&path, OFlags::RDONLY | OFlags::DIRECTORY)
    }
}

/// The entries of a folder by name, partial files of other copies left out.
pub(crate) fn entries(folder: &OwnedFd) -> std::io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !is_name(name) || partial::is_partial(name) {
            continue;
        }
        let kind = match entry.file_type() {
            // Some file systems do not know it.
            FileType::Unknown => fs::statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)
                .map_or(FileType::Unknown, |stat| kind(&stat)),
            kind => kind,
        };
        entries.push(FolderEntry { name: name.to_vec(), kind });
    }
    entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(entries)
}

/// Counts entries and bytes, for the time left. Stops early where `go_on` says so.
pub(crate) fn count<'a>(sources: impl Iterator<Item = &'a Source>, go_on: impl Fn() -> bool) -> (u64, u64) {
    let (mut total_entries, mut bytes) = (0, 0);
    for source in sources {
        if !source.is_folder() {
            total_entries += 1;
            bytes += source.stat(&TreePath::default()).map_or(0, |stat| size(&stat));
            continue;
        }
        total_entries += u64::from(!source.is_content());
        let mut folders = vec![TreePath::default()];
        while let Some(path) = folders.pop() {
            let Ok(folder) = source.open_folder(&path) else { continue };
            for entry in entries(&folder).unwrap_or_default() {
                total_entries += 1;
                let inner = TreePath::new(entry.name).and_then(|name| path.join(&name));
                match (entry.kind, inner) {
                    (FileType::Directory, Ok(inner)) => folders.push(inner),
                    (FileType::RegularFile, Ok(inner)) => {
                        let (_, name) = inner.split_last().expect("it has a name");
                        let stat = fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW);
                        bytes += stat.map_or(0, |stat| size(&stat));
                    }
                    _ => {}
                }
            }
            if !go_on() {
                return (total_entries, bytes);
            }
        }
    }
    (total_entries, bytes)
}
