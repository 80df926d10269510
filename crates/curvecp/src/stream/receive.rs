//! The stream that arrives: reassembly, and how far the peer may send.

use super::ring::Ring;
use super::{Ranges, Read};
use crate::message::{End, MAX_POSITION};

/// The window of the reference, and ours until the peer shows that it wants more.
pub(crate) const FIRST_WINDOW: u64 = 131_072;
/// Islands beyond the first gap that are remembered; data that would begin another is dropped and sent again.
const MOST_ISLANDS: usize = 1024;

/// What became of the data of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The message brought bytes, or the end, that had not arrived before.
    New,
    /// All of it had arrived before.
    Duplicate,
    /// The message is beyond the window or contradicts earlier data: it must be dropped and not acknowledged.
    Refused,
}

/// Bytes by position until the application reads them.
#[derive(Debug)]
pub(crate) struct ReceiveStream {
    ring: Ring,
    /// The application has read everything before this.
    read: u64,
    /// Everything before this has arrived.
    contiguous: u64,
    /// What has arrived beyond the first gap.
    islands: Ranges,
    end: Option<(u64, End)>,
    window: u64,
    max_window: u64,
    discards: bool,
}

impl ReceiveStream {
    pub(crate) fn new(max_window: u64) -> Self {
        Self {
            ring: Ring::default(),
            read: 0,
            contiguous: 0,
            islands: Ranges::default(),
            end: None,
            window: FIRST_WINDOW.min(max_window),
            max_window,
            discards: false,
        }
    }

    /// Takes the data of one message.
    pub(crate) fn accept(&mut self, position: u64, data: &[u8], end: Option<End>) -> Arrival {
        let stop = position.saturating_add(data.len() as u64);
        if stop > self.limit() || stop >= MAX_POSITION || self.contradicts(stop, end) {
            return Arrival::Refused;
        }
        let ends = end.is_some() && self.end.is_none();
        let is_new = stop > self.contiguous && !data.is_empty() && !self.islands.contains(position, stop);
        if is_new {
            if position > self.contiguous && self.islands.len() >= MOST_ISLANDS {
                return Arrival::Refused;
            }
            self.store(position, data);
        }
        if let Some(end) = end.filter(|_| ends) {
            self.end = Some((stop, end));
        }
        if is_new || ends { Arrival::New } else { Arrival::Duplicate }
    }

    /// Whether a message's last byte disagrees with where the stream is known to end, or to go on.
    fn contradicts(&self, stop: u64, end: Option<End>) -> bool {
        let farthest = self.islands.end().unwrap_or(self.contiguous);
        match (self.end, end) {
            (Some((total, _)), None) => stop > total,
            (Some((total, _)), Some(_)) => stop != total,
            (None, Some(_)) => stop < farthest,
            (None, None) => false,
        }
    }

    fn store(&mut self, position: u64, data: &[u8]) {
        let stop = position + data.len() as u64;
        let (position, data) = if position < self.contiguous {
            (self.contiguous, &data[(self.contiguous - position) as usize..])
        } else {
            (position, data)
        };
        if !self.discards {
            let held = self.islands.end().unwrap_or(self.contiguous);
            self.ring.reserve(self.read, held, stop);
            self.ring.put(position, data);
        }
        if position > self.contiguous {
            self.islands.insert(position, stop);
        } else {
            self.contiguous = stop;
            while let Some(island) = self.islands.take_at(self.contiguous) {
                self.contiguous = self.contiguous.max(island);
            }
        }
        if self.discards {
            self.read = self.contiguous;
        }
    }

