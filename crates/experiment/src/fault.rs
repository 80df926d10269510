//! What is wrong with an experiment file, and on which line.

use std::fmt;
use std::ops::Range;

/// A fault of an experiment file, shown with the line it is in.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct Fault {
    /// The file's name.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The text of that line.
    pub text: String,
    /// How many characters of it are at fault.
    pub width: usize,
    /// What is wrong and what to do.
    pub message: String,
}

impl Fault {
    /// A fault at a place in the text of a file, given in bytes.
    pub fn at(file: &str, text: &str, place: Range<usize>, message: impl Into<String>) -> Self {
        let start = place.start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[line_start..].lines().next().unwrap_or("");
        let column = text[line_start..start].chars().count();
        let end = place.end.clamp(start, line_start + line.len().max(start - line_start));
        Self {
            file: file.into(),
            line: text[..line_start].matches('\n').count() + 1,
            column: column + 1,
            text: line.into(),
            width: text[start..end].chars().count().max(1),
            message: message.into(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}, line {}: {}", self.file, self.line, self.message)?;
        let number = self.line.to_string();
        writeln!(f, "  {number} | {}", self.text)?;
        write!(f, "  {:w$} | {:c$}{}", "", "", "^".repeat(self.width), w = number.len(), c = self.column - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_is_shown_under_its_line() {
        let text = "[load]\nµ = 5\nratee = 20\n";
        let place = text.find("ratee").unwrap();
        let fault = Fault::at("x.toml", text, place..place + 5, "unknown key");
        assert_eq!(fault.to_string(), "x.toml, line 3: unknown key\n  3 | ratee = 20\n    | ^^^^^");
        // The end of the file, and a place that spans lines.
        assert_eq!(Fault::at("x", text, text.len()..text.len() + 9, "").width, 1);
        assert_eq!(Fault::at("x", text, 0..text.len(), "").width, "[load]".len());
    }
}
