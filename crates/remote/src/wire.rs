//! Fields of messages on byte slices: integers in little-endian, bytes after their length. No I/O.

/// A message does not have the fields that its kind has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the peer sent a message ({0}) that is not valid; check that both sides run the same version of kendall"
)]
pub struct BadMessage(pub &'static str);

/// Reads fields from the front of a body; every function fails where the body is too short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    message: &'static str,
}

impl<'a> Fields<'a> {
    /// The fields of a message; its name is for errors.
    pub(crate) fn new(body: &'a [u8], message: &'static str) -> Self {
        Self { rest: body, message }
    }

    /// The error for this message.
    pub(crate) fn bad(&self) -> BadMessage {
        BadMessage(self.message)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], BadMessage> {
        let (front, rest) = self.rest.split_first_chunk().ok_or(BadMessage(self.message))?;
        self.rest = rest;
        Ok(*front)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, BadMessage> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    pub(crate) fn u16(&mut self) -> Result<u16, BadMessage> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, BadMessage> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, BadMessage> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(crate) fn i64(&mut self) -> Result<i64, BadMessage> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    /// Bytes after their length in two bytes.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], BadMessage> {
        let length = usize::from(self.u16()?);
        let (front, rest) = self.rest.split_at_checked(length).ok_or(BadMessage(self.message))?;
        self.rest = rest;
        Ok(front)
    }

    /// A text after its length; what is not UTF-8 is replaced.
    pub(crate) fn text(&mut self) -> Result<String, BadMessage> {
        Ok(String::from_utf8_lossy(self.bytes()?).into_owned())
    }

    /// Fails where fields are left over.
    pub(crate) fn end(self) -> Result<(), BadMessage> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.bad()) }
    }
}

/// Appends bytes after their length. Longer ones than 65,535 bytes are cut, which only texts for people can be.
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(&bytes[..usize::from(length)]);
}
