//! Messages of Java's `DataOutputStream.writeUTF`: two bytes for the length, big-endian, and then modified UTF-8, as the
//! specification of `java.io.DataInput` describes it.
//!
//! It differs from UTF-8 in two things: U+0000 is written as the two bytes C0 80, and a character beyond U+FFFF as the two halves
//! of its surrogate pair, three bytes each.

/// The length of the prefix of a message.
pub const LENGTH_BYTES: usize = 2;
/// The longest message, without its length.
pub const MESSAGE_BYTES: usize = 0xFFFF;

/// A message with its length before it; `None` if it has more than [`MESSAGE_BYTES`].
pub fn encode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = vec![0; LENGTH_BYTES];
    bytes.reserve(text.len());
    for letter in text.chars() {
        match letter {
            '\0' => bytes.extend([0xC0, 0x80]),
            '\u{1_0000}'.. => {
                letter.encode_utf16(&mut [0; 2]).iter().for_each(|&half| bytes.extend(three(half)));
            }
            _ => bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    let length = u16::try_from(bytes.len() - LENGTH_BYTES).ok()?;
    bytes[..LENGTH_BYTES].copy_from_slice(&length.to_be_bytes());
    Some(bytes)
}

/// The message that `bytes` begin with, without its length; `None` if it is incomplete.
pub fn message(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.get(..usize::from(u16::from_be_bytes(*length)))
}

/// The text of a message; `None` if it is not modified UTF-8, or has half a surrogate pair.
pub fn decode(message: &[u8]) -> Option<String> {
    let mut units = Vec::with_capacity(message.len());
    let mut rest = message;
    while let Some((&first, others)) = rest.split_first() {
        let following = match first {
            0x00 => return None,
            0x01..=0x7F => 0,
            0xC0..=0xDF => 1,
            0xE0..=0xEF => 2,
            _ => return None,
        };
        let mut unit = u16::from(first) & [0x7F, 0x1F, 0x0F][following];
        for &byte in others.get(..following)? {
            if byte & 0xC0 != 0x80 {
                return None;
            }
            unit = unit << 6 | u16::from(byte & 0x3F);
        }
        let is_shortest =
            following == 0 || unit >= [0, 0x80, 0x800][following] || (following, unit) == (1, 0);
        if !is_shortest {
            return None;
        }
        units.push(unit);
        rest = &others[following..];
    }
    String::from_utf16(&units).ok()
}

/// A unit of UTF-16 beyond U+07FF in three bytes.
fn three(unit: u16) -> [u8; 3] {
    [0xE0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3F) as u8, 0x80 | (unit & 0x3F) as u8]
}
