//! Output: text for people, one JSON object a line for programs.

use serde::Serialize;

/// Writes a line to standard output. A reader that is gone is not an error.
///
/// # Errors
/// Fails where standard output cannot be written.
pub fn line(text: &str) -> anyhow::Result<()> {
    kendall_stdio::out(&format!("{text}\n"))
}

/// Writes an object on its own line.
///
/// # Errors
/// As [`line()`].
pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    kendall_stdio::json_line(value)
}

/// Writes a line to standard error, and ignores a failure to do so.
pub fn note(text: &str) {
    kendall_stdio::note(&format!("kendall: {text}"));
}

/// A peer's text as a terminal may show it: characters that move the cursor, change its colours or reorder the line are written
/// as their numbers. Line breaks stay, and what follows them is indented.
pub fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\n    "),
            '\t' => shown.push('\t'),
            _ if character.is_control() || is_formatting(character) => {
                shown.extend(character.escape_unicode());
            }
            _ => shown.push(character),
        }
    }
    shown
}

/// A size as people read it: `512 bytes`, `3.2 MB`.
pub fn size(bytes: u64) -> String {
    let units = [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} bytes"),
    }
}

/// Marks and embeddings that change the order of characters (Unicode Standard Annex 9), and separators of lines.
fn is_formatting(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_write_to_the_terminal_by_its_text() {
        assert_eq!(shown("naïve 👩‍🚀\tdone"), "naïve 👩‍🚀\tdone");
        assert_eq!(shown("a\u{1b}[2Jb\u{7}\u{202e}c\r"), "a\\u{1b}[2Jb\\u{7}\\u{202e}c\\u{d}");
        assert_eq!(shown("two\nlines"), "two\n    lines");
    }

    #[test]
    fn sizes_have_a_unit() {
        assert_eq!([0, 999, 1_000, 3_249_999].map(size), ["0 bytes", "999 bytes", "1.0 kB", "3.2 MB"]);
    }
}
