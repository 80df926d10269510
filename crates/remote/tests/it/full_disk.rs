//! A disk that is full.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::fixture::{EVERYTHING, Fixture, names};

/// A file system of 4 MB; unmounted when dropped.
struct SmallDisk<'a>(&'a Path);

impl<'a> SmallDisk<'a> {
    /// Mounts it, which only root can.
    fn mount(at: &'a Path) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=4m", "none"]).arg(at).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then_some(Self(at))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_full_disk_fails_the_file_that_does_not_fit_and_leaves_nothing_of_it() {
    let fixture = Fixture::new(EVERYTHING);
    let disk = fixture.path("served/disk");
    fs::create_dir(&disk).unwrap();
    let Some(_mounted) = SmallDisk::mount(&disk) else {
        return kendall_testbed::left_out("only root can mount a small disk");
    };
    let tree = fixture.path("here/tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), "a").unwrap();
    fs::write(tree.join("large"), vec![1; 32 << 20]).unwrap();
    fs::write(tree.join("z"), "z").unwrap();
    let report = fixture.upload(&tree, "disk").unwrap();
    assert_eq!(report.failures, ["cannot write tree/large: No space left on device (os error 28)"]);
    assert_eq!(report.entries, 3);
    assert_eq!(names(&disk), ["tree"]);
    assert_eq!(names(&disk.join("tree")), ["a", "z"]);
}
