//! The criteria of a good answer: its status, and its body.
//!
//! Bodies are checked as they arrive, in constant memory: a text is searched for by Knuth, Morris and Pratt (1977), which
//! never goes back, so it is found wherever the network cuts the body in two.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use kendall_record::Outcome;
use sha2::{Digest, Sha256};

/// Statuses by which a server reports that it accepts no more requests for now (RFC 9110, 15.6.4, and RFC 6585, 4).
const TURNED_AWAY: [u16; 2] = [429, 503];

/// The criteria of a good answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expect {
    /// The statuses that are good.
    pub statuses: Statuses,
    /// The text that the body must contain.
    pub text: Option<Text>,
    /// The length of the body, in bytes.
    pub length: Option<u64>,
    /// The body's SHA-256.
    pub sha256: Option<Sum>,
}

/// Statuses: "200", "200-299", "200,204,300-399". The default is all below 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statuses(Vec<RangeInclusive<u16>>);

/// A text to search for in a body, not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    bytes: Vec<u8>,
    /// For each length of a prefix of the text, the longest shorter prefix that it ends with.
    falls_back: Vec<usize>,
}

/// A SHA-256 digest, written as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum([u8; 32]);

impl Default for Statuses {
    fn default() -> Self {
        Self(vec![100..=399])
    }
}

impl Statuses {
    fn contain(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }
}

impl FromStr for Statuses {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("must be statuses such as 200 or 200-299,304, from 100 to 999, not {text:?}");
        let status = |text: &str| {
            let digits = text.trim();
            let plain = digits.len() == 3 && digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u16>().ok().filter(|&status| plain && status >= 100).ok_or_else(refuse)
        };
        let range = |text: &str| match text.split_once('-') {
            Some((from, to)) => Ok(status(from)?..=status(to)?),
            None => status(text).map(|status| status..=status),
        };
        let ranges = text.split(',').map(range).collect::<Result<Vec<_>, String>>()?;
        if ranges.iter().any(RangeInclusive::is_empty) { Err(refuse()) } else { Ok(Self(ranges)) }
    }
}

impl FromStr for Text {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bytes = text.as_bytes().to_vec();
        if bytes.is_empty() {
            return Err("must not be empty, because every body contains an empty text".into());
        }
        let mut falls_back = vec![0; bytes.len() + 1];
        let mut length = 0;
        for (i, &byte) in bytes.iter().enumerate().skip(1) {
            while length > 0 && bytes[length] != byte {
                length = falls_back[length];
            }
            length += usize::from(bytes[length] == byte);
            falls_back[i + 1] = length;
        }
        Ok(Self { bytes, falls_back })
    }
}

impl Text {
    /// The length of the prefix of the text with which the body ends after one more byte, where it was `length` before.
    fn next(&self, mut length: usize, byte: u8) -> usize {
        while length > 0 && self.bytes[length] != byte {
            length = self.falls_back[length];
        }
        length + usize::from(self.bytes[length] == byte)
    }
}

impl FromStr for Sum {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("must be the 64 hexadecimal digits of a SHA-256, not {text:?}");
        let digits: Vec<u8> = text
            .chars()
            .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
            .collect::<Option<_>>()
            .ok_or_else(refuse)?;
        let bytes: Vec<u8> =
            digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
        if digits.len() == 64 { bytes.try_into().map(Self).map_err(|_| refuse()) } else { Err(refuse()) }
    }
}

/// The state of the check of one answer.
#[derive(Clone, Default)]
pub(crate) struct AnswerCheck {
    status: u16,
    length: u64,
    /// The length of the prefix of the expected text with which the body ends, until the text was found.
    matched: usize,
    found: bool,
    sum: Option<Sha256>,
}

impl fmt::Debug for AnswerCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, length, found, .. } = self;
        write!(f, "{status}, {length} bytes, text found: {found}")
    }
}

impl AnswerCheck {
    /// A check that begins with the head of an answer.
    pub(crate) fn head(expect: &Expect, status: u16) -> Self {
        Self { status, sum: expect.sha256.map(|_| Sha256::new()), ..Self::default() }
    }

    /// The answer's status.
    pub(crate) fn status(&self) -> u16 {
        self.status
    }

