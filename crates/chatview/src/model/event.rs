//! Events that reach the model, and effects that it requests.

use kendall_talk::FileId;

use crate::action::Action;
use crate::history::Entry;

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A key.
    Action(Action),
    /// Pasted text.
    Paste(String),
    /// The screen has another size.
    #[expect(missing_docs, reason = "the names say it")]
    Resize { columns: u16, rows: u16 },
    /// Time has passed: Unix time in milliseconds.
    #[expect(missing_docs, reason = "the name says it")]
    Tick { now_ms: u64 },
    /// The user is logged in, and this program receives the user's calls.
    Online,
    /// The directory server is lost or not reached.
    Offline {
        /// The reason for the end.
        why: String,
    },
    /// Whether a contact is there.
    #[expect(missing_docs, reason = "the names say it")]
    Presence { name: String, is_there: bool },
    /// All users who are present.
    There(Vec<String>),
    /// A call rings here.
    Incoming {
        /// The number of the call.
        call: u64,
        /// The caller.
        name: String,
        /// The talk that the caller begins or goes on with.
        talk: u128,
    },
    /// A call no longer rings here.
    #[expect(missing_docs, reason = "the name says it")]
    RingingEnded { call: u64 },
    /// A contact was not reached.
    CallFailed {
        /// The contact.
        name: String,
        /// The talk that the call was for.
        talk: u128,
        /// The reason.
        why: String,
        /// The contact did not want it.
        is_refusal: bool,
    },
    /// A contact's key is new.
    #[expect(missing_docs, reason = "the names say it")]
    NewKey { name: String, number: String },
    /// A contact's key is not the one known before.
    #[expect(missing_docs, reason = "the names say it")]
    ChangedKey { name: String, number: String },
    /// An event of a talk.
    #[expect(missing_docs, reason = "the names say it")]
    Talk { name: String, talk: u128, event: TalkEvent },
    /// A note of the program, about a contact or in general.
    #[expect(missing_docs, reason = "the names say it")]
    Note { name: Option<String>, text: String },
}

/// An event of a talk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TalkEvent {
    /// The two programs are connected, directly or by the server's relay.
    #[expect(missing_docs, reason = "the name says it")]
    Connected { is_relayed: bool },
    /// A message of the contact.
    #[expect(missing_docs, reason = "the names say it")]
    Message { number: u64, at_ms: u64, text: String },
    /// The contact's program has all messages up to this one.
    Delivered(u64),
    /// The contact has read all messages up to this one.
    Read(u64),
    /// The contact is typing.
    Typing,
    /// An event of a file.
    #[expect(missing_docs, reason = "the names say it")]
    File { file: FileId, event: FileEvent },
    /// The contact has ended the talk.
    Bye,
    /// The connection is lost; on another one the talk can go on.
    Lost(String),
    /// The talk cannot go on.
    Broken(String),
    /// Both sides have ended the talk.
    Over,
}

/// An event about a file of a talk.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant says what its fields are for")]
pub enum FileEvent {
    /// One side offers a file of this name and size.
    Offered { name: String, size: u64 },
    /// The number of bytes of the file that have arrived.
    Progress(u64),
    /// The file is complete, and at this place if the contact sent it.
    Whole { place: Option<String> },
    /// The contact declines the file, or withdraws it.
    Dropped,
    /// The file cannot be read or written, here or at the contact.
    Failed(String),
}

/// An effect that the driver must carry out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant says what its fields are for")]
pub enum Effect {
    /// Connect to the directory server and log in.
    Connect,
    /// Learn whether a contact is there, from now on.
    Watch(String),
    /// Learn it no more.
    Unwatch(String),
    /// Request the users who are present.
    Who,
    /// Begin a talk, in place of any before.
    Begin { name: String, talk: u128 },
    /// Call a contact for a talk that has begun.
    Call { name: String, talk: u128 },
    /// Give up the call to a contact.
    Cancel { name: String },
    /// Take a call for a talk that has begun.
    Answer { call: u64, name: String, talk: u128 },
    /// Refuse a call.
    Refuse { call: u64 },
    /// Send a message in the talk with a contact.
    Send { name: String, at_ms: u64, text: String },
    /// The user has read messages up to this number of the talk.
    Read { name: String, through: u64 },
    /// The user is typing.
    Typing { name: String },
    /// Open a file and offer it in the talk with a contact.
    Offer { name: String, path: String },
    /// Take a file of a contact's, to keep it under this title.
    Take { name: String, file: u64, title: String },
    /// Refuse a file, take it back, or end it on its way.
    CancelFile { name: String, file: FileId },
    /// End the talk with a contact, once all messages have arrived.
    Leave { name: String },
    /// Forget the talk with a contact.
    Drop { name: String },
    /// Say the safety numbers of the contact and of the user.
    Numbers { name: String },
    /// Forget the known key of a contact: the next one is trusted.
    Trust { name: String },
    /// Keep the list of contacts.
    Save,
    /// Keep the messages.
    Record { name: String, entry: Entry },
    /// Ring the terminal's bell.
    Bell,
    /// Draw the whole screen again.
    Redraw,
    /// End the program.
    Quit,
}
