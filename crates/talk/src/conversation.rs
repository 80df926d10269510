//! The state of one side of a conversation, without sockets and clocks.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use crate::event::{Event, FileId, MOST_WAITING, SendError, Violation};
use crate::files::{Files, Need};
use crate::protocol::{Frame, MOST_TEXT, TalkId, VERSION};

/// One side of a conversation, which outlives the connections that carry it: each begins with the numbers that either side
/// has received, and missing messages are sent again.
#[derive(Clone, Debug)]
pub struct Conversation {
    talk: TalkId,
    /// What the peer has not acknowledged, in order of the numbers.
    waiting: VecDeque<Message>,
    /// The number of the next message to be written.
    next: u64,
    /// The last message that was sent on this connection.
    sent: u64,
    /// The last message of the peer's.
    received: u64,
    /// The last of the peer's messages that our user has seen.
    read: u64,
    /// Whether one of the users has ended the talk: we say goodbye once nothing waits.
    leaving: bool,
    /// Whether the peer has said goodbye.
    left_by_peer: bool,
    /// Both sides have said goodbye.
    over: bool,
    link: Link,
    /// What has to be said of the peer's messages.
    due: Due,
    pub(crate) files: Files,
}

#[derive(Clone, Debug)]
struct Message {
    number: u64,
    sent_ms: u64,
    text: String,
}

/// The state of the present connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    /// No connection exists.
    Down,
    /// A connection exists, on which each side first says Hello.
    Open {
        /// Our Hello was sent.
        greeted: bool,
        /// The peer's has come.
        heard: bool,
        /// Our goodbye was sent.
        left: bool,
    },
}

/// Frames that are worth sending once, with their latest value.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    received: bool,
    read: bool,
    typing: bool,
}

impl Conversation {
    /// Makes a talk without messages.
    pub fn new(talk: TalkId) -> Self {
        Self {
            talk,
            waiting: VecDeque::new(),
            next: 1,
            sent: 0,
            received: 0,
            read: 0,
            leaving: false,
            left_by_peer: false,
            over: false,
            link: Link::Down,
            due: Due::default(),
            files: Files::default(),
        }
    }

    /// Takes a message and gives its number.
    ///
    /// # Errors
    /// Says why it cannot be taken.
    pub fn send(&mut self, sent_ms: u64, text: String) -> Result<u64, SendError> {
        match () {
            () if self.leaving => Err(SendError::Over),
            () if text.len() > MOST_TEXT => Err(SendError::TooLong(text.len())),
            () if self.waiting.len() >= MOST_WAITING => Err(SendError::Full),
            () => {
                let number = self.next;
                self.next += 1;
                self.waiting.push_back(Message { number, sent_ms, text });
                Ok(number)
            }
        }
    }

    /// Notes that the user has read the peer's messages up to this one.
    pub fn read(&mut self, through: u64) {
        let through = through.min(self.received);
        self.due.read |= through > self.read;
        self.read = self.read.max(through);
    }

    /// The user is typing.
    pub fn typing(&mut self) {
        self.due.typing = true;
    }

    /// Ends the talk, once all that was written has arrived. Files end at once; which were open.
    pub fn leave(&mut self) -> Vec<FileId> {
        self.leaving = true;
        self.files.close()
    }

    /// What of a file is to be sent where nothing else is.
    pub(crate) fn need(&self) -> Option<Need> {
        let can_send = matches!(self.link, Link::Open { heard: true, left: false, .. });
        self.files.need().filter(|_| can_send)
    }

    /// Whether both sides have said goodbye.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// How many messages the peer has not acknowledged.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// A new connection exists, in place of any before.
    pub fn connected(&mut self) {
        // A peer that did not hear our answer to its goodbye says it again.
        self.left_by_peer = false;
        self.link = Link::Open { greeted: false, heard: false, left: false };
        self.files.connected();
        // The Hello says what was received.
        self.due = Due { received: false, read: self.read > 0, typing: false };
    }

    /// The connection is lost.
    pub fn disconnected(&mut self) {
        self.link = Link::Down;
    }

