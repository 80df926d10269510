//! Names of generated code, as the program itself writes them: `/tmp/perf-PID.map`, in the format that perf reads
//! (linux/tools/perf/Documentation/jit-interface.txt). Python, Node, Java and .NET write it when configured to.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};

/// The most bytes of a map that are read.
const MOST_BYTES: u64 = 64 << 20;

/// The names of pieces of code, by address.
#[derive(Debug, Default)]
pub(crate) struct PerfMap {
    /// Start, end and name, ordered by start.
    code: Vec<(u64, u64, String)>,
}

impl PerfMap {
    /// The map of a process; empty where it has written none.
    pub(super) fn of(pid: u32) -> Self {
        let text = paths(pid).iter().find_map(|path| read(path)).unwrap_or_default();
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Self {
        let mut code: Vec<_> = text.lines().filter_map(line).collect();
        // Of several pieces at the same address, the last was there when the program ended.
        code.reverse();
        code.sort_by_key(|(start, ..)| *start);
        code.dedup_by_key(|(start, ..)| *start);
        Self { code }
    }

    /// The name of the code at an address.
    pub(crate) fn name(&self, address: u64) -> Option<&str> {
        let after = self.code.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.code.get(after.checked_sub(1)?)?;
        (address < *end).then_some(name)
    }
}

/// The path of a process's map: in its own `/tmp`, under its number in its own namespace.
fn paths(pid: u32) -> [PathBuf; 2] {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let own = status.lines().find_map(|line| line.strip_prefix("NSpid:")?.split_whitespace().last());
    let name = format!("perf-{}.map", own.map_or_else(|| pid.to_string(), str::to_owned));
    [Path::new(&format!("/proc/{pid}/root/tmp")).join(&name), Path::new("/tmp").join(&name)]
}

/// Reads a regular file as text. Others may write to `/tmp`: links are not followed, and a pipe does not block.
fn read(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty()).ok()?;
    if !FileType::from_raw_mode(fstat(&file).ok()?.st_mode).is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::from(file).take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Parses a line: start and length in hexadecimal digits, and the name.
fn line(text: &str) -> Option<(u64, u64, String)> {
    let (start, rest) = text.split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let number = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
    let start = number(start)?;
    let name: String = name.chars().map(|c| if c.is_control() || c == ';' { ' ' } else { c }).collect();
    Some((start, start.checked_add(number(length)?)?, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_named_by_the_last_line_that_covers_it() {
        let text = "7f00 10 py::handle:/srv/app.py\n7f40 20 LazyCompile:*old\n7f40 20 JS:*render app.js:3\nnonsense\nff zz x\n\
                    ffffffffffffffff 2 beyond\n7f80 8 a;b\u{1b}c\n";
        let map = PerfMap::parse(text);
        assert_eq!(map.name(0x7f08), Some("py::handle:/srv/app.py"));
        assert_eq!(map.name(0x7f10), None);
        assert_eq!(map.name(0x7f5f), Some("JS:*render app.js:3"));
        assert_eq!(map.name(0x7f80), Some("a b c"));
        assert_eq!((map.name(0), map.name(u64::MAX)), (None, None));
        assert_eq!(PerfMap::default().name(1), None);
    }

    #[test]
    fn only_a_regular_file_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("map"), folder.path().join("link"));
        std::fs::write(&file, "10 10 a\n").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(read(&file).is_some() && read(&link).is_none() && read(folder.path()).is_none());
    }
}
