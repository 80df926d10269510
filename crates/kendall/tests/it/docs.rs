//! The chapters of the documentation that are made of commands: each command is run, and what it prints and draws must be
//! what stands there. `KENDALL_DOCS=write cargo test --package kendall --test it docs` writes them anew.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CHAPTERS: [&str; 4] = ["docs/queueing.md", "docs/solve.md", "docs/fit.md", "docs/checks.md"];
/// Where the commands of the chapters write their pictures.
const PICTURES: &str = "docs/queueing";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs a command line and gives what it prints, errors included, as a reader would see it.
fn printed(line: &str, folder: &Path) -> String {
    let words = line.strip_prefix("kendall ").unwrap_or_else(|| panic!("not a command of kendall: {line}"));
    let shell = Command::new("sh")
        .args(["-c", &format!("\"$KENDALL\" {words} 2>&1")])
        .env("KENDALL", env!("CARGO_BIN_EXE_kendall"))
        .current_dir(folder)
        .output()
        .unwrap();
    String::from_utf8(shell.stdout).unwrap()
}

/// The chapter with what the commands in its consoles print now.
fn refreshed(chapter: &str, folder: &Path) -> String {
    let mut lines = chapter.lines().peekable();
    let (mut fresh, mut fence) = (String::new(), "");
    while let Some(line) = lines.next() {
        fresh += &format!("{line}\n");
        if line.starts_with("```") {
            fence = if fence.is_empty() { line } else { "" };
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| fence == "```console") else { continue };
        let mut command = command.to_owned();
        while command.ends_with('\\') {
            let more = lines.next().expect("a line that ends in \\ goes on");
            fresh += &format!("{more}\n");
            command = format!("{}{}", command.trim_end_matches('\\'), more.trim_start());
        }
        fresh += &printed(&command, folder);
        while lines.next_if(|line| *line != "```" && !line.starts_with("$ ")).is_some() {}
    }
    fresh
}

#[test]
fn every_command_of_the_chapters_prints_and_draws_what_stands_there() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    fs::create_dir_all(folder.path().join(PICTURES)).unwrap();
    let write = env::var_os("KENDALL_DOCS").is_some_and(|wish| wish == "write");
    let mut stale = Vec::new();
    let mut check = |path: &Path, fresh: String| {
        if write {
            fs::write(path, fresh).unwrap();
        } else if fs::read_to_string(path).ok().as_ref() != Some(&fresh) {
            stale.push(path.display().to_string());
        }
    };
    for chapter in CHAPTERS {
        let path = root().join(chapter);
        let text = fs::read_to_string(&path).unwrap();
        let fresh = refreshed(&text, folder.path());
        check(&path, fresh);
    }
    for picture in fs::read_dir(folder.path().join(PICTURES)).unwrap() {
        let picture = picture.unwrap();
        check(&root().join(PICTURES).join(picture.file_name()), fs::read_to_string(picture.path()).unwrap());
    }
    assert!(stale.is_empty(), "write these anew with KENDALL_DOCS=write: {}", stale.join(", "));
}
