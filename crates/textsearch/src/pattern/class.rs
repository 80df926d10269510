//! Sets of characters, and those that have names: `\d`, `\p{Lu}`.

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, HirKind};

use super::tree::Case;
use crate::semantics::Alphabet;

/// A set from ranges of characters, both ends in it.
pub(crate) fn set(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|&(from, to)| ClassUnicodeRange::new(from, to)))
}

pub(crate) fn negated(mut class: ClassUnicode) -> ClassUnicode {
    class.negate();
    class
}

/// The characters that `.` does not match.
pub(crate) fn terminators() -> ClassUnicode {
    set(&[('\n', '\n'), ('\r', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')])
}

/// The same set, with the characters that only differ in case.
pub(crate) fn folded(mut class: ClassUnicode, case: Case) -> ClassUnicode {
    match case {
        Case::Exact => {}
        Case::Unicode => class.case_fold_simple(),
        Case::Ascii => {
            for (base, offset) in [(b'a', -32), (b'A', 32)] {
                let mut letters = set(&[(char::from(base), char::from(base + 25))]);
                letters.intersect(&class);
                let moved = |letter: char| char::from((letter as i32 + offset) as u8);
                let other: Vec<(char, char)> =
                    letters.iter().map(|range| (moved(range.start()), moved(range.end()))).collect();
                class.union(&set(&other));
            }
        }
    }
    class
}

/// `\d`, `\h`, `\s`, `\v`, `\w`, and negated by capitals.
pub(crate) fn predefined(letter: char, alphabet: Alphabet) -> Option<ClassUnicode> {
    let class = match (letter.to_ascii_lowercase(), alphabet) {
        ('d', Alphabet::Ascii) => set(&[('0', '9')]),
        ('s', Alphabet::Ascii) => set(&[('\t', '\r'), (' ', ' ')]),
        ('w', Alphabet::Ascii) => set(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        ('d', Alphabet::Unicode) => unicode("Nd")?,
        ('s', Alphabet::Unicode) => unicode("White_Space")?,
        ('w', Alphabet::Unicode) => {
            let mut class = set(&[('\u{200c}', '\u{200d}')]);
            for name in ["Alphabetic", "M", "Nd", "Pc"] {
                class.union(&unicode(name)?);
            }
            class
        }
        ('h', _) => set(&[
            ('\t', '\t'),
            (' ', ' '),
            ('\u{a0}', '\u{a0}'),
            ('\u{1680}', '\u{1680}'),
            ('\u{180e}', '\u{180e}'),
            ('\u{2000}', '\u{200a}'),
            ('\u{202f}', '\u{202f}'),
            ('\u{205f}', '\u{205f}'),
            ('\u{3000}', '\u{3000}'),
        ]),
        ('v', _) => set(&[('\n', '\r'), ('\u{85}', '\u{85}'), ('\u{2028}', '\u{2029}')]),
        _ => return None,
    };
    Some(if letter.is_ascii_uppercase() { negated(class) } else { class })
}

/// A property by Unicode's name for it.
fn unicode(name: &str) -> Option<ClassUnicode> {
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '=' | ' ' | '-')) {
        return None;
    }
    match regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        _ => None,
    }
}

/// The property between the braces of `\p{…}`, by Java's names.
pub(crate) fn property(name: &str, alphabet: Alphabet) -> Option<ClassUnicode> {
    let posix = match (name, alphabet) {
        ("ASCII", _) => Some(set(&[('\0', '\x7f')])),
        ("Punct", Alphabet::Ascii) => Some(set(&[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')])),
        ("Graph", _) => Some(set(&[('!', '~')])),
        ("Print", _) => Some(set(&[(' ', '~')])),
        ("Cntrl", Alphabet::Ascii) => Some(set(&[('\0', '\x1f'), ('\x7f', '\x7f')])),
        ("Blank", Alphabet::Ascii) => Some(set(&[('\t', '\t'), (' ', ' ')])),
        ("XDigit", Alphabet::Ascii) => Some(set(&[('0', '9'), ('A', 'F'), ('a', 'f')])),
        ("Space", Alphabet::Ascii) => predefined('s', alphabet),
        ("Digit", Alphabet::Ascii) => predefined('d', alphabet),
        ("Lower", Alphabet::Ascii) => Some(set(&[('a', 'z')])),
        ("Upper", Alphabet::Ascii) => Some(set(&[('A', 'Z')])),
        ("Alpha", Alphabet::Ascii) => Some(set(&[('A', 'Z'), ('a', 'z')])),
        ("Alnum", Alphabet::Ascii) => Some(set(&[('0', '9'), ('A', 'Z'), ('a', 'z')])),
        _ => None,
    };
    let by_name = match name {
        "Punct" => "P",
        "Cntrl" => "Cc",
        "Blank" => return posix.or_else(|| predefined('h', alphabet)),
        "XDigit" => "Hex_Digit",
        "Space" | "javaWhitespace" | "javaSpaceChar" => "White_Space",
        "Digit" | "javaDigit" => "Nd",
        "Lower" | "javaLowerCase" => "Lowercase",
        "Upper" | "javaUpperCase" => "Uppercase",
        "Alpha" | "javaAlphabetic" => "Alphabetic",
        "javaLetter" => "L",
        "Alnum" | "javaLetterOrDigit" => {
            let both = || {
                let mut class = unicode("Alphabetic")?;
                class.union(&unicode("Nd")?);
                Some(class)
            };
            return posix.or_else(both);
        }
        "L1" => return Some(set(&[('\0', '\u{ff}')])),
        "all" => return Some(set(&[('\0', char::MAX)])),
        other => other.strip_prefix("Is").unwrap_or(other),
    };
    posix.or_else(|| unicode(by_name))
}