    /// Checks more of the body.
    pub(crate) fn body(&mut self, expect: &Expect, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let Some(sum) = &mut self.sum {
            sum.update(bytes);
        }
        let Some(text) = expect.text.as_ref().filter(|_| !self.found) else { return };
        for &byte in bytes {
            self.matched = text.next(self.matched, byte);
            if self.matched == text.bytes.len() {
                self.found = true;
                return;
            }
        }
    }

    /// Whether the body is longer than expected, so that the rest of it changes nothing.
    pub(crate) fn is_too_long(&self, expect: &Expect) -> bool {
        expect.length.is_some_and(|length| self.length > length)
    }

    /// The outcome of the answer, which is complete or too long. If it is not as expected, 429 and 503 mean that the server
    /// rejected the request.
    pub(crate) fn judge(&mut self, expect: &Expect) -> Outcome {
        let Expect { statuses, text, length, sha256 } = expect;
        if !statuses.contain(self.status) {
            return if TURNED_AWAY.contains(&self.status) { Outcome::Refused } else { Outcome::Wrong };
        }
        let sum = self.sum.take().map(|sum| Sum(sum.finalize().into()));
        let right = (text.is_none() || self.found)
            && length.is_none_or(|length| length == self.length)
            && (sha256.is_none() || sum == *sha256);
        if right { Outcome::Answered } else { Outcome::Wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn judged(expect: &Expect, status: u16, parts: &[&[u8]]) -> Outcome {
        let mut seen = AnswerCheck::head(expect, status);
        parts.iter().for_each(|part| seen.body(expect, part));
        seen.judge(expect)
    }

    #[test]
    fn statuses_are_single_ones_and_ranges() {
        let contain = |text: &str, status| text.parse::<Statuses>().unwrap().contain(status);
        assert!(contain("200", 200) && !contain("200", 201));
        assert!(contain("200-204, 404", 203) && contain("200-204,404", 404) && !contain("200-204,404", 205));
        for text in ["", "20", "2xx", "99", "1000", "300-200", "200,", "-200", "+20"] {
            assert!(text.parse::<Statuses>().unwrap_err().contains("200-299"), "{text}");
        }
    }

    #[test]
    fn an_answer_is_judged_by_status_first_and_then_by_all_that_is_expected() {
        let any = Expect::default();
        assert_eq!(judged(&any, 200, &[]), Outcome::Answered);
        assert_eq!(judged(&any, 399, &[]), Outcome::Answered);
        assert_eq!(judged(&any, 400, &[]), Outcome::Wrong);
        assert_eq!(judged(&any, 503, &[]), Outcome::Refused);
        let missing = Expect { statuses: "503".parse().unwrap(), ..Expect::default() };
        assert_eq!(judged(&missing, 503, &[]), Outcome::Answered);
        let sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; // FIPS 180-2, B.1: "abc"
        let exact = Expect {
            length: Some(3),
            sha256: Some(sum.parse().unwrap()),
            text: Some("bc".parse().unwrap()),
            ..Expect::default()
        };
        assert_eq!(judged(&exact, 200, &[b"a", b"b", b"c"]), Outcome::Answered);
        for body in ["abd", "abcd", "ab", ""] {
            assert_eq!(judged(&exact, 200, &[body.as_bytes()]), Outcome::Wrong, "{body}");
        }
        // A rejection may be longer than the expected answer.
        assert_eq!(judged(&exact, 503, &[b"abcd"]), Outcome::Refused);
        for text in [&sum[1..], "", &format!("{sum}0"), &sum.replace('b', "x")] {
            assert!(text.parse::<Sum>().is_err());
        }
        assert!("".parse::<Text>().is_err());
    }

    proptest! {
        #[test]
        fn a_text_is_found_exactly_where_it_is_however_the_body_is_cut(
            needle in "[ab]{1,6}", body in "[ab]{0,40}", cut in 0..=40usize,
        ) {
            let expect = Expect { text: Some(needle.parse().unwrap()), ..Expect::default() };
            let (left, right) = body.as_bytes().split_at(cut.min(body.len()));
            let found = judged(&expect, 200, &[left, right]) == Outcome::Answered;
            prop_assert_eq!(found, body.contains(&needle));
        }
    }
}
