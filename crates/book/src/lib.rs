//! The pages of the documentation, for tests: their commands are run, and what code knows is written into them.
//!
//! For tests only: it panics where a test has to fail.

mod folder;
mod page;
mod reference;
mod schema;
mod terminal;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

pub use folder::folder;
pub use page::Page;
pub use reference::reference;
pub use schema::fields;
pub use terminal::Terminal;

/// The folder of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the sources are there")
}

/// The text of a page, named by its path from the root; empty if there is no such page.
pub fn read(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_default()
}

/// Compares a file with what it should be, or writes it anew if `KENDALL_DOCS` is `write`.
///
/// # Errors
/// Says that the file differs, or cannot be written.
pub fn refresh(name: &str, fresh: &str) -> Result<(), String> {
    if env::var_os("KENDALL_DOCS").is_some_and(|wish| wish == "write") {
        return fs::write(root().join(name), fresh).map_err(|why| format!("{name} cannot be written: {why}"));
    }
    let differs = || {
        let old = read(name);
        let line = old.lines().zip(fresh.lines()).find(|(old, fresh)| old != fresh);
        let (old, fresh) = line.unwrap_or(("", "a page of another length"));
        format!("{name} has {old:?}, and it should be {fresh:?}; write it anew with KENDALL_DOCS=write")
    };
    if read(name) == fresh { Ok(()) } else { Err(differs()) }
}

/// A page with a fresh text between the lines `<!-- generated: NAME -->` and `<!-- end -->`.
///
/// # Panics
/// Where the page has no such lines.
pub fn with_part(page: &str, name: &str, fresh: &str) -> String {
    let begin = format!("<!-- generated: {name} -->\n");
    let parts =
        page.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once("<!-- end -->")?.1)));
    let (before, after) = parts.unwrap_or_else(|| panic!("no line {begin:?} with an end after it"));
    format!("{before}{begin}\n{fresh}\n<!-- end -->{after}")
}
