//! Numbers and bytes of messages, in network byte order.

/// An unsigned integer of a message.
pub(crate) trait Number: Sized {
    fn put(self, out: &mut Vec<u8>);
    fn take(input: &mut Input<'_>) -> Option<Self>;
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl Number for $type {
            fn put(self, out: &mut Vec<u8>) {
                out.extend(self.to_be_bytes());
            }

            fn take(input: &mut Input<'_>) -> Option<Self> {
                input.array().map(Self::from_be_bytes)
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 }

pub(crate) fn put(out: &mut Vec<u8>, number: impl Number) {
    number.put(out);
}

/// The bytes of a message that are not read yet.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const BYTES: usize>(&mut self) -> Option<[u8; BYTES]> {
        self.take(BYTES)?.try_into().ok()
    }

    pub(crate) fn number<N: Number>(&mut self) -> Option<N> {
        N::take(self)
    }

    /// Fails if bytes are left.
    pub(crate) fn end(&self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
}