    /// Moves bytes to the application.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Read {
        let length = into.len().min((self.contiguous - self.read) as usize);
        if length > 0 {
            self.ring.get(self.read, &mut into[..length]);
            self.read += length as u64;
            return Read::Bytes(length);
        }
        match self.end {
            Some((total, end)) if self.read == total => match end {
                End::Success => Read::Finished,
                End::Failure => Read::Failed,
            },
            _ => Read::Blocked,
        }
    }

    /// Throws away what has arrived and what will, so that a peer is not held up by a reader that is gone.
    pub(crate) fn discard(&mut self) {
        self.discards = true;
        self.read = self.contiguous;
        self.ring.clear();
    }

    /// The first acknowledged range ends here: everything before has arrived, the end counted as one byte.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.contiguous + u64::from(self.is_complete())
    }

    /// What has arrived beyond [`acknowledged`](Self::acknowledged).
    pub(crate) fn islands(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.islands.iter()
    }

    pub(crate) fn has_gaps(&self) -> bool {
        !self.islands.is_empty()
    }

    /// Whether everything up to the end of the stream has arrived.
    pub(crate) fn is_complete(&self) -> bool {
        self.end.is_some_and(|(total, _)| total == self.contiguous)
    }

    /// Bytes that wait for the application.
    pub(crate) fn unread(&self) -> u64 {
        self.contiguous - self.read
    }

    /// The peer may send bytes before this position.
    pub(crate) fn limit(&self) -> u64 {
        self.read + self.window
    }

    /// The size of the window in bytes.
    pub(crate) fn window(&self) -> u64 {
        self.window
    }

    /// Doubles the window, if the application keeps up with what arrives.
    pub(crate) fn widen(&mut self) {
        if self.unread() <= self.window / 2 {
            self.window = (self.window * 2).min(self.max_window);
        }
    }

    /// Whether memory is held for nothing.
    pub(crate) fn can_trim(&self) -> bool {
        self.ring.capacity() > 0 && self.read == self.contiguous && self.islands.is_empty()
    }

    /// Gives back the memory that holds nothing.
    pub(crate) fn trim(&mut self) {
        if self.can_trim() {
            self.ring.clear();
            self.islands.clear();
        }
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.ring.capacity() + self.islands.len() * size_of::<(u64, u64)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read_all(stream: &mut ReceiveStream) -> (Vec<u8>, Read) {
        let mut all = vec![];
        let mut piece = [0; 700];
        loop {
            match stream.read(&mut piece) {
                Read::Bytes(length) => all.extend(&piece[..length]),
                rest => return (all, rest),
            }
        }
    }

    #[test]
    fn the_end_counts_as_one_byte_once_everything_before_it_is_there() {
        let mut stream = ReceiveStream::new(1 << 20);
        assert_eq!(stream.accept(20, b"abcd", Some(End::Success)), Arrival::New);
        assert_eq!((stream.acknowledged(), stream.islands().next()), (0, Some((20, 24))));
        assert_eq!(stream.accept(0, &[7; 20], None), Arrival::New);
        assert_eq!(stream.acknowledged(), 25);
        assert_eq!(stream.accept(20, b"abcd", Some(End::Success)), Arrival::Duplicate);
        assert_eq!(read_all(&mut stream).1, Read::Finished);
    }

    #[test]
    fn data_beyond_the_window_or_the_end_is_refused() {
        let mut stream = ReceiveStream::new(1 << 20);
        assert_eq!(stream.accept(FIRST_WINDOW - 1, b"ab", None), Arrival::Refused);
        assert_eq!(stream.accept(u64::MAX - 1, b"ab", None), Arrival::Refused);
        assert_eq!(stream.accept(10, b"ab", Some(End::Failure)), Arrival::New);
        assert_eq!(stream.accept(12, b"c", None), Arrival::Refused, "after the end");
        assert_eq!(stream.accept(9, b"b", Some(End::Success)), Arrival::Refused, "another end");
        assert_eq!(stream.accept(0, &[1; 10], None), Arrival::New);
        assert_eq!(read_all(&mut stream), ([vec![1; 10], b"ab".to_vec()].concat(), Read::Failed));
    }

    #[test]
    fn memory_is_taken_as_data_arrives_and_can_be_given_back_when_it_is_read() {
        let mut stream = ReceiveStream::new(1 << 20);
        assert_eq!(stream.memory_bytes(), 0);
        for at in 0..120 {
            stream.accept(at * 1024, &[1; 1024], None);
        }
        assert_eq!(stream.memory_bytes(), 131_072);
        stream.trim();
        assert_eq!(read_all(&mut stream).0.len(), 120 * 1024);
        stream.trim();
        assert_eq!(stream.memory_bytes(), 0);
    }

    #[test]
    fn islands_are_bounded() {
        let mut stream = ReceiveStream::new(1 << 20);
        let refused =
            (0..2_000_u64).filter(|i| stream.accept(1 + 2 * i, b"x", None) == Arrival::Refused).count();
        assert_eq!(refused, 2_000 - MOST_ISLANDS);
    }

    proptest! {
        /// Pieces in any order, overlapping, repeated: what is read is the stream.
        #[test]
        fn pieces_in_any_order_give_the_stream(
            total in 0_usize..6_000,
            cuts in prop::collection::vec((0_usize..6_000, 1_usize..1_024), 0..40),
            seed in any::<u64>(),
        ) {
            let bytes: Vec<u8> = (0..total).map(|i| (i as u64).wrapping_mul(seed | 1).to_le_bytes()[3]).collect();
            let mut stream = ReceiveStream::new(1 << 20);
            let cover = (0..total).step_by(900).map(|at| (at, 900));
            let mut out = vec![];
            let mut last = Read::Blocked;
            for (start, length) in cuts.into_iter().chain(cover) {
                let start = start.min(total);
                let stop = (start + length).min(total);
                let end = (stop == total).then_some(End::Success);
                prop_assert!(stream.accept(start as u64, &bytes[start..stop], end) != Arrival::Refused);
                let (more, state) = read_all(&mut stream);
                out.extend(more);
                last = state;
            }
            if total == 0 {
                stream.accept(0, &[], Some(End::Success));
                last = read_all(&mut stream).1;
            }
            prop_assert_eq!(out, bytes);
            prop_assert_eq!(last, Read::Finished);
            prop_assert_eq!(stream.acknowledged(), total as u64 + 1);
        }
    }
}
