//! A file that is received: written next to its place, checked, and then given its name.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;

use crate::files::WINDOW;
use crate::protocol::MOST_PIECE;

/// The parts of a file that wait for the disk: those that the peer may send at once.
const MOST_PARTS: usize = 2 * (WINDOW as usize / MOST_PIECE);
/// The longest name that a file gets, in bytes. File systems allow 255, and a number may be added.
const LONGEST: usize = 200;
/// How many files of one name are distinguished by numbers.
const MOST_SAME: u32 = 10_000;

/// A file cannot be received.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum DownloadError {
    #[error("cannot write into {}: {source}", folder.display())]
    Folder { folder: PathBuf, source: io::Error },
    #[error("{} has {free} bytes left, but the file needs {size}; free some space", folder.display())]
    Space { folder: PathBuf, free: u64, size: u64 },
}

/// What the disk reports.
#[derive(Debug)]
pub(crate) enum Report {
    /// This many more bytes are written.
    Written { file: u64, bytes: u64 },
    /// The file is whole and has this path, or could not be written.
    Ended { file: u64, done: Result<PathBuf, String> },
}

enum Part {
    Bytes(Vec<u8>),
    Sum([u8; 32]),
}

/// A file that is being written, in a thread for that. Dropping it before its end removes what was written.
pub(crate) struct Download {
    parts: mpsc::Sender<Part>,
}

impl Download {
    /// Begins to write, where there is room.
    pub(crate) fn begin(
        file: u64,
        folder: &Path,
        name: &str,
        size: u64,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Result<Self, DownloadError> {
        let cannot = |source| DownloadError::Folder { folder: folder.to_owned(), source };
        fs::create_dir_all(folder).map_err(cannot)?;
        let space = rustix::fs::statvfs(folder).map_err(|error| cannot(error.into()))?;
        let free = space.f_bavail.saturating_mul(space.f_frsize);
        if free < size {
            return Err(DownloadError::Space { folder: folder.to_owned(), free, size });
        }
        let part = tempfile::Builder::new().prefix(".kendall-").suffix(".part").tempfile_in(folder);
        let part = part.map_err(cannot)?;
        let (parts, wanted) = mpsc::channel(MOST_PARTS);
        let (folder, name) = (folder.to_owned(), safe_name(name));
        spawn_blocking(move || {
            let written = |bytes| _ = reports.send(Report::Written { file, bytes });
            if let Some(done) = write(part, wanted, written, &folder, &name) {
                let done = done.map_err(|error| error.to_string());
                _ = reports.send(Report::Ended { file, done });
            }
        });
        Ok(Self { parts })
    }

    pub(crate) async fn write(&self, bytes: Vec<u8>) {
        // A thread that has failed has said so.
        _ = self.parts.send(Part::Bytes(bytes)).await;
    }

    pub(crate) async fn finish(&self, digest: [u8; 32]) {
        _ = self.parts.send(Part::Sum(digest)).await;
    }
}

/// Writes all parts, and gives the file its name; `None` where it is no longer wanted.
fn write(
    mut part: NamedTempFile,
    mut parts: mpsc::Receiver<Part>,
    written: impl Fn(u64),
    folder: &Path,
    name: &str,
) -> Option<io::Result<PathBuf>> {
    let mut hasher = blake3::Hasher::new();
    loop {
        match parts.blocking_recv()? {
            Part::Bytes(bytes) => {
                if let Err(error) = part.write_all(&bytes) {
                    return Some(Err(error));
                }
                hasher.update(&bytes);
                written(bytes.len() as u64);
            }
            Part::Sum(digest) if hasher.finalize() == digest => return Some(keep(part, folder, name)),
            Part::Sum(_) => {
                let why = "its bytes are not those that were sent: their BLAKE3 differ";
                return Some(Err(io::Error::other(why)));
            }
        }
    }
}

/// Gives a file its name, or the name with a number where there is one of that name.
fn keep(mut part: NamedTempFile, folder: &Path, name: &str) -> io::Result<PathBuf> {
    part.as_file().sync_all()?;
    for number in 1..=MOST_SAME {
        let path = folder.join(numbered(name, number));
        match part.persist_noclobber(&path) {
            Ok(_) => {
                fs::File::open(folder)?.sync_all()?;
                return Ok(path);
            }
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => part = error.file,
            Err(error) => return Err(error.error),
        }
    }
    Err(io::Error::other(format!("there are {MOST_SAME} files of that name")))
}

/// `report.pdf`, `report (2).pdf`, …
fn numbered(name: &str, number: u32) -> String {
    let (stem, extension) = split(name);
    match number {
        1 => name.to_owned(),
        _ => format!("{stem} ({number}){extension}"),
    }
}

/// The name without its extension, and the extension with its dot.
fn split(name: &str) -> (&str, &str) {
    name.rfind('.').filter(|at| *at > 0).map_or((name, ""), |at| name.split_at(at))
}

/// The name under which a file of a peer's is kept: no folder, no hidden file, nothing that a terminal would obey, and not too long.
pub fn safe_name(name: &str) -> String {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    let is_unsafe = |it: char| {
        it.is_control()
            || matches!(it, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let safe: String = last.chars().map(|it| if is_unsafe(it) { '_' } else { it }).collect();
    let safe = safe.trim().trim_end_matches('.');
    let safe = match safe.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None => safe.to_owned(),
    };
    let (stem, extension) = split(&safe);
    // What is too long for an extension is a part of the name.
    let extension = if extension.len() <= 20 { extension } else { "" };
    let stem = if extension.is_empty() { &safe } else { stem };
    let stem = &stem[..stem.floor_char_boundary(LONGEST - extension.len())];
    match stem {
        "" => "file".to_owned(),
        _ => format!("{stem}{extension}"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_peer_chooses_neither_folder_nor_hidden_file() {
        let cases = [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd", "passwd"),
            ("/etc/passwd", "passwd"),
            ("a\\b.txt", "b.txt"),
            (".bashrc", "_bashrc"),
            ("..", "file"),
            (".", "file"),
            ("", "file"),
            ("a/", "file"),
            ("x\0y\n\u{1b}[2J\u{202e}", "x_y__[2J_"),
            (" naïve 表.tar.gz ", "naïve 表.tar.gz"),
        ];
        for (name, safe) in cases {
            assert_eq!(safe_name(name), safe, "{name:?}");
        }
        let long = safe_name(&format!("{}.pdf", "表".repeat(100)));
        assert!(long.len() <= LONGEST && long.ends_with("表.pdf"), "{long}");
    }

    proptest! {
        #[test]
        fn any_name_is_that_of_a_file_in_the_folder(name: String) {
            let safe = safe_name(&name);
            let path = Path::new("folder").join(&safe);
            prop_assert_eq!(path.parent(), Some(Path::new("folder")));
            prop_assert_eq!(path.file_name().and_then(|it| it.to_str()), Some(safe.as_str()));
            prop_assert!(!safe.starts_with('.') && safe.len() <= LONGEST);
            prop_assert!(!safe.contains(['/', '\\', '\0']));
        }
    }

    #[test]
    fn a_file_of_that_name_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let part = || NamedTempFile::new_in(folder.path()).unwrap();
        let names = [(); 3].map(|()| keep(part(), folder.path(), "a.txt").unwrap());
        let names = names.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        assert_eq!(names, ["a.txt", "a (2).txt", "a (3).txt"]);
    }
}
