//! Text with placeholders: the parts that differ between requests.
//!
//! `{index}` is the number of the request, `{random}` a number from all of 64 bits, `{random:1000}` one of 0 to 999.
//! Other braces are text, so that JSON needs no escapes. Every placeholder is a pure function of the workload's seed and
//! the request's number.

use std::io::Write as _;
use std::num::NonZeroU64;

use kendall_stats::random::{Purpose, Rng, stream};
use rand::RngExt as _;

/// Bytes with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Index,
    Random,
    Below(NonZeroU64),
}

/// The values of the placeholders of one request. Each takes the next number of the request's own stream.
pub(crate) struct Filler {
    index: u64,
    rng: Rng,
}

impl Filler {
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        Self { index, rng: stream(seed, Purpose::Request, index) }
    }
}

impl Pattern {
    pub(crate) fn read(text: &[u8]) -> Self {
        let (mut pieces, mut plain, mut rest) = (Vec::new(), Vec::new(), text);
        while let Some(&first) = rest.first() {
            match placeholder(rest) {
                Some((piece, length)) => {
                    if !plain.is_empty() {
                        pieces.push(Piece::Bytes(std::mem::take(&mut plain)));
                    }
                    pieces.push(piece);
                    rest = &rest[length..];
                }
                None => {
                    plain.push(first);
                    rest = &rest[1..];
                }
            }
        }
        if !plain.is_empty() {
            pieces.push(Piece::Bytes(plain));
        }
        Self(pieces)
    }

    /// Whether the pattern is the same for every request.
    pub(crate) fn is_fixed(&self) -> bool {
        self.0.iter().all(|piece| matches!(piece, Piece::Bytes(_)))
    }

    /// Writes the text with its placeholders filled.
    pub(crate) fn fill(&self, filler: &mut Filler, out: &mut Vec<u8>) {
        for piece in &self.0 {
            let number = match piece {
                Piece::Bytes(bytes) => {
                    out.extend_from_slice(bytes);
                    continue;
                }
                Piece::Index => filler.index,
                Piece::Random => filler.rng.random(),
                Piece::Below(bound) => filler.rng.random_range(0..bound.get()),
            };
            write!(out, "{number}").expect("a vector takes everything");
        }
    }
}

/// The placeholder that the text begins with, and its length.
fn placeholder(text: &[u8]) -> Option<(Piece, usize)> {
    // The longest is {random:18446744073709551615}.
    let end = text.iter().take(30).position(|&byte| byte == b'}')?;
    let name = std::str::from_utf8(text[..end].strip_prefix(b"{")?).ok()?;
    let piece = match name {
        "index" => Piece::Index,
        "random" => Piece::Random,
        _ => Piece::Below(name.strip_prefix("random:")?.parse().ok()?),
    };
    Some((piece, end + 1))
}

/// The text of a URL with its original placeholders: parsing a URL escapes their braces.
pub(crate) fn unescaped(url: &str) -> String {
    let mut text = String::with_capacity(url.len());
    let mut rest = url;
    while let Some(at) = rest.find("%7B") {
        text += &rest[..at];
        rest = &rest[at..];
        let written = rest.find("%7D").map(|end| format!("{{{}}}", &rest[3..end]));
        match written.filter(|written| placeholder(written.as_bytes()).is_some()) {
            Some(written) => {
                rest = &rest[written.len() + 4..];
                text += &written;
            }
            None => {
                text += "%7B";
                rest = &rest[3..];
            }
        }
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, seed: u64, index: u64) -> String {
        let mut out = Vec::new();
        Pattern::read(text.as_bytes()).fill(&mut Filler::new(seed, index), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn placeholders_are_filled_and_other_braces_stay() {
        assert_eq!(filled("/item/{index}?a={index}", 1, 42), "/item/42?a=42");
        for text in
            ["{\"a\": {}}", "{random:0}", "{random:x}", "{Index}", "{", "}", "{index", "", "{random:-1}"]
        {
            assert_eq!(filled(text, 1, 42), text);
            assert!(Pattern::read(text.as_bytes()).is_fixed());
        }
        assert!(!Pattern::read(b"{index}").is_fixed());
    }

    #[test]
    fn random_numbers_depend_on_seed_and_index_alone_and_keep_their_bounds() {
        let text = "{random}/{random:10}/{random:10}";
        assert_eq!(filled(text, 7, 3), filled(text, 7, 3));
        assert_ne!(filled(text, 7, 3), filled(text, 8, 3));
        assert_ne!(filled(text, 7, 3), filled(text, 7, 4));
        let mut seen = [0; 10];
        (0..1000).for_each(|i| seen[filled("{random:10}", 1, i).parse::<usize>().unwrap()] += 1);
        // Each is binomial(1000, 0.1): beyond ±60 of 100 lies less than 1 in 10⁸.
        assert!(seen.iter().all(|count| (40..=160).contains(count)), "{seen:?}");
    }

    #[test]
    fn a_url_keeps_its_placeholders_and_its_other_escapes() {
        assert_eq!(unescaped("/a/%7Bindex%7D/%7Bb%7D/%7B"), "/a/{index}/%7Bb%7D/%7B");
        assert_eq!(unescaped("/%7Brandom:5%7D%7D"), "/{random:5}%7D");
        assert_eq!(unescaped("/%7B%7Bindex%7D"), "/%7B{index}");
    }
}
