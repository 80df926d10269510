//! The folder of one case: what it may read and write, and what must stay as it is.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use kendall_testbed::{TempDir, tempdir};
use rustix::fs::{CWD, FileType, Mode, mknodat};

/// The content of files that no case may read out to others or change.
pub(super) const GUARDED: &str = "gu4rded-content";

/// A folder with `here`, where the program runs, `home`, `tmp`, and `guard`, which no argument names.
pub(super) struct World {
    folder: TempDir,
}

/// What a path is, and a digest of its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Entry {
    Folder,
    File(u64),
    Other,
}

pub(super) type Snapshot = BTreeMap<PathBuf, Entry>;

impl World {
    /// A world whose `here` has copies of prepared files, and special ones.
    pub(super) fn new(prepared: &Path) -> Self {
        let mut world = Self { folder: tempdir().unwrap() };
        // The folder of a case that is repeated stays, to be looked into.
        world.folder.disable_cleanup(env::var("KENDALL_FAULTS_CASE").is_ok_and(|case| !case.is_empty()));
        for name in ["here", "here/folder", "home", "tmp", "guard", "out"] {
            fs::create_dir_all(world.path(name)).unwrap();
        }
        fs::write(world.path("guard/file"), GUARDED).unwrap();
        copy(prepared, &world.here());
        fs::write(world.path("here/folder/file"), "x").unwrap();
        fs::write(world.path("here/empty"), "").unwrap();
        fs::write(world.path("here/binary"), (0..=255).cycle().take(5000).collect::<Vec<u8>>()).unwrap();
        symlink("loop", world.path("here/loop")).unwrap();
        symlink("nowhere", world.path("here/dangling")).unwrap();
        symlink("notes", world.path("here/link")).unwrap();
        mknodat(CWD, world.path("here/fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        world
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where the program runs.
    pub(super) fn here(&self) -> PathBuf {
        self.path("here")
    }

    /// All that is there now, except what the program printed.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut entries = Snapshot::new();
        for name in ["here", "home", "tmp", "guard"] {
            add(&self.path(name), Path::new(name), &mut entries);
        }
        entries
    }

    /// Whether a file that the case wrote has these bytes.
    pub(super) fn holder_of(&self, bytes: &[u8], before: &Snapshot, now: &Snapshot) -> Option<PathBuf> {
        let changed = now
            .iter()
            .filter(|(path, entry)| matches!(entry, Entry::File(_)) && before.get(*path) != Some(*entry));
        let mut paths = changed.map(|(path, _)| path);
        paths
            .find(|path| contains(&fs::read(self.folder.path().join(path)).unwrap_or_default(), bytes))
            .cloned()
    }
}

pub(super) fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// Copies a folder of plain files into one that is there.
pub(super) fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir_all(&target).unwrap();
            fs::set_permissions(&target, entry.metadata().unwrap().permissions()).unwrap();
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn add(path: &Path, name: &Path, entries: &mut Snapshot) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    let kind = metadata.file_type();
    let entry = if kind.is_dir() {
        for child in fs::read_dir(path).unwrap().map(Result::unwrap) {
            add(&child.path(), &name.join(child.file_name()), entries);
        }
        Entry::Folder
    } else if kind.is_file() {
        let mut hasher = DefaultHasher::new();
        fs::read(path).unwrap_or_default().hash(&mut hasher);
        Entry::File(hasher.finish())
    } else {
        debug_assert!(kind.is_symlink() || kind.is_fifo() || kind.is_socket());
        Entry::Other
    };
    entries.insert(name.to_owned(), entry);
}
