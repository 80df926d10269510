//! The state and the decisions of the program, without terminal, network, clock or file: [`Model::update`] takes an event and
//! returns the effects.

mod command;
mod contact;
mod event;
mod files;
mod keys;
pub(crate) mod layout;
mod place;
mod talks;
#[cfg(test)]
mod tests;
mod transfer;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;

use crate::editor::Editor;
use crate::history::Entry;
pub use contact::{Contact, Delivery, From, Link, Message};
pub use event::{Effect, Event, FileEvent, TalkEvent};

/// Messages of a contact that are kept in memory; the history has more.
pub(crate) const MOST_MESSAGES: usize = 10_000;

/// Contacts at most: the directory lets a session watch as many.
pub(crate) const MOST_CONTACTS: usize = 200;

/// Calls that ring at once; further ones are refused.
const MOST_RINGING: usize = 16;

/// The identity of the user, and the display of times.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The user's name.
    pub name: String,
    /// The directory server.
    pub server: String,
    /// The safety number of the user's key.
    pub number: String,
    /// The zone in which times are shown.
    pub zone: TimeZone,
    /// Whether peers learn which messages the user has read, and that the user types.
    pub receipts: bool,
    /// A random number: the names of talks begin there.
    pub first_talk: u128,
}

/// The state of the program.
#[derive(Clone, Debug)]
pub struct Model {
    pub(crate) setup: Setup,
    pub(crate) contacts: BTreeMap<String, Contact>,
    /// The contact whose conversation is shown.
    pub(crate) current: Option<String>,
    pub(crate) directory: Directory,
    pub(crate) editor: Editor,
    pub(crate) focus: Focus,
    /// Columns and rows of the screen.
    pub(crate) size: (u16, u16),
    pub(crate) now_ms: u64,
    /// Calls that wait for an answer, the oldest first.
    pub(crate) ringing: Vec<Ringing>,
    /// What the program says until the next key.
    pub(crate) notice: Option<String>,
    /// A page that is shown in place of the conversation.
    pub(crate) page: Option<Page>,
    pub(crate) search: Option<Search>,
    typing_ms: u64,
    effects: Vec<Effect>,
}

/// The connection to the directory server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Directory {
    Connecting { attempts: u32 },
    Online,
    Offline { why: String, again_ms: u64, attempts: u32 },
}

/// What keys work on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Focus {
    Input,
    Contacts,
}

/// A call that rings here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ringing {
    pub(crate) call: u64,
    pub(crate) name: String,
    pub(crate) talk: u128,
}

/// Lines to read, and how many of them are above the screen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) title: String,
    pub(crate) lines: Vec<String>,
    pub(crate) above: usize,
}

/// A text to search for, and the message that contains it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    pub(crate) text: String,
    pub(crate) at: Option<u64>,
}

/// How urgent a line above the input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Urgency {
    Alarm,
    Call,
    Notice,
}

/// The state of a contact from an earlier run of the program.
#[derive(Clone, Debug, Default)]
pub struct Remembered {
    /// The name.
    pub name: String,
    /// Whether calls are refused.
    pub is_blocked: bool,
    /// The history of the contact.
    pub history: Vec<Entry>,
}

impl Model {
    /// A program that has just started, with the contacts of earlier runs. Its first effect is that of the first
    /// [`Event::Tick`].
    pub fn new(setup: Setup, remembered: Vec<Remembered>) -> Self {
        let mut contacts = BTreeMap::new();
        for Remembered { name, is_blocked, history } in remembered {
            let mut contact = Contact { is_blocked, ..Contact::default() };
            history.into_iter().for_each(|entry| contact.remember(entry));
            contacts.insert(name, contact);
        }
        let mut model = Self {
            setup,
            contacts,
            current: None,
            directory: Directory::Offline { why: String::new(), again_ms: 0, attempts: 0 },
            editor: Editor::default(),
            focus: Focus::Input,
            size: (80, 24),
            now_ms: 0,
            ringing: Vec::new(),
            notice: None,
            page: None,
            search: None,
            typing_ms: 0,
            effects: Vec::new(),
        };
        model.current = model.order().first().map(|name| (*name).to_owned());
        model
    }

