//! Text for readers is plain English: `docs/glossary.md` has the terms, and the words of a dialect that this project once wrote do not
//! grow back. Comments, string literals and prose are checked, not the names in code.

use std::fs;
use std::path::Path;

/// A phrase, and what to write in its place.
const AVOID: [(&str, &str); 36] = [
    ("are none", "there are no"),
    ("bear", "sustain, handle"),
    ("bears", "sustains, handles"),
    ("befall", "happen to"),
    ("befallen", "happened to"),
    ("befalls", "happens to"),
    ("borne", "sustained"),
    ("by chance", "at random, or statistically significant (p = …)"),
    ("by itself", "separately, alone"),
    ("for want of", "because there is no"),
    ("hang on", "depend on"),
    ("hang together", "are correlated"),
    ("hangs on", "depends on"),
    ("hangs together", "is correlated"),
    ("is none", "there is no"),
    ("laid out", "planned, set up"),
    ("last word", "final message"),
    ("lay out", "plan, set up"),
    ("look at", "check, read, poll"),
    ("looks at", "checks, reads, polls"),
    ("mend", "fix, repair"),
    ("mended", "fixed, repaired"),
    ("nobody", "no request, no client"),
    ("of its own", "its own, separate"),
    ("of their own", "their own, separate"),
    ("so long", "that long"),
    ("so many", "n, the given number of"),
    ("somebody", "a client, a caller"),
    ("stand still", "stall, pause"),
    ("stands still", "stalls, pauses"),
    ("tell", "report, indicate, distinguish"),
    ("tells", "reports, indicates, distinguishes"),
    ("told", "reported, given, distinguished"),
    ("whoever", "the client, the caller"),
    ("whom", "which client, which request"),
    ("whomever", "the client, the caller"),
];

/// The name of a user of the system, which is not prose.
const USER: &str = "\"nobody\"";

/// A piece of text, and the line on which it begins.
struct Piece {
    line: usize,
    text: String,
}

/// The comments and string literals of Rust source.
fn of_rust(source: &str) -> Vec<Piece> {
    let letters: Vec<char> = source.chars().collect();
    let (mut pieces, mut at, mut line) = (Vec::new(), 0, 1);
    while at < letters.len() {
        let rest = &letters[at..];
        let (length, is_text) = match rest {
            ['/', '/', ..] => (rest.iter().position(|&letter| letter == '\n').unwrap_or(rest.len()), true),
            ['r', '"' | '#', ..] => raw_string(rest).map_or((1, false), |length| (length, true)),
            ['"', ..] => (string(rest), true),
            ['\'', '\\', _, ..] => {
                (rest[3..].iter().position(|&letter| letter == '\'').map_or(1, |end| end + 4), false)
            }
            ['\'', _, '\'', ..] => (3, false),
            _ => (1, false),
        };
        let piece = &rest[..length];
        if is_text {
            pieces.push(Piece { line, text: piece.iter().collect() });
        }
        line += piece.iter().filter(|&&letter| letter == '\n').count();
        at += length;
    }
    pieces
}

/// The length of the string literal here.
fn string(letters: &[char]) -> usize {
    let mut at = 1;
    while at < letters.len() && letters[at] != '"' {
        at += if letters[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(letters.len())
}

/// The length of the raw string literal here, if it is one.
fn raw_string(letters: &[char]) -> Option<usize> {
    let marks = letters[1..].iter().take_while(|&&letter| letter == '#').count();
    if letters.get(1 + marks) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', marks)).collect();
    let body = marks + 2;
    let length = letters[body..].windows(end.len()).position(|window| window == end)?;
    Some(body + length + end.len())
}

/// The prose of a Markdown file: all but blocks of code.
fn of_markdown(text: &str) -> Vec<Piece> {
    let mut is_code = false;
    let mut pieces = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            pieces.push(Piece { line: number + 1, text: line.to_owned() });
        }
    }
    pieces
}

/// The words of a text, in lower case.
fn words(text: &str) -> Vec<String> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_' && letter != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// The phrases of a text that are to be avoided.
fn found(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let words = words(text);
    AVOID.into_iter().flat_map(move |(phrase, instead)| {
        let wanted: Vec<&str> = phrase.split(' ').collect();
        let count = words.windows(wanted.len()).filter(|window| window.iter().eq(&wanted)).count();
        std::iter::repeat_n((phrase, instead), count)
    })
}

/// The files below a folder that are written by hand, by their paths from the root.
fn files(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = folder.join(&name);
        let kind = entry.file_type().unwrap();
        let generated = name.starts_with('.')
            || matches!(
                name.as_str(),
                "target" | "vendor" | "benchmarks.md" | "plain_words.rs" | "type_names.rs"
            );
        if kind.is_dir() && !generated {
            files(root, &path, found);
        } else if kind.is_file() && !generated && (name.ends_with(".rs") || name.ends_with(".md")) {
            found.push(path.to_str().unwrap().to_owned());
        }
    }
}

#[test]
fn no_word_of_the_dialect_grows_back() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut all, mut places) = (Vec::new(), Vec::new());
    files(&root, Path::new(""), &mut all);
    for file in all {
        let Ok(text) = fs::read_to_string(root.join(&file)) else { continue };
        let pieces = if file.ends_with(".rs") { of_rust(&text) } else { of_markdown(&text) };
        for piece in pieces.into_iter().filter(|piece| piece.text != USER) {
            for (phrase, instead) in found(&piece.text) {
                places.push(format!("{file}:{}: {phrase:?}; write: {instead}", piece.line));
            }
        }
    }
    assert!(places.is_empty(), "{}", places.join("\n"));
}

#[test]
fn comments_and_literals_are_read_and_code_is_not() {
    let source = "// nobody\nlet nobody = \"so \\\" many\"; let a = '\"'; let b = '\\''; f(r#\"told \" you\"#); // tells\n";
    let texts: Vec<(usize, String)> =
        of_rust(source).into_iter().map(|piece| (piece.line, piece.text)).collect();
    assert_eq!(
        texts,
        [
            (1, "// nobody".to_owned()),
            (2, "\"so \\\" many\"".to_owned()),
            (2, "r#\"told \" you\"#".to_owned()),
            (2, "// tells".to_owned()),
        ]
    );
    assert_eq!(found("Nobody is told, so\n/// many").count(), 3);
    let prose = of_markdown("a\n```\ntold\n```\nb");
    assert_eq!(prose.iter().map(|piece| piece.line).collect::<Vec<_>>(), [1, 5]);
}
