//! Frames: how messages are separated on a stream. No I/O; a frame is a kind, a length and a body.
//!
//! | bytes | what |
//! | --- | --- |
//! | 4 | length of the body, little-endian |
//! | 1 | kind |
//! | length | body |
//!
//! Frames of bulk data are handed out in pieces as they arrive, so that their bytes are not copied once more. All others are
//! handed out whole.

/// The bytes before the body of a frame.
pub const HEADER: usize = 5;

/// The longest body of a frame.
pub const MAX_BODY: usize = 1 << 20;

/// Appends a frame.
///
/// # Panics
/// Where the body is longer than [`MAX_BODY`], which encoders bound.
pub fn append(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    let start = begin(out, kind);
    out.extend_from_slice(body);
    end(out, start);
}

/// Begins a frame whose body is appended afterwards, and returns where it began.
pub fn begin(out: &mut Vec<u8>, kind: u8) -> usize {
    let start = out.len();
    out.extend_from_slice(&[0, 0, 0, 0, kind]);
    start
}

/// Ends the frame that began at `start`.
///
/// # Panics
/// Where the body is longer than [`MAX_BODY`], which encoders bound.
pub fn end(out: &mut [u8], start: usize) {
    let length = out.len() - start - HEADER;
    assert!(length <= MAX_BODY, "encoders bound the body of a frame");
    let length = u32::try_from(length).expect("the bound fits");
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// A frame, or a part of the stream, that a [`FrameDecoder`] returns.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// A whole frame.
    Whole {
        /// The kind of the frame.
        kind: u8,
        /// The body of the frame.
        body: &'a [u8],
    },
    /// The next bytes of a frame of bulk data.
    Data(&'a [u8]),
}

/// A peer sent a frame longer than [`MAX_BODY`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer sent a frame of {0} bytes; the longest allowed has {MAX_BODY}")]
pub struct FrameTooLong(pub u32);

/// Finds frames in a stream of bytes that arrives in arbitrary pieces.
#[derive(Debug)]
pub struct FrameDecoder {
    data_kind: u8,
    /// The part of a frame that has arrived, header included; bounded by the longest frame.
    partial: Vec<u8>,
    /// Whether `partial` holds a frame that was handed out.
    spent: bool,
    data_left: usize,
}

impl FrameDecoder {
    /// Makes a decoder that returns frames of `data_kind` in pieces.
    pub fn new(data_kind: u8) -> Self {
        Self { data_kind, partial: Vec::new(), spent: false, data_left: 0 }
    }

    /// The beginning of a frame that has not been handed out, so that another decoder can go on with it.
    pub(crate) fn into_partial(self) -> Vec<u8> {
        if self.spent { Vec::new() } else { self.partial }
    }

    /// Takes bytes from the front of `input` and returns the next frame or piece, or `None` once more input is needed.
    ///
    /// # Errors
    /// [`FrameTooLong`]; the stream is of no use after that.
    pub fn next<'a, 'i: 'a>(&'a mut self, input: &mut &'i [u8]) -> Result<Option<Frame<'a>>, FrameTooLong> {
        if std::mem::take(&mut self.spent) {
            self.partial.clear();
        }
        loop {
            if self.data_left > 0 {
                if input.is_empty() {
                    return Ok(None);
                }
                let piece = take(input, self.data_left);
                self.data_left -= piece.len();
                return Ok(Some(Frame::Data(piece)));
            }
            // Most frames lie whole in the input and are handed out from there.
            if self.partial.is_empty() && input.len() >= HEADER {
                let (length, kind) = header(input)?;
                if kind == self.data_kind {
                    take(input, HEADER);
                    self.data_left = length;
                    continue;
                }
                if input.len() >= HEADER + length {
                    take(input, HEADER);
                    return Ok(Some(Frame::Whole { kind, body: take(input, length) }));
                }
            }
            if self.partial.len() < HEADER {
                let missing = HEADER - self.partial.len();
                self.partial.extend_from_slice(take(input, missing));
                if self.partial.len() < HEADER {
                    return Ok(None);
                }
            }
            let (length, kind) = header(&self.partial)?;
            if kind == self.data_kind {
                self.partial.clear();
                self.data_left = length;
                continue;
            }
            let missing = HEADER + length - self.partial.len();
            self.partial.extend_from_slice(take(input, missing));
            if self.partial.len() < HEADER + length {
                return Ok(None);
            }
            self.spent = true;
            return Ok(Some(Frame::Whole { kind, body: &self.partial[HEADER..] }));
        }
    }
}

/// The length and the kind in a header.
fn header(bytes: &[u8]) -> Result<(usize, u8), FrameTooLong> {
    let length = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    match usize::try_from(length) {
        Ok(fits) if fits <= MAX_BODY => Ok((fits, bytes[4])),
        _ => Err(FrameTooLong(length)),
    }
}

/// Takes up to `most` bytes from the front.
fn take<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (front, rest) = input.split_at(most.min(input.len()));
    *input = rest;
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Frames as (kind, body), with pieces of data joined.
    fn decode(pieces: &[&[u8]]) -> Result<Vec<(u8, Vec<u8>)>, FrameTooLong> {
        let (mut decoder, mut frames) = (FrameDecoder::new(9), Vec::<(u8, Vec<u8>)>::new());
        for piece in pieces {
            let mut input = *piece;
            while let Some(frame) = decoder.next(&mut input)? {
                match frame {
                    Frame::Whole { kind, body } => frames.push((kind, body.to_vec())),
                    Frame::Data(bytes) => match frames.last_mut() {
                        Some((9, body)) => body.extend_from_slice(bytes),
                        _ => frames.push((9, bytes.to_vec())),
                    },
                }
            }
        }
        Ok(frames)
    }

    proptest! {
        #[test]
        fn frames_survive_any_division_of_the_stream(
            bodies in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..40), 1..8),
            piece in 1_usize..50,
        ) {
            let mut bytes = Vec::new();
            // Data between other frames, so that pieces of one frame can be joined.
            let sent: Vec<_> = bodies.into_iter().zip([9_u8, 3].into_iter().cycle()).map(|(b, k)| (k, b)).collect();
            for (kind, body) in &sent {
                append(&mut bytes, *kind, body);
            }
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            prop_assert_eq!(decode(&pieces).unwrap(), sent);
        }

        #[test]
        fn no_input_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300), piece in 1_usize..50) {
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            _ = decode(&pieces);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_refused_before_its_body() {
        let mut bytes = (u32::try_from(MAX_BODY).unwrap() + 1).to_le_bytes().to_vec();
        bytes.push(3);
        assert_eq!(decode(&[&bytes]), Err(FrameTooLong(1 << 20 | 1)));
    }
}