    /// Takes an event; returns the effects, in order.
    pub fn update(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Action(action) => self.act(action),
            Event::Paste(text) => {
                self.focus = Focus::Input;
                self.editor.insert(&text);
            }
            Event::Resize { columns, rows } => self.size = (columns, rows),
            Event::Tick { now_ms } => {
                self.now_ms = now_ms;
                self.redial();
            }
            Event::Note { name: Some(name), text } if self.contacts.contains_key(&name) => {
                self.write_note(&name, text);
            }
            Event::Note { text, .. } => self.notice = Some(text),
            Event::There(names) => self.show_who(&names),
            other => self.hear(other),
        }
        self.keep_in_view();
        std::mem::take(&mut self.effects)
    }

    /// A contact.
    pub fn contact(&self, name: &str) -> Option<&Contact> {
        self.contacts.get(name)
    }

    /// The contact whose conversation is shown.
    pub fn current(&self) -> Option<(&str, &Contact)> {
        let name = self.current.as_deref()?;
        Some((name, self.contacts.get(name)?))
    }

    /// The contacts to remember: their names, and whether they are blocked.
    pub fn remembered(&self) -> impl Iterator<Item = (&str, bool)> {
        self.contacts.iter().map(|(name, contact)| (name.as_str(), contact.is_blocked))
    }

    /// How many messages of the user have not arrived.
    pub fn waiting(&self) -> usize {
        self.contacts.values().map(|contact| contact.waiting().count()).sum()
    }

    /// The contacts in the order of the list: the one that was active last is first.
    pub(crate) fn order(&self) -> Vec<&str> {
        let mut names: Vec<&String> = self.contacts.keys().collect();
        names.sort_by_key(|name| std::cmp::Reverse(self.contacts[*name].active_ms));
        names.into_iter().map(String::as_str).collect()
    }

    /// What is written above the input, the most urgent first.
    pub(crate) fn banners(&self) -> Vec<(Urgency, String)> {
        let mut banners = Vec::new();
        for (name, contact) in &self.contacts {
            if let Some(number) = &contact.alarm {
                banners.push((
                    Urgency::Alarm,
                    format!(
                        "WARNING: {name} has another key than before, or another person answers in that name. Nothing is sent. \
                         Compare {number} with {name} by telephone; if it is right, /open {name} and /trust"
                    ),
                ));
            }
        }
        banners.extend(self.ringing.first().map(|ringing| {
            let others = match self.ringing.len() - 1 {
                0 => String::new(),
                more => format!(" ({more} more)"),
            };
            (Urgency::Call, format!("{} calls{others}: Alt-A or /accept, Alt-R or /refuse", ringing.name))
        }));
        banners.extend(self.notice.clone().map(|text| (Urgency::Notice, text)));
        banners
    }

    /// The contact of a name, which is added where it is not on the list.
    fn ensure_contact(&mut self, name: &str) -> Option<&mut Contact> {
        if !self.contacts.contains_key(name) {
            if self.contacts.len() >= MOST_CONTACTS {
                self.notice = Some(format!(
                    "there are {MOST_CONTACTS} contacts already: /remove one before you add {name}"
                ));
                return None;
            }
            self.contacts.insert(name.to_owned(), Contact::default());
            self.effects.push(Effect::Save);
            if self.directory == Directory::Online {
                self.effects.push(Effect::Watch(name.to_owned()));
            }
        }
        self.contacts.get_mut(name)
    }

    /// Adds a message to a conversation, which stays where it is scrolled to; its number.
    fn add(&mut self, name: &str, message: Message) -> Option<u64> {
        let contact = self.contacts.get_mut(name)?;
        let number = contact.push(message);
        if contact.scroll > 0 {
            let added = layout::message_rows(self, name, number).len();
            if let Some(contact) = self.contacts.get_mut(name) {
                contact.scroll += added;
            }
        }
        Some(number)
    }

    /// Writes what the program has to say into a conversation.
    fn write_note(&mut self, name: &str, text: String) {
        let at_ms = self.now_ms;
        self.add(name, Message { from: From::Program, at_ms, text });
    }

    fn show_who(&mut self, names: &[String]) {
        let mut lines: Vec<String> = names.iter().filter(|name| **name != self.setup.name).cloned().collect();
        if lines.is_empty() {
            lines.push("no other user is there".to_owned());
        }
        self.page = Some(Page { title: "Users who are there".to_owned(), lines, above: 0 });
    }

    /// Marks what is on the screen as seen.
    fn keep_in_view(&mut self) {
        let Some(name) = self.current.clone() else { return };
        let is_shown = self.page.is_none()
            && (self.focus == Focus::Input || layout::areas(self).contacts.width < self.size.0);
        let wanted = self.contacts.get(&name).map_or(0, |contact| contact.scroll);
        let scroll = layout::scroll_within(self, wanted);
        let Some(contact) = self.contacts.get_mut(&name) else { return };
        contact.scroll = scroll;
        if contact.scroll == 0 && is_shown && contact.unread > 0 {
            contact.unread = 0;
            if let Some(talk) = contact.talk.as_ref().filter(|_| self.setup.receipts) {
                let through = talk.received;
                self.effects.push(Effect::Read { name, through });
            }
        }
    }
}

impl Contact {
    /// Takes what the history has.
    fn remember(&mut self, entry: Entry) {
        match entry {
            Entry::Said { own, at_ms, text } => {
                let from = if own { From::Own(Delivery::Waiting) } else { From::Peer };
                self.push(Message { from, at_ms, text });
            }
            Entry::Delivered { at_ms } => {
                let of = |it: &&mut Message| it.at_ms == at_ms && matches!(it.from, From::Own(_));
                if let Some(message) = self.messages.iter_mut().rev().find(|it| of(it)) {
                    message.from = From::Own(Delivery::Delivered);
                }
            }
        }
    }
}
