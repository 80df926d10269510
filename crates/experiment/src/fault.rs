//! Faults of an experiment file, with the line of each.

use std::fmt;
use std::ops::Range;

/// A fault of an experiment file, shown with its line.
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
    /// The length of the invalid part, in characters.
    pub width: usize,
    /// The fault and its remedy.
    pub message: String,
}

impl Fault {
    /// Makes a fault at a byte range in the text of a file.
    pub fn at(file: &str, text: &str, place: Range<usize>, message: impl Into<String>) -> Self {
        let start = place.start.min(text.len());
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line = text[line_start..].lines().next().unwrap_or("");
        let column = text[line_start..start].chars().count();
        let end = place.end.clamp(start, line_start + line.len().max(start - line_start));
        let width = text[start..end].chars().count().max(1);
        let shown = without_secrets(text, &text[..line_start], line);
        // The range may lie in a part that is not shown.
        let length = shown.chars().count();
        let (column, width) = if shown == line {
            (column, width)
        } else {
            let column = column.min(length - 1);
            (column, width.min(length - column))
        };
        Self {
            file: file.into(),
            line: text[..line_start].matches('\n').count() + 1,
            column: column + 1,
            text: shown,
            width,
            message: message.into(),
        }
    }
}

/// A line in the form that may be shown. Headers and URLs of an HTTP workload are secret, so their texts are left out. A line of
/// a multi-line text is not a key with a number, and is not shown at all.
fn without_secrets(text: &str, before: &str, line: &str) -> String {
    // The file may be no experiment but, for example, /proc/self/environ, which holds secrets.
    if line.contains('\0') {
        return "…".into();
    }
    let is_head = |line: &&str| line.trim_start().starts_with('[');
    let section =
        Some(line).filter(is_head).or_else(|| before.lines().rev().find(is_head)).unwrap_or_default();
    let is_of_requests = ["workload", "case"].iter().any(|name| section.contains(name));
    let names_request = ["header", "url", "workload", "http:"].iter().any(|name| line.contains(name));
    if !text.contains("http")
        || !is_of_requests && !names_request
        || Some(line).is_some_and(|line| is_head(&line))
    {
        return line.into();
    }
    let is_number =
        |value: &str| value.trim().bytes().all(|byte| byte.is_ascii_digit() || b"._-+".contains(&byte));
    let is_key =
        |key: &str| key.trim().bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    match line.split_once('=') {
        Some((key, value)) if is_key(key) && is_number(value) => line.into(),
        Some((key, _)) if is_key(key) => format!("{key}= …"),
        None if line.trim().is_empty() => line.into(),
        _ => "…".into(),
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
        let environment = Fault::at("x", "A=1\0SECRET=s3cret\0", 4..5, "unexpected");
        assert!(!environment.to_string().contains("s3cret"), "{environment}");
        // The end of the file, and a place that spans lines.
        assert_eq!(Fault::at("x", text, text.len()..text.len() + 9, "").width, 1);
        assert_eq!(Fault::at("x", text, 0..text.len(), "").width, "[load]".len());
    }

    #[test]
    fn no_line_with_a_header_or_a_url_is_shown() {
        let text = "[system]\nname = \"http\"\n[workload]\nheadre = \"Cookie: s3cret\nstreams = 0\nX-Key: s3cret\nurl = 's3cret'\n";
        let shown = |part: &str| {
            let place = text.find(part).unwrap();
            Fault::at("x", text, place..place + 40, "wrong").to_string()
        };
        assert_eq!(shown("headre"), "x, line 4: wrong\n  4 | headre = …\n    | ^^^^^^^^^^");
        assert_eq!(shown("s3cret"), "x, line 4: wrong\n  4 | headre = …\n    |          ^");
        assert_eq!(shown("X-Key"), "x, line 6: wrong\n  6 | …\n    | ^");
        assert!(!shown("url").contains("s3cret"));
        assert!(shown("streams").contains("5 | streams = 0"));
        assert!(shown("[workload]").contains("3 | [workload]"));
    }
}
