//! The folder in which the commands of a page run.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use kendall_testbed::{TempDir, tempdir};

use crate::root;

/// A folder with what commands of pages read: the repository's examples, and its experiments with two repeats of half a second.
///
/// # Panics
/// Where it cannot be written.
pub fn folder() -> TempDir {
    let folder = tempdir().expect("there is a place for files");
    symlink(root().join("examples"), folder.path().join("examples")).expect("the folder is new");
    shorten(&root().join("experiments"), &folder.path().join("experiments"));
    folder
}

fn shorten(from: &Path, to: &Path) {
    fs::create_dir(to).expect("the folder is new");
    for path in fs::read_dir(from).expect("it is a folder").map(|entry| entry.expect("it can be read").path())
    {
        let copy = to.join(path.file_name().expect("it has a name"));
        if path.is_dir() {
            shorten(&path, &copy);
            continue;
        }
        let short = |line: &str| match line.split_once(" = ") {
            Some(("repeats", _)) => "repeats = 2\n".to_owned(),
            Some(("duration", _)) => "duration = \"500ms\"\n".to_owned(),
            Some(("warmup", time)) if time != "\"auto\"" => "warmup = \"100ms\"\n".to_owned(),
            _ => format!("{line}\n"),
        };
        let text = fs::read_to_string(&path).expect("experiments are text");
        fs::write(copy, text.lines().map(short).collect::<String>()).expect("the folder takes files");
    }
}
