//! The client's input that the server's side has not taken yet, numbered, to be sent again on a new connection. No I/O.

use std::collections::VecDeque;

use crate::shell::protocol::{INPUT_WINDOW, MAX_DATA};

/// Input between the terminal and the server.
#[derive(Debug, Default)]
pub(crate) struct InputWindow {
    /// Input from offset `start`, up to [`INPUT_WINDOW`] bytes.
    bytes: VecDeque<u8>,
    start: u64,
    sent: u64,
    ended: bool,
    end_sent: bool,
}

/// What is to be sent next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Input from this offset.
    Input(u64, Vec<u8>),
    /// The end of the input at this offset.
    End(u64),
}

impl InputWindow {
    /// How many bytes may be read from the terminal.
    pub(crate) fn free(&self) -> usize {
        if self.ended { 0 } else { INPUT_WINDOW - self.bytes.len() }
    }

    /// Adds input; at most [`Self::free`] bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        debug_assert!(bytes.len() <= self.free(), "the caller asks first");
        self.bytes.extend(bytes);
    }

    /// The input has ended.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    /// The server's program has everything before this offset. False where that was never sent.
    pub(crate) fn taken(&mut self, offset: u64) -> bool {
        if offset > self.sent {
            return false;
        }
        let count = usize::try_from(offset.saturating_sub(self.start)).unwrap_or(usize::MAX);
        self.bytes.drain(..count.min(self.bytes.len()));
        self.start = self.start.max(offset);
        true
    }

    /// A new connection: the server has received everything before this offset. False where that was never sent or was
    /// given up already.
    pub(crate) fn resume(&mut self, received: u64) -> bool {
        let known = (self.start..=self.sent).contains(&received);
        if known {
            self.sent = received;
            self.end_sent = false;
        }
        known
    }

    /// A session that is attached anew: our input begins at this offset.
    pub(crate) fn begin(&mut self, received: u64) {
        self.start = received;
        self.sent = received;
        self.end_sent = false;
    }

    /// What to send next.
    pub(crate) fn next(&mut self) -> Option<Next> {
        let from = usize::try_from(self.sent - self.start).unwrap_or(usize::MAX).min(self.bytes.len());
        let to = self.bytes.len().min(from + MAX_DATA);
        if from < to {
            let offset = self.sent;
            self.sent += (to - from) as u64;
            return Some(Next::Input(offset, self.bytes.range(from..to).copied().collect()));
        }
        (self.ended && !std::mem::replace(&mut self.end_sent, true)).then_some(Next::End(self.sent))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// A server that takes what it gets, over connections that are lost at any point.
        #[test]
        fn input_arrives_once_over_any_losses(
            steps in proptest::collection::vec((0..4_u8, proptest::collection::vec(any::<u8>(), 0..50)), 0..60),
        ) {
            let (mut window, mut all) = (InputWindow::default(), Vec::new());
            let (mut received, mut taken, mut on_the_way) = (Vec::new(), 0, VecDeque::new());
            for (step, bytes) in steps {
                match step {
                    0 => {
                        window.push(&bytes);
                        all.extend_from_slice(&bytes);
                    }
                    1 => on_the_way.extend(window.next()),
                    2 => if let Some(Next::Input(offset, bytes)) = on_the_way.pop_front() {
                        prop_assert_eq!(offset, received.len() as u64);
                        received.extend(bytes);
                        taken += (received.len() as u64 - taken) / 2;
                        prop_assert!(window.taken(taken));
                    }
                    _ => {
                        on_the_way.clear();
                        prop_assert!(window.resume(received.len() as u64));
                    }
                }
            }
            window.end();
            on_the_way.extend(std::iter::from_fn(|| window.next()));
            for next in on_the_way {
                match next {
                    Next::Input(_, bytes) => received.extend(bytes),
                    Next::End(offset) => prop_assert_eq!(offset, all.len() as u64),
                }
            }
            prop_assert_eq!(received, all);
        }
    }

    #[test]
    fn what_was_never_sent_cannot_be_taken_and_the_end_is_sent_again() {
        let mut window = InputWindow::default();
        window.push(b"abc");
        assert!(!window.taken(1) && !window.resume(1));
        window.end();
        assert_eq!(window.next(), Some(Next::Input(0, b"abc".to_vec())));
        assert_eq!((window.next(), window.next()), (Some(Next::End(3)), None));
        assert!(window.resume(3));
        assert_eq!((window.next(), window.free()), (Some(Next::End(3)), 0));
        assert!(window.taken(3) && window.resume(3) && !window.resume(2));
    }
}
