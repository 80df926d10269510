//! Random trees of files, and what a copy has to keep of a tree.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use proptest::collection::vec;
use proptest::prelude::*;

/// Something in a folder.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Bytes at offsets; what is between them is a hole.
    File {
        pieces: Vec<(u32, Vec<u8>)>,
        mode: u32,
        modified_ns: u64,
    },
    Folder {
        children: Vec<(Vec<u8>, Self)>,
        mode: u32,
        modified_ns: u64,
    },
    Symlink {
        target: Vec<u8>,
    },
    /// Another name of the first file of the tree.
    HardLink,
}

fn name() -> impl Strategy<Value = Vec<u8>> {
    // Any bytes but those that separate and end names, mostly short; `.` and `..` are taken by every folder.
    let byte = any::<u8>().prop_map(|byte| if matches!(byte, 0 | b'/') { b'x' } else { byte });
    vec(byte, 1..12).prop_map(|name| if matches!(&name[..], b"." | b"..") { b"dots".to_vec() } else { name })
}

fn file() -> impl Strategy<Value = Node> {
    let piece = (0..3_000_000_u32, vec(any::<u8>(), 0..3000));
    (vec(piece, 0..4), 0..0o1000_u32, any::<u32>()).prop_map(|(pieces, mode, time)| Node::File {
        pieces,
        mode: mode | 0o400,
        modified_ns: u64::from(time) * 999_999_937,
    })
}

pub(crate) fn folder() -> impl Strategy<Value = Node> {
    let leaf = prop_oneof![
        6 => file(),
        1 => vec(1..=255_u8, 1..30).prop_map(|target| Node::Symlink { target }),
        1 => Just(Node::HardLink),
    ];
    let folder = |children, mode: u32, time: u32| Node::Folder {
        children,
        mode: mode | 0o500,
        modified_ns: u64::from(time) * 999_999_937,
    };
    let inner = leaf.prop_recursive(4, 24, 6, move |node| {
        (vec((name(), node), 0..6), 0..0o1000_u32, any::<u32>())
            .prop_map(move |(children, mode, time)| folder(children, mode, time))
    });
    (vec((name(), inner), 0..7), any::<u32>()).prop_map(move |(children, time)| folder(children, 0o755, time))
}

/// Makes a tree on the disk. Names that occur twice in a folder are left out.
pub(crate) fn make(path: &Path, node: &Node, first: &mut Option<std::path::PathBuf>) {
    match node {
        Node::File { pieces, mode, modified_ns } => {
            let file = File::create(path).unwrap();
            for (offset, bytes) in pieces {
                file.write_all_at(bytes, u64::from(*offset)).unwrap();
            }
            file.set_permissions(fs::Permissions::from_mode(*mode)).unwrap();
            file.set_modified(UNIX_EPOCH + Duration::from_nanos(*modified_ns)).unwrap();
            first.get_or_insert_with(|| path.to_owned());
        }
        Node::Folder { children, mode, modified_ns } => {
            fs::create_dir(path).unwrap();
            for (name, child) in children {
                let path = path.join(OsStr::from_bytes(name));
                if path.symlink_metadata().is_err() {
                    make(&path, child, first);
                }
            }
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
            File::open(path).unwrap().set_modified(UNIX_EPOCH + Duration::from_nanos(*modified_ns)).unwrap();
        }
        Node::Symlink { target } => symlink(OsStr::from_bytes(target), path).unwrap(),
        Node::HardLink => {
            if let Some(first) = first {
                fs::hard_link(first, path).unwrap();
            }
        }
    }
}

/// What a copy keeps of an entry: type and permissions, times, content or target, other names, and about how much disk it
/// takes, in KiB.
type EntryContent = (u32, (i64, i64), Vec<u8>, Vec<Vec<u8>>, u64);

/// What a copy keeps of a tree, by path.
pub(crate) fn kept(root: &Path) -> BTreeMap<Vec<u8>, EntryContent> {
    let (mut kept, mut inodes) = (BTreeMap::new(), BTreeMap::<u64, Vec<Vec<u8>>>::new());
    let mut paths = vec![root.to_owned()];
    while let Some(path) = paths.pop() {
        let metadata = path.symlink_metadata().unwrap();
        let relative = path.strip_prefix(root).unwrap().as_os_str().as_bytes().to_vec();
        let content = if metadata.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec()
        } else {
            fs::read(&path).unwrap()
        };
        if metadata.is_file() {
            inodes.entry(metadata.ino()).or_default().push(relative.clone());
        }
        let times = (metadata.mtime(), metadata.mtime_nsec());
        // In units of 64 kB: the file system also counts its metadata blocks, more of them where a file is fragmented.
        let disk = if metadata.is_file() { metadata.blocks() / 128 } else { 0 };
        kept.insert(relative, (metadata.mode(), times, content, Vec::new(), disk));
    }
    for mut group in inodes.into_values() {
        group.sort();
        for name in &group {
            kept.get_mut(name).unwrap().3.clone_from(&group);
        }
    }
    kept
}
