//! Damage to valid input: cut, changed, moved and repeated bytes, and text with hostile numbers, values and nesting.

use std::ops::Range;

use super::draw::Draw;

/// Damages bytes, once or several times.
pub fn damaged(valid: &[u8], draw: &mut Draw) -> Vec<u8> {
    let mut bytes = valid.to_vec();
    for _ in 0..=draw.below(3) {
        damage(&mut bytes, draw);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let length = bytes.len();
    match draw.below(9) {
        0 => bytes.truncate(draw.below(length)),
        1 => {
            for _ in 0..=draw.below(8) {
                let (at, bit) = (draw.below(length), draw.below(8));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << bit;
                }
            }
        }
        2 => drop(bytes.drain(range(length, draw))),
        3 => {
            let piece = bytes[range(length, draw)].to_vec();
            let times = 1 + draw.below(100);
            let at = draw.below(length);
            bytes.splice(at..at, piece.repeat(times.min(1 + 1_000_000 / (1 + piece.len()))));
        }
        4 => {
            let over = range(length, draw);
            let noise = draw.bytes(over.len());
            bytes[over].copy_from_slice(&noise);
        }
        // Lengths and counts of binary formats, as large as possible.
        5 => {
            let over = range(length.min(1 << 16), draw);
            let end = over.start + over.len().min(8);
            bytes[over.start..end].fill(if draw.percent(50) { 0xff } else { 0x7f });
        }
        6 => bytes.clear(),
        7 => {
            let at = draw.below(length);
            let noise = draw.below(300);
            let noise = draw.bytes(noise);
            bytes.splice(at..at, noise);
        }
        // Footers of formats such as Parquet end with their own length.
        _ => {
            let last = length.saturating_sub(1 + draw.below(12))..length;
            let noise = draw.bytes(last.len());
            bytes[last].copy_from_slice(&noise);
        }
    }
}

fn range(length: usize, draw: &mut Draw) -> Range<usize> {
    let (one, other) = (draw.below(length), draw.below(length));
    one.min(other)..one.max(other)
}

/// Replacements for a number or a value.
const VALUES: &[&str] = &[
    "0",
    "-1",
    "1e308",
    "1e309",
    "-1e308",
    "1e-320",
    "nan",
    "inf",
    "NaN",
    "Infinity",
    "-inf",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "99999999999999999999999999",
    "4e9",
    "100000",
    "true",
    "null",
    "\"\"",
    "\"x\"",
    "[]",
    "{}",
    "[[1]]",
    "\"\\u001b[2J\\u0007\"",
    "\"0s\"",
    "\"-1s\"",
    "\"99999999999h\"",
    "\"1e300s\"",
    "\"p200\"",
    "\"\\u202e\"",
    "\"101%\"",
    "\"../../guard\"",
    "\"/dev/zero\"",
    "1979-05-27",
    "0x7fffffffffffffff",
    "",
];

/// Damages text, mostly so that it keeps its format.
pub fn damaged_text(valid: &str, draw: &mut Draw) -> Vec<u8> {
    if draw.percent(15) {
        return damaged(valid.as_bytes(), draw);
    }
    let mut text = valid.to_owned();
    for _ in 0..=draw.below(3) {
        text = match draw.below(10) {
            0..5 => with_value(&text, draw.pick(VALUES), draw),
            5 => lines(&text, draw),
            6 => {
                let depth = [100, 10_000, 200_000][draw.below(3)];
                let open = draw.pick(&["[", "{\"a\":", "(", "{ a = "]);
                with_value(&text, &open.repeat(depth), draw)
            }
            7 => {
                let long = draw
                    .pick(&["9", "a", "é", "1,", "\"", "\u{1b}]0;x\u{7}"])
                    .repeat([100, 100_000][draw.below(2)]);
                with_value(&text, &long, draw)
            }
            8 => with_value(&text, "\u{1b}[2J\u{1b}]52;c;eA==\u{7}", draw),
            _ => word(&text, draw),
        };
    }
    text.into_bytes()
}

/// The ranges of values: numbers and texts in quotation marks.
fn values(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begun = at;
        if bytes[at] == b'"' {
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' && bytes[at] != b'\n' {
                at += 1;
            }
            at = (at + 1).min(bytes.len());
        } else if bytes[at].is_ascii_digit() {
            while at < bytes.len() && (bytes[at].is_ascii_digit() || b"._e+-".contains(&bytes[at])) {
                at += 1;
            }
        } else {
            at += 1;
            continue;
        }
        if text.is_char_boundary(begun) && text.is_char_boundary(at) {
            found.push(begun..at);
        }
    }
    found
}

fn with_value(text: &str, value: &str, draw: &mut Draw) -> String {
    let places = values(text);
    let mut changed = text.to_owned();
    match places.get(draw.below(places.len())) {
        Some(place) => changed.replace_range(place.clone(), value),
        None => changed += value,
    }
    changed
}

/// Swaps, doubles or removes lines.
fn lines(text: &str, draw: &mut Draw) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let (one, other) = (draw.below(lines.len()), draw.below(lines.len()));
    if lines.is_empty() {
        return String::new();
    }
    match draw.below(3) {
        0 => lines.swap(one, other),
        1 => lines.insert(one, lines[other]),
        _ => drop(lines.remove(one)),
    }
    lines.join("\n") + "\n"
}

/// Changes a name: a key, a column, a section.
fn word(text: &str, draw: &mut Draw) -> String {
    let parts = text.split(|letter: char| !letter.is_ascii_alphabetic() && !"_-".contains(letter));
    let words: Vec<&str> = parts.filter(|word| word.len() > 2).collect();
    let Some(from) = words.get(draw.below(words.len())).copied() else { return text.to_owned() };
    let to = match draw.below(4) {
        0 => "",
        1 => "x",
        2 => "\u{1b}[31mred",
        _ => words[draw.below(words.len())],
    };
    text.replacen(from, to, 1)
}
