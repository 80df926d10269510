//! Characters that are written with a backslash.

use super::reader::Parser;
use crate::error::PatternError;

impl Parser<'_> {
    /// After a backslash: an escape that stands for one character, inside and outside of a class.
    pub(crate) fn escaped_character(&mut self, at: usize, letter: char) -> Result<char, PatternError> {
        Ok(match letter {
            't' => '\t',
            'n' => '\n',
            'r' => '\r',
            'f' => '\x0c',
            'a' => '\x07',
            'e' => '\x1b',
            'c' => match self.next() {
                Some(c) if c.is_ascii() => char::from(c as u8 ^ 64),
                _ => return Err(self.error(at, "a control character is written `\\cA`")),
            },
            '0' => {
                let most = if matches!(self.peek(), Some('0'..='3')) { 3 } else { 2 };
                self.digits(at, 8, 1..=most)?
            }
            'x' if self.eat('{') => {
                let c = self.digits(at, 16, 1..=6)?;
                if !self.eat('}') {
                    return Err(self.error(at, "this `{` has no closing `}`"));
                }
                c
            }
            'x' => self.digits(at, 16, 2..=2)?,
            'u' => self.utf16(at)?,
            c if c.is_ascii_alphanumeric() => {
                return Err(
                    self.error(at, &format!("`\\{c}` has no meaning here; write `{c}` for the character"))
                );
            }
            c => c,
        })
    }

    fn digits(
        &mut self,
        at: usize,
        radix: u32,
        count: std::ops::RangeInclusive<usize>,
    ) -> Result<char, PatternError> {
        let value = self.code(at, radix, count)?;
        char::from_u32(value).ok_or_else(|| self.error(at, &format!("{value:#x} is not a character")))
    }

    fn code(
        &mut self,
        at: usize,
        radix: u32,
        count: std::ops::RangeInclusive<usize>,
    ) -> Result<u32, PatternError> {
        let mut value = 0;
        for seen in 0..*count.end() {
            match self.peek().and_then(|c| c.to_digit(radix)) {
                Some(digit) => value = value * radix + digit,
                None if seen >= *count.start() => break,
                None => {
                    let base = if radix == 8 { "octal" } else { "hexadecimal" };
                    return Err(self.error(at, &format!("{} {base} digits are missing", count.start())));
                }
            }
            self.next += 1;
        }
        Ok(value)
    }

    /// Four digits; two such where the first is a surrogate.
    fn utf16(&mut self, at: usize) -> Result<char, PatternError> {
        let mut units = vec![self.code(at, 16, 4..=4)? as u16];
        if (0xd800..0xdc00).contains(&units[0]) && self.eat_all("\\u") {
            units.push(self.code(at, 16, 4..=4)? as u16);
        }
        let mut chars = char::decode_utf16(units).map_while(Result::ok);
        match (chars.next(), chars.next()) {
            (Some(c), None) => Ok(c),
            _ => Err(self.error(at, "half a surrogate pair is not a character")),
        }
    }
}
