//! What it takes to add something, counted in the sources: ARCHITECTURE.md says these numbers. Where each kind is added once, in code
//! that runs: a system in `system/tests`, a transport in `load/tests/it/wire.rs`, an export format in `report/tests/it/formats.rs`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files of this name or ending, below the sources of all crates; build outputs, tests, benchmarks and examples apart.
fn sources(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    const NOT_SOURCES: [&str; 6] = ["target", "tests", "benches", "examples", "tests.rs", ".git"];
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let name = path.file_name().unwrap().to_str().unwrap_or_default();
        if NOT_SOURCES.contains(&name) {
            continue;
        }
        if path.is_dir() {
            sources(&path, ending, found);
        } else if name.ends_with(ending) {
            found.push(path);
        }
    }
}

/// The lines that say one of these, of files that are in none of the folders, without comments and the tests at a file's end.
fn lines(ending: &str, words: &[&str], outside: &[&str]) -> Vec<String> {
    let (root, mut files) = (root(), Vec::new());
    sources(&root, ending, &mut files);
    let mut found = Vec::new();
    for file in files {
        let place = file.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
        if outside.iter().any(|folder| place.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().take_while(|line| *line != "mod tests {");
        let code = code.filter(|line| !line.trim_start().starts_with("//"));
        let says = |line: &&str| words.iter().any(|word| line.contains(word));
        found.extend(code.filter(says).map(|line| format!("{place}: {}", line.trim())));
    }
    found.sort();
    found
}

#[test]
fn a_system_is_its_folder_and_two_lines() {
    // The programs of the chat are its clients, in their own crates.
    let all = ["reverse", "recover", "textsearch", "chat", "hold", "http", "transport"];
    for system in all {
        let (package, library) = (format!("kendall-{system} "), format!("kendall_{system}::"));
        let folder = format!("crates/{system}/");
        let outside = [&folder, "fuzz/", "crates/bench/", "crates/chatcli/", "crates/chatview/"];
        let mut elsewhere = lines(".rs", &[&library], &outside);
        elsewhere.extend(lines("Cargo.toml", &[&package, &format!("kendall-{system}.")], &outside));
        let expected = [
            format!("crates/kendall/src/systems.rs: kendall_{system}::ROW,"),
            format!("crates/kendall/Cargo.toml: kendall-{system} = {{ path = \"../{system}\" }}"),
        ];
        assert_eq!(elsewhere, expected, "of {system}");
    }
}

/// The variants of `Discipline`.
fn disciplines() -> Vec<String> {
    let text = fs::read_to_string(root().join("crates/station/src/discipline.rs")).unwrap();
    let (_, list) = text.split_once("pub const ALL").unwrap();
    let (list, _) = list.split_once("];").unwrap();
    list.lines()
        .filter_map(|line| Some(line.trim().strip_prefix("Self::")?.trim_end_matches(',').into()))
        .collect()
}

/// An order that no other code has a reason to name takes two files; and no other file decides by a list of orders, so that a new one
/// can be forgotten nowhere.
#[test]
fn a_discipline_is_two_files() {
    let own = ["crates/station/src/discipline.rs", "crates/station/src/queue.rs"];
    let disciplines = disciplines();
    assert!(disciplines.len() >= 8, "{disciplines:?}");
    for discipline in &disciplines {
        let arms = [format!("Discipline::{discipline} =>"), format!("Discipline::{discipline} |")];
        let arms: Vec<&str> = arms.iter().map(String::as_str).collect();
        let deciding = lines(".rs", &arms, &own);
        assert!(deciding.is_empty(), "ask discipline.rs for a property instead: {deciding:#?}");
    }
    let named: BTreeSet<String> = lines(".rs", &["Discipline::CMu", "Self::CMu"], &[])
        .iter()
        .map(|line| line.split(':').next().unwrap().to_owned())
        .collect();
    assert_eq!(named, own.map(str::to_owned).into());
}

#[test]
fn an_export_format_is_its_file_and_its_lines_in_the_list() {
    let folder = root().join("crates/report/src/export");
    for format in ["csv", "json", "parquet", "hdr", "openmetrics", "junit"] {
        assert!(folder.join(format!("{format}.rs")).exists());
        let own = format!("crates/report/src/export/{format}.rs");
        let called = [format!("mod {format};"), format!("&{format}::")];
        let called: Vec<&str> = called.iter().map(String::as_str).collect();
        let in_report = |line: &String| line.starts_with("crates/report/");
        let elsewhere: Vec<String> = lines(".rs", &called, &[&own]).into_iter().filter(in_report).collect();
        assert!(elsewhere.iter().all(|line| line.starts_with("crates/report/src/export.rs: ")));
        assert_eq!(elsewhere.len(), 2, "{elsewhere:#?}");
    }
}

/// There is one type of that name, and no list of transports but the constants in its file.
#[test]
fn a_transport_is_one_file() {
    let defined = lines(
        ".rs",
        &["enum Transport {", "struct Transport {", "struct Transport(", "struct Transport;"],
        &[],
    );
    assert_eq!(defined, ["crates/linkmodel/src/transport.rs: pub struct Transport {"]);
    let decided = lines(".rs", &["Transport::TCP =>", "Transport::UDP =>", "== Transport::"], &[]);
    assert!(decided.is_empty(), "ask the transport what it carries instead: {decided:#?}");
}
