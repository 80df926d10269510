//! Fuzz targets: functions of bytes that panic where a parser or a state machine is wrong.
//!
//! [`check`] runs them under `cargo test`, and the programs of the folder `fuzz` at the root hand the same functions to libFuzzer,
//! which learns inputs that reach further. A case is one input of one target.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{fs, iter};

use tempfile::{TempDir, tempdir};

use crate::hostile::{Draw, damaged};

/// A function of bytes that panics where it finds a fault, and inputs to begin with.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name, which no other target of the workspace has.
    pub name: &'static str,
    /// Inputs that reach far; there is at least one.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// The function. Equal inputs have equal effects.
    pub run: fn(&[u8]),
}

/// Damaged and random inputs of each target.
const CASES: u64 = 300;
/// The longest of them, as in `tools/fuzz`.
const MOST_BYTES: usize = 4096;

/// Runs the targets of a crate on their seeds, on the inputs that are kept in its `testdata/fuzz/TARGET`, on damage to both, and
/// on random bytes: the same cases every time.
///
/// # Panics
/// Where a target fails, where it has no seed, and where inputs of an unknown target are kept.
pub fn check(targets: &[Target], manifest_dir: &str) {
    let kept = Path::new(manifest_dir).join("testdata/fuzz");
    for folder in kept.read_dir().into_iter().flatten().map(|entry| entry.unwrap().file_name()) {
        assert!(targets.iter().any(|target| *target.name == *folder), "no target is called {folder:?}");
    }
    for target in targets {
        let mut inputs = (target.seeds)();
        let entries = kept.join(target.name).read_dir().into_iter().flatten();
        inputs.extend(entries.map(|entry| fs::read(entry.unwrap().path()).unwrap()));
        assert!(!inputs.is_empty(), "{} has no seed", target.name);
        inputs.iter().for_each(|input| run(target, input));
        for case in 0..CASES {
            let mut draw = Draw::of(1, target.name, case);
            let mut input = match case % 4 {
                0 => {
                    let length = draw.below(600);
                    draw.bytes(length)
                }
                _ => damaged(&inputs[draw.below(inputs.len())], &mut draw),
            };
            input.truncate(MOST_BYTES);
            run(target, &input);
        }
    }
}

fn run(target: &Target, input: &[u8]) {
    // The message of the panic itself is printed before this one.
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        panic!("{} fails on b\"{}\"", target.name, input.escape_ascii());
    }
}

/// Calls a reader of files with the path of a file that has these bytes and this name.
///
/// # Panics
/// Where the file cannot be written.
pub fn with_file<T>(name: &str, input: &[u8], read: impl FnOnce(&Path) -> T) -> T {
    thread_local! {
        static FOLDER: TempDir = tempdir().expect("there is a folder for temporary files");
    }
    FOLDER.with(|folder| {
        let path = folder.path().join(name);
        fs::write(&path, input).expect("the folder is writable");
        let read = read(&path);
        fs::remove_file(path).expect("the file is there");
        read
    })
}

/// Reads a stream in pieces, whose length is the first byte of the input, and once as a whole, and compares the results: how a
/// stream is cut must not matter.
///
/// # Panics
/// Where the results differ.
pub fn however_cut<T: PartialEq + Debug>(input: &[u8], read: impl Fn(&mut dyn Iterator<Item = &[u8]>) -> T) {
    let Some((&length, stream)) = input.split_first() else { return };
    let pieces = read(&mut stream.chunks(usize::from(length).max(1)));
    assert_eq!(pieces, read(&mut iter::once(stream)));
}

/// Feeds pieces to a reader that returns how many bytes it has used and, at the end, a result. It gets unused bytes again, with
/// the next piece after them. Returns the result and the number of bytes used until then.
///
/// # Panics
/// Where the reader uses more bytes than it has.
pub fn fed<T>(
    pieces: &mut dyn Iterator<Item = &[u8]>,
    mut read: impl FnMut(&[u8]) -> (usize, Option<T>),
) -> Option<(usize, T)> {
    let (mut unread, mut used) = (Vec::new(), 0);
    for piece in pieces {
        unread.extend_from_slice(piece);
        let (taken, result) = read(&unread);
        used += unread.drain(..taken).len();
        if let Some(result) = result {
            return Some((used, result));
        }
    }
    None
}

/// An input as a script: numbers, one after another, until it ends.
#[derive(Clone, Copy, Debug)]
pub struct Script<'a>(pub &'a [u8]);

impl<'a> Script<'a> {
    /// The next byte; `None` at the end.
    pub fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// A number of this many bytes, little-endian; bytes that are missing are zeros.
    pub fn number(&mut self, bytes: usize) -> u64 {
        (0..bytes).fold(0, |number, i| number | u64::from(self.byte().unwrap_or(0)) << (8 * i))
    }

    /// The next bytes; fewer where the input ends.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// The next bytes, filled up with zeros.
    pub fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let bytes = self.bytes(N);
        array[..bytes.len()].copy_from_slice(bytes);
        array
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn seeds() -> Vec<Vec<u8>> {
        vec![b"a seed of some length".to_vec()]
    }

    static CALLS: AtomicU64 = AtomicU64::new(0);

    #[test]
    fn a_fault_that_needs_damage_to_a_seed_is_found() {
        let run = |input: &[u8]| assert!(!input.starts_with(b"a ") || input.len() == 21, "wrong length");
        let faulty = Target { name: "faulty", seeds, run };
        let failure = catch_unwind(|| check(&[faulty], "/none")).unwrap_err();
        let message = failure.downcast_ref::<String>().unwrap();
        assert!(message.starts_with("faulty fails on b\"a "), "{message}");
    }

    #[test]
    fn kept_inputs_are_cases_and_belong_to_a_target() {
        let folder = tempdir().unwrap();
        let kept = folder.path().join("testdata/fuzz/counting");
        fs::create_dir_all(&kept).unwrap();
        fs::write(kept.join("crash-1"), "kept").unwrap();
        let run = |_: &[u8]| {
            CALLS.fetch_add(1, Ordering::Relaxed);
        };
        let manifest_dir = folder.path().to_str().unwrap();
        check(&[Target { name: "counting", seeds, run }], manifest_dir);
        assert_eq!(CALLS.load(Ordering::Relaxed), 2 + CASES);
        let unknown = catch_unwind(|| check(&[], manifest_dir)).unwrap_err();
        assert_eq!(unknown.downcast_ref::<String>().unwrap(), "no target is called \"counting\"");
    }

    #[test]
    fn a_reader_that_depends_on_the_cuts_is_found() {
        let count = |pieces: &mut dyn Iterator<Item = &[u8]>| pieces.count();
        let length = |pieces: &mut dyn Iterator<Item = &[u8]>| pieces.map(<[u8]>::len).sum::<usize>();
        however_cut(b"\x02abc", length);
        let word = |bytes: &[u8]| match bytes.iter().position(|byte| *byte == b' ') {
            Some(end) => (end + 1, Some(bytes[..end].to_vec())),
            None => (0, None),
        };
        however_cut(b"\x02a word and more", |pieces| fed(pieces, word));
        assert!(catch_unwind(|| however_cut(b"\x02abc", count)).is_err());
    }
}
