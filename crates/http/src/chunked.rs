//! The chunked transfer coding (RFC 9112, section 7.1), decoded as bytes arrive.
//!
//! Strict where a lenient reader and a lenient server may disagree about the end of an answer: lines end with CR LF, and a
//! size is one to sixteen hexadecimal digits.

/// The most bytes in the line of a chunk's size, extensions included.
const LONGEST_SIZE_LINE: u32 = 4096;
/// The most bytes in all trailers.
const MOST_TRAILERS: u32 = 64 * 1024;

/// The state of a chunked body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chunks {
    at: At,
    /// Bytes of the line of a size, or of all trailers, up to now.
    framing: u32,
}

#[derive(Clone, Copy, Debug)]
enum At {
    /// In the size of a chunk.
    Size { value: u64, digits: u32 },
    /// Behind the size, up to the end of the line.
    Extension { value: u64 },
    /// At the LF behind a size.
    SizeEnd { value: u64 },
    /// In the bytes of a chunk.
    Data { left: u64 },
    /// At the CR behind a chunk.
    DataCr,
    /// At the LF behind a chunk.
    DataLf,
    /// At the start of a line behind the last chunk.
    Trailer,
    /// Within such a line.
    TrailerLine,
    /// At the LF of such a line.
    TrailerLf,
    /// At the last LF of the body.
    End,
}

/// The result of decoding some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkProgress {
    /// The decoder has consumed all bytes, and expects more.
    All,
    /// The body ended after this many bytes.
    Ended(usize),
    /// The body is not validly chunked.
    Malformed,
}

impl Chunks {
    pub(crate) fn new() -> Self {
        Self { at: At::Size { value: 0, digits: 0 }, framing: 0 }
    }

    /// Decodes more bytes; those of the body itself go to `body`.
    pub(crate) fn take(&mut self, bytes: &[u8], mut body: impl FnMut(&[u8])) -> ChunkProgress {
        let mut i = 0;
        while i < bytes.len() {
            if let At::Data { left } = self.at {
                let here = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len() - i);
                body(&bytes[i..i + here]);
                i += here;
                let left = left - here as u64;
                self.at = if left == 0 { At::DataCr } else { At::Data { left } };
                continue;
            }
            match self.framing(bytes[i]) {
                Some(At::End) if bytes[i] == b'\n' => return ChunkProgress::Ended(i + 1),
                Some(next) => self.at = next,
                None => return ChunkProgress::Malformed,
            }
            i += 1;
        }
        ChunkProgress::All
    }

    /// The state after a byte of the framing; `None` if the byte is not valid there.
    fn framing(&mut self, byte: u8) -> Option<At> {
        self.framing += 1;
        let limit = match self.at {
            At::Trailer | At::TrailerLine | At::TrailerLf | At::End => MOST_TRAILERS,
            _ => LONGEST_SIZE_LINE,
        };
        if self.framing > limit {
            return None;
        }
        match (self.at, byte) {
            (At::Size { value, digits: 1.. }, b'\r') => Some(At::SizeEnd { value }),
            (At::Size { value, digits: 1.. }, b';' | b' ' | b'\t') => Some(At::Extension { value }),
            (At::Size { value, digits: digits @ ..16 }, _) => {
                let digit = char::from(byte).to_digit(16)?;
                Some(At::Size { value: value << 4 | u64::from(digit), digits: digits + 1 })
            }
            (At::Extension { value }, b'\r') => Some(At::SizeEnd { value }),
            (At::Extension { .. }, b'\n') => None,
            (At::Extension { value }, _) => Some(At::Extension { value }),
            (At::SizeEnd { value }, b'\n') => {
                self.framing = 0;
                Some(if value == 0 { At::Trailer } else { At::Data { left: value } })
            }
            (At::DataCr, b'\r') => Some(At::DataLf),
            (At::DataLf, b'\n') => {
                self.framing = 0;
                Some(At::Size { value: 0, digits: 0 })
            }
            (At::Trailer, b'\r') => Some(At::End),
            (At::Trailer | At::TrailerLine, b'\n') => None,
            (At::TrailerLine, b'\r') => Some(At::TrailerLf),
            (At::Trailer | At::TrailerLine, _) => Some(At::TrailerLine),
            (At::TrailerLf, b'\n') => Some(At::Trailer),
            (At::End, b'\n') => Some(At::End),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(text: &[u8]) -> (ChunkProgress, Vec<u8>) {
        let mut body = Vec::new();
        let taken = Chunks::new().take(text, |bytes| body.extend_from_slice(bytes));
        (taken, body)
    }

    #[test]
    fn chunks_extensions_and_trailers_are_taken() {
        let text = b"5;name=\"a b\"\r\nhello\r\nA \r\n, world...\r\n000\r\nx-sum: 1\r\ny:\r\n\r\nHTTP/1.1";
        assert_eq!(taken(text), (ChunkProgress::Ended(text.len() - 8), b"hello, world...".to_vec()));
        assert_eq!(taken(b"0\r\n\r\n"), (ChunkProgress::Ended(5), Vec::new()));
        assert_eq!(taken(b"3\r\nab"), (ChunkProgress::All, b"ab".to_vec()));
    }

    #[test]
    fn a_body_that_another_reader_could_end_elsewhere_is_malformed() {
        let long = format!("1;{}\r\n", "x".repeat(5000));
        let trailers = format!("0\r\n{}", "a: b\r\n".repeat(20_000));
        for text in [
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "0x5\r\n",
            " 5\r\n",
            "5\nhello",
            "5\r\nhellox",
            "5\r\nhello\n",
            "5\r\nhello\rx",
            "11111111111111111\r\n",
            "0\r\n\n",
            "0\r\na: b\n\r\n",
            "5;a\nb",
            "0\r\na\rb",
            "5\rx",
            "+5\r\n",
            &long,
            &trailers,
        ] {
            assert_eq!(taken(text.as_bytes()).0, ChunkProgress::Malformed, "{text:.40}");
        }
        assert_eq!(taken(b"ffffffffffffffff\r\nabc"), (ChunkProgress::All, b"abc".to_vec()));
    }
}
