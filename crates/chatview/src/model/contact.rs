//! One contact: presence, the talk, and the messages.

use std::collections::VecDeque;

use super::MOST_MESSAGES;
use super::transfer::Transfer;

/// A contact.
#[derive(Clone, Debug, Default)]
pub struct Contact {
    /// Whether the contact is present, as far as the directory has reported.
    pub presence: Option<bool>,
    /// The instant at which the contact was last present, as Unix time in milliseconds.
    pub last_seen_ms: Option<u64>,
    /// Calls of the contact are refused without a question.
    pub is_blocked: bool,
    /// The way to the contact.
    pub link: Link,
    /// The safety number of a key that is not the one known before.
    pub alarm: Option<String>,
    /// The number of messages that the user has not read.
    pub unread: usize,
    /// The instant at which the contact was last typing.
    pub typing_ms: Option<u64>,
    /// What was said, in order.
    pub(crate) messages: VecDeque<Message>,
    /// How many messages before the first of them are only in the history. Numbers of messages begin at 1.
    pub(crate) earlier: u64,
    /// The first message that is new since the user last saw the conversation.
    pub(crate) new_from: Option<u64>,
    /// How many rows are hidden below the conversation.
    pub(crate) scroll: usize,
    /// The talk that goes on, and what was given to it.
    pub(crate) talk: Option<Talk>,
    /// Files that are offered or on their way in it.
    pub(crate) transfers: Vec<Transfer>,
    /// Failed attempts to reach the contact since the last success.
    pub(crate) attempts: u32,
    /// When something last happened, for the order of the list.
    pub(crate) active_ms: u64,
}

/// The way to a contact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Link {
    /// There is no talk with the contact.
    #[default]
    None,
    /// A call of ours rings at the contact, or the two programs are about to meet.
    Calling,
    /// The two programs are connected.
    Connected {
        /// Packets go through the server's relay.
        is_relayed: bool,
    },
    /// The contact was lost or not reached.
    Down {
        /// The reason why there is no connection.
        why: String,
        /// The time of the next call, as Unix time in milliseconds.
        again_ms: u64,
    },
}

/// What was given to a talk. The number of a message in it is its place, from 1 on.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    pub(crate) id: u128,
    /// The number of the next message.
    pub(crate) next: u64,
    /// The messages that the contact has not read: number in the talk and in the conversation.
    pub(crate) given: VecDeque<(u64, u64)>,
    /// The last message of the contact.
    pub(crate) received: u64,
    /// This side calls again at once; the other one later.
    pub(crate) is_caller: bool,
    /// The last message of the conversation that it was given.
    pub(crate) through: u64,
}

/// A message, or a note of this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The author of the message.
    pub from: From,
    /// The time of the message, as Unix time in milliseconds.
    pub at_ms: u64,
    /// What.
    pub text: String,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The user.
    Own(Delivery),
    /// The contact.
    Peer,
    /// This program.
    Program,
}

/// The progress of a user's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Delivery {
    /// The message waits on this machine.
    Waiting,
    /// The contact's program has received the message.
    Delivered,
    /// The contact has read the message.
    Read,
}

impl Talk {
    pub(crate) fn new(id: u128, is_caller: bool) -> Self {
        Self { id, next: 1, given: VecDeque::new(), received: 0, is_caller, through: 0 }
    }
}

impl Contact {
    /// The messages that are kept in memory, in order.
    pub fn messages(&self) -> impl DoubleEndedIterator<Item = &Message> + ExactSizeIterator {
        self.messages.iter()
    }

    /// Adds a message; its number.
    pub(crate) fn push(&mut self, message: Message) -> u64 {
        self.active_ms = self.active_ms.max(message.at_ms);
        self.messages.push_back(message);
        if self.messages.len() > MOST_MESSAGES {
            self.messages.pop_front();
            self.earlier += 1;
        }
        self.earlier + self.messages.len() as u64
    }

    /// The message with a number, if it is still in memory.
    pub(crate) fn message(&mut self, number: u64) -> Option<&mut Message> {
        let at = number.checked_sub(self.earlier + 1)?;
        self.messages.get_mut(usize::try_from(at).ok()?)
    }

    /// The user's messages that have not arrived, with their numbers.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = (u64, &Message)> {
        let numbered = (self.earlier + 1..).zip(&self.messages);
        numbered.filter(|(_, message)| message.from == From::Own(Delivery::Waiting))
    }

    /// Whether messages wait for the contact.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting().next().is_some()
    }

    /// Whether the contact has said this already, in a talk that broke off before it could be acknowledged.
    pub(crate) fn has_said(&self, at_ms: u64, text: &str) -> bool {
        let repeats = |it: &&Message| it.from == From::Peer && it.at_ms == at_ms && it.text == text;
        self.messages.iter().rev().take(2048).any(|it| repeats(&it))
    }

    /// Messages up to a number of the talk have come this far; those that had not, by their numbers.
    pub(crate) fn come(&mut self, through: u64, to: Delivery) -> Vec<u64> {
        let Some(talk) = &mut self.talk else { return Vec::new() };
        let come: Vec<u64> =
            talk.given.iter().filter(|(given, _)| *given <= through).map(|(_, number)| *number).collect();
        if to == Delivery::Read {
            talk.given.retain(|(given, _)| *given > through);
        }
        let raised = |number: &u64| match self.message(*number).map(|it| &mut it.from) {
            Some(From::Own(delivery)) if *delivery < to => {
                *delivery = to;
                true
            }
            _ => false,
        };
        come.into_iter().filter(raised).collect()
    }
}