    /// The next frame to send.
    pub fn outgoing(&mut self) -> Option<Frame> {
        let Link::Open { greeted, heard, left } = &mut self.link else { return None };
        if !std::mem::replace(greeted, true) {
            return Some(Frame::Hello { version: VERSION, talk: self.talk, received: self.received });
        }
        if !*heard {
            return None;
        }
        // Also after our goodbye: the peer says its own once all that it wrote has arrived.
        if std::mem::take(&mut self.due.received) {
            return Some(Frame::Received(self.received));
        }
        if *left {
            return None;
        }
        if std::mem::take(&mut self.due.read) {
            return Some(Frame::Read(self.read));
        }
        if let Some(Message { number, sent_ms, text }) = self.unsent().cloned() {
            self.sent = number;
            return Some(Frame::Message { number, sent_ms, text });
        }
        if std::mem::take(&mut self.due.typing) {
            return Some(Frame::Typing);
        }
        if let Some((file, frame)) = self.files.outgoing().filter(|_| !self.leaving) {
            return Some(Frame::File { file, frame });
        }
        (self.leaving && self.waiting.is_empty()).then(|| self.say_goodbye())
    }

    fn say_goodbye(&mut self) -> Frame {
        self.link = Link::Open { greeted: true, heard: true, left: true };
        self.over = self.left_by_peer;
        Frame::Bye
    }

    /// The first message that was not sent on this connection.
    fn unsent(&self) -> Option<&Message> {
        let first = self.waiting.front()?.number;
        // Numbers have no gaps.
        let place = (self.sent + 1).saturating_sub(first);
        self.waiting.get(usize::try_from(place).ok()?)
    }

    /// Takes a frame of the peer's.
    ///
    /// # Errors
    /// Says how the peer breaks the protocol. The connection should then be closed.
    pub fn handle(&mut self, frame: Frame) -> Result<Option<Event>, Violation> {
        let Link::Open { heard, .. } = &mut self.link else { return Err(Violation::OutOfTurn) };
        match frame {
            Frame::Hello { version, talk, received } if !*heard => {
                *heard = true;
                self.greeted(version, talk, received).map(Some)
            }
            Frame::Hello { .. } => Err(Violation::OutOfTurn),
            _ if !*heard => Err(Violation::OutOfTurn),
            Frame::Received(through) => self.delivered(through),
            _ if self.left_by_peer => Err(Violation::OutOfTurn),
            Frame::Message { number, sent_ms, text } => {
                let expected = self.received + 1;
                if number != expected {
                    return Err(Violation::Number { found: number, expected });
                }
                self.received = number;
                self.due.received = true;
                Ok(Some(Event::Message { number, sent_ms, text }))
            }
            Frame::Read(through) if through < self.next => Ok(Some(Event::Read(through))),
            Frame::Read(through) => Err(Violation::NeverSent(through)),
            Frame::Typing => Ok(Some(Event::Typing)),
            Frame::Bye => {
                self.leaving = true;
                self.left_by_peer = true;
                self.over = matches!(self.link, Link::Open { left: true, .. });
                Ok(Some(Event::Bye))
            }
            Frame::File { file, frame } => self.files.handle(file, frame),
        }
    }

    fn greeted(&mut self, version: u8, talk: TalkId, received: u64) -> Result<Event, Violation> {
        if version != VERSION {
            return Err(Violation::Version(version));
        }
        if talk != self.talk {
            return Err(Violation::OtherTalk);
        }
        // What was acknowledged once cannot be sent again.
        let acknowledged = self.waiting.front().map_or(self.next, |message| message.number) - 1;
        if !(acknowledged..self.next).contains(&received) {
            return Err(Violation::NeverSent(received));
        }
        self.acknowledge(received);
        self.sent = received;
        Ok(Event::Connected { delivered: received })
    }

    fn delivered(&mut self, through: u64) -> Result<Option<Event>, Violation> {
        if through > self.sent {
            return Err(Violation::NeverSent(through));
        }
        Ok(self.acknowledge(through).then_some(Event::Delivered(through)))
    }

    /// Forgets what has arrived; whether that is something new.
    fn acknowledge(&mut self, through: u64) -> bool {
        let before = self.waiting.len();
        while self.waiting.front().is_some_and(|message| message.number <= through) {
            self.waiting.pop_front();
        }
        self.waiting.len() < before
    }
}
