//! A session's input that its program has not taken yet. No I/O.

use std::collections::VecDeque;

use crate::shell::protocol::INPUT_WINDOW;

/// What a terminal's user types to end the input.
const END_OF_TRANSMISSION: u8 = 4;

/// While less input than this has been taken, the client learns of it with the next output.
const TELL_AFTER: u64 = 32 * 1024;

/// Numbered input from any number of connections in turn.
#[derive(Debug, Default)]
pub(crate) struct InputQueue {
    bytes: VecDeque<u8>,
    /// Offset of the next byte that is accepted.
    accepted: u64,
    /// The offset before which the client knows that all is taken.
    reported: u64,
    ended: bool,
}

impl InputQueue {
    /// Offset of the next byte that is accepted.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted
    }

    /// Takes input in. False where it is not what comes next, or more than the client may send.
    pub(crate) fn accept(&mut self, offset: u64, bytes: &[u8]) -> bool {
        let fits = self.bytes.len() + bytes.len() <= INPUT_WINDOW;
        let is_next = offset == self.accepted && !self.ended;
        if fits && is_next {
            self.bytes.extend(bytes);
            self.accepted += bytes.len() as u64;
        }
        fits && is_next
    }

    /// The input ends. False where input is missing before the end.
    pub(crate) fn end(&mut self, offset: u64, has_terminal: bool) -> bool {
        if offset != self.accepted {
            return false;
        }
        if !std::mem::replace(&mut self.ended, true) && has_terminal {
            // Not counted, because the client did not send it.
            self.bytes.push_back(END_OF_TRANSMISSION);
        }
        true
    }

    /// A client that attaches anew begins another input.
    pub(crate) fn reopen(&mut self) {
        self.ended = false;
    }

    /// What the client knows may have been lost with its connection.
    pub(crate) fn acknowledge_again(&mut self) {
        self.reported = 0;
    }

    /// The next bytes for the program.
    pub(crate) fn front(&self) -> &[u8] {
        let (front, back) = self.bytes.as_slices();
        if front.is_empty() { back } else { front }
    }

    /// The program has taken the next bytes.
    pub(crate) fn taken(&mut self, count: usize) {
        self.bytes.drain(..count.min(self.bytes.len()));
    }

    /// Whether all input has been taken and has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.ended && self.bytes.is_empty()
    }

    /// The offset before which all is taken, where the client should know; `with_output` where a frame leaves anyway.
    pub(crate) fn acknowledgement(&mut self, with_output: bool) -> Option<u64> {
        let waiting = (self.bytes.len() as u64).min(self.accepted);
        let taken = self.accepted - waiting;
        let news = taken.saturating_sub(self.reported);
        let due = news >= TELL_AFTER || (with_output && news > 0);
        due.then(|| {
            self.reported = taken;
            taken
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_next_and_fits_is_accepted() {
        let mut queue = InputQueue::default();
        assert!(queue.accept(0, b"abc") && !queue.accept(2, b"c") && !queue.accept(4, b"e"));
        assert!(!queue.accept(3, &vec![0; INPUT_WINDOW - 2]));
        assert!(queue.accept(3, &vec![0; INPUT_WINDOW - 3]));
        assert_eq!(queue.acknowledgement(true), None);
        queue.taken(10);
        assert_eq!(
            (queue.acknowledgement(false), queue.acknowledgement(true), queue.acknowledgement(true)),
            (None, Some(10), None)
        );
        queue.taken(INPUT_WINDOW - 10);
        assert_eq!(queue.acknowledgement(false), Some(INPUT_WINDOW as u64));
        assert!(!queue.end(5, false) && queue.end(INPUT_WINDOW as u64, false) && queue.is_over());
        assert!(!queue.accept(INPUT_WINDOW as u64, b"x"));
    }

    #[test]
    fn the_end_of_input_is_typed_on_a_terminal() {
        let mut queue = InputQueue::default();
        assert!(queue.accept(0, b"a") && queue.end(1, true) && queue.end(1, true));
        assert_eq!((queue.front(), queue.is_over()), (&b"a\x04"[..], false));
        queue.taken(2);
        assert!(queue.is_over() && queue.acknowledgement(true) == Some(1));
        queue.reopen();
        assert!(queue.accept(1, b"b"));
    }
}
