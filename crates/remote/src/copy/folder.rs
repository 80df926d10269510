//! A folder that no path leaves: entries are opened relative to its descriptor, and symbolic links on the way are never
//! followed.
//!
//! The kernel sees to that (`openat2` with `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`, since Linux 5.6). Where it does not
//! have the call, or a filter forbids it, names are opened one after another, none of them through a link.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{self, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::path::TreePath;

/// How often an `openat2` is repeated that a rename at the same time has disturbed.
const RETRIES: usize = 32;

/// A folder, by its descriptor.
#[derive(Debug)]
pub(crate) struct Folder {
    fd: OwnedFd,
    /// Set once the kernel has refused `openat2`.
    by_names: AtomicBool,
    /// The folder that was opened last, since most files are in the same folder as the one before.
    last: Option<(TreePath, OwnedFd)>,
}

impl Folder {
    /// Opens a folder by a path of this machine's user, whose links are followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self::new(fs::openat(CWD, path, flags, Mode::empty())?))
    }

    fn new(fd: OwnedFd) -> Self {
        Self { fd, by_names: AtomicBool::new(false), last: None }
    }

    /// A folder inside.
    pub(crate) fn inner(&self, path: &TreePath) -> io::Result<Self> {
        let inner = Self::new(self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY)?);
        inner.by_names.store(self.by_names.load(Ordering::Relaxed), Ordering::Relaxed);
        Ok(inner)
    }

    /// Opens something inside, itself not a link.
    pub(crate) fn open_at(&self, path: &TreePath, flags: OFlags) -> io::Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if path.is_empty() {
            return Ok(fs::openat(&self.fd, ".", flags, Mode::empty())?);
        }
        if !self.by_names.load(Ordering::Relaxed) {
            match self.open_beneath(path, flags) {
                // A filter for system calls that does not know the call refuses it with EPERM.
                Err(Errno::NOSYS | Errno::PERM) => self.by_names.store(true, Ordering::Relaxed),
                opened => return Ok(opened?),
            }
        }
        self.open_by_names(path, flags)
    }

    fn open_beneath(&self, path: &TreePath, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..RETRIES {
            match fs::openat2(&self.fd, path.as_bytes(), flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }

    fn open_by_names(&self, path: &TreePath, flags: OFlags) -> io::Result<OwnedFd> {
        let on_the_way = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut names = path.names().peekable();
        let mut at: Option<OwnedFd> = None;
        while let Some(name) = names.next() {
            let flags = if names.peek().is_some() { on_the_way } else { flags };
            let folder = at.as_ref().map_or_else(|| self.fd.as_fd(), AsFd::as_fd);
            at = Some(fs::openat(folder, name, flags, Mode::empty())?);
        }
        at.ok_or_else(|| Errno::NOENT.into())
    }

    /// The folder that holds something inside, and its name there.
    ///
    /// The empty path has no name: it is refused.
    pub(crate) fn parent<'p>(&mut self, path: &'p TreePath) -> io::Result<(BorrowedFd<'_>, &'p [u8])> {
        let cut = path.as_bytes().iter().rposition(|byte| *byte == b'/');
        let Some(cut) = cut else {
            let name = path.as_bytes();
            return if name.is_empty() { Err(Errno::INVAL.into()) } else { Ok((self.fd.as_fd(), name)) };
        };
        let (folder, name) = (&path.as_bytes()[..cut], &path.as_bytes()[cut + 1..]);
        if self.last.as_ref().is_none_or(|(last, _)| last.as_bytes() != folder) {
            let (folder, _) = path.split_last().expect("the path has a slash");
            let fd = self.open_at(&folder, OFlags::PATH | OFlags::DIRECTORY)?;
            self.last = Some((folder, fd));
        }
        let (_, fd) = self.last.as_ref().expect("it was just set");
        Ok((fd.as_fd(), name))
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs as std_fs;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> TreePath {
        TreePath::new(text).unwrap()
    }

    /// A folder with a file in it, links that lead out of it, and a file outside.
    fn with_links() -> tempfile::TempDir {
        let outer = tempfile::tempdir().unwrap();
        std_fs::create_dir_all(outer.path().join("served/inner")).unwrap();
        std_fs::create_dir(outer.path().join("secrets")).unwrap();
        std_fs::write(outer.path().join("secrets/secret"), "secret").unwrap();
        std_fs::write(outer.path().join("served/inner/file"), "file").unwrap();
        symlink("../secrets", outer.path().join("served/relative")).unwrap();
        symlink(outer.path().join("secrets"), outer.path().join("served/absolute")).unwrap();
        symlink("inner", outer.path().join("served/inside")).unwrap();
        symlink("/proc/self/root", outer.path().join("served/magic")).unwrap();
        outer
    }

    #[test]
    fn no_link_is_followed_with_and_without_openat2() {
        let outer = with_links();
        for by_names in [false, true] {
            let mut folder = Folder::open(&outer.path().join("served")).unwrap();
            folder.by_names.store(by_names, Ordering::Relaxed);
            assert!(folder.open_at(&path("inner/file"), OFlags::RDONLY).is_ok());
            assert!(folder.inner(&path("inner")).unwrap().open_at(&path("file"), OFlags::RDONLY).is_ok());
            for bad in ["relative/secret", "absolute/secret", "inside/file", "relative", "magic/etc"] {
                assert!(folder.open_at(&path(bad), OFlags::RDONLY).is_err(), "{bad}");
                assert!(folder.parent(&path(&format!("{bad}/new"))).is_err(), "{bad}");
            }
            assert!(folder.parent(&path("")).is_err());
            assert_eq!(folder.parent(&path("inner/new")).unwrap().1, b"new");
        }
    }
}
