//! Keys and commands.

use kendall_chat::name::Name;

use super::command::{COMMANDS, Command, Typed, candidates, common, read};
use super::contact::Link;
use super::{Effect, Focus, Model, Page, Ringing, Search};
use crate::action::Action;

/// How often a peer learns that the user types.
const TYPING_MS: u64 = 3000;

/// Keys, for the page of help.
const KEYS: [(&str, &str); 8] = [
    ("Enter", "send; Alt-Enter, Ctrl-J: a new line"),
    ("Alt-Up, Alt-Down", "the contact before, the next one"),
    ("Esc", "close what is open; to the list and back"),
    ("PageUp, PageDown", "through the conversation"),
    ("Up, Down", "what was typed before"),
    ("Tab", "complete a name or a command"),
    ("Alt-A, Alt-R", "take, refuse the call that rings"),
    ("Ctrl-D", "end the program; Ctrl-C clears the input"),
];

impl Model {
    /// Does what a key says.
    pub(super) fn act(&mut self, action: Action) {
        self.notice = None;
        let is_list = self.focus == Focus::Contacts;
        match action {
            Action::Escape => self.escape(),
            Action::NextContact => self.go(1),
            Action::PreviousContact => self.go(-1),
            Action::Up if is_list => self.go(-1),
            Action::Down if is_list => self.go(1),
            Action::Submit if is_list => self.focus = Focus::Input,
            Action::PageUp => self.page(1),
            Action::PageDown => self.page(-1),
            Action::FindBack => self.find(true),
            Action::FindOn => self.find(false),
            Action::Accept => self.answer(),
            Action::Refuse => self.refuse(),
            Action::Redraw => self.effects.push(Effect::Redraw),
            Action::DeleteOrEnd if self.editor.is_empty() => self.effects.push(Effect::Quit),
            Action::Interrupt => {
                if self.editor.is_empty() {
                    self.notice = Some("Ctrl-D or /quit ends the program".to_owned());
                }
                self.editor.take();
            }
            other => {
                self.focus = Focus::Input;
                self.type_in(other);
            }
        }
    }

    fn type_in(&mut self, action: Action) {
        match action {
            Action::Type(character) => {
                self.editor.insert(character.encode_utf8(&mut [0; 4]));
                self.report_typing();
            }
            Action::Newline => self.editor.insert("\n"),
            Action::Edit(edit) => self.editor.edit(edit),
            Action::DeleteOrEnd => self.editor.edit(crate::action::Edit::Delete),
            Action::Up => self.editor.up(),
            Action::Down => self.editor.down(),
            Action::Complete => self.complete(),
            Action::Submit => self.submit(),
            _ => {}
        }
    }

    fn report_typing(&mut self) {
        let Some(name) = self.current.clone() else { return };
        let is_connected =
            self.contacts.get(&name).is_some_and(|it| matches!(it.link, Link::Connected { .. }));
        let is_message = !self.editor.text().starts_with('/');
        let is_due = self.now_ms >= self.typing_ms + TYPING_MS;
        if is_connected && is_message && is_due && self.setup.receipts {
            self.typing_ms = self.now_ms;
            self.effects.push(Effect::Typing { name });
        }
    }

    fn complete(&mut self) {
        let (from, found) = candidates(self.editor.to_cursor(), self.contacts.keys().map(String::as_str));
        match found.as_slice() {
            [] => {}
            [only] => self.editor.complete(from, &format!("{only} ")),
            several => {
                self.editor.complete(from, &common(several));
                self.notice = Some(several.join("  "));
            }
        }
    }

    fn submit(&mut self) {
        if self.editor.text().trim().is_empty() {
            return;
        }
        match read(self.editor.text()) {
            Ok(Typed::Message(text)) => {
                if self.current.is_some() {
                    self.editor.take();
                }
                self.speak(text);
            }
            Ok(Typed::Command(command)) => {
                self.editor.take();
                self.command(command);
            }
            // The text stays, to be corrected.
            Err(error) => self.notice = Some(error),
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Help => self.help(),
            Command::Open(name) => _ = self.open(&name),
            Command::Call(name) => {
                if name.is_none_or(|name| self.open(&name)) {
                    self.call_current();
                }
            }
            Command::Accept => self.answer(),
            Command::Refuse => self.refuse(),
            Command::File(path) => self.offer(path),
            Command::Take(file) => self.take_file(file.as_deref()),
            Command::Decline(file) => self.cancel_file(file.as_deref(), true),
            Command::Cancel(file) => self.cancel_file(file.as_deref(), false),
            Command::Bye => self.bye(),
            Command::Who => self.effects.push(Effect::Who),
            Command::Search(Some(text)) => {
                self.search = Some(Search { text, at: None });
                self.find(true);
            }
            Command::Search(None) => self.find(true),
            Command::Safety => self.safety(),
            Command::Trust => self.trust(),
            Command::Block => self.block(true),
            Command::Unblock => self.block(false),
            Command::Remove => self.remove(),
            Command::Receipts(receipts) => {
                self.setup.receipts = receipts;
                let said = if receipts { "learn" } else { "do not learn" };
                self.notice = Some(format!("peers {said} what you have seen and that you type"));
            }
            Command::Top => self.page(i64::MAX),
            Command::Bottom => self.page(i64::MIN),
            Command::Quit => self.effects.push(Effect::Quit),
        }
    }

    fn help(&mut self) {
        let command = |(name, operand, what): &(&str, &str, &str)| {
            format!("{:<17} {what}", format!("/{name} {operand}").trim_end())
        };
        let key = |(key, what): &(&str, &str)| format!("{key:<17} {what}");
        let marks = "· waits  ↑ on its way  ✓ arrived  ✓✓ seen".to_owned();
        let lines = KEYS.iter().map(key).chain(COMMANDS.iter().map(command)).chain([marks]);
        self.page = Some(Page { title: "Help".to_owned(), lines: lines.collect(), above: 0 });
    }

    /// Shows the conversation with a contact; whether there is one.
    fn open(&mut self, typed: &str) -> bool {
        let name = match Name::new(typed) {
            Ok(name) => name.shown().to_owned(),
            Err(error) => {
                self.notice = Some(error.to_string());
                return false;
            }
        };
        if name == self.setup.name {
            self.notice = Some("this is your own name".to_owned());
            return false;
        }
        let is_there = self.ensure_contact(&name).is_some();
        if is_there {
            self.show(name);
        }
        is_there
    }

    fn call_current(&mut self) {
        let Some((name, contact)) = self.current() else {
            self.notice = Some("choose a contact first: /open NAME".to_owned());
            return;
        };
        let name = name.to_owned();
        match &contact.link {
            _ if contact.alarm.is_some() => {}
            Link::None | Link::Down { .. } => self.call(&name),
            Link::Calling => self.notice = Some(format!("{name} is being called")),
            Link::Connected { .. } => self.notice = Some(format!("you talk with {name} already")),
        }
    }

    fn answer(&mut self) {
        let Some(Ringing { call, name, talk }) = self.pick() else {
            self.notice = Some("no call rings".to_owned());
            return;
        };
        self.show(name.clone());
        self.take_call(call, &name, talk);
    }

    fn refuse(&mut self) {
        let Some(Ringing { call, .. }) = self.pick() else {
            self.notice = Some("no call rings".to_owned());
            return;
        };
        self.effects.push(Effect::Refuse { call });
    }

    /// The call that has rung longest, which the line above the input names.
    fn pick(&mut self) -> Option<Ringing> {
        (!self.ringing.is_empty()).then(|| self.ringing.remove(0))
    }

    fn bye(&mut self) {
        let Some((name, contact)) = self.current() else { return };
        let name = name.to_owned();
        match contact.link {
            Link::Connected { .. } => self.effects.push(Effect::Leave { name }),
            Link::None => self.notice = Some(format!("there is no talk with {name}")),
            Link::Calling | Link::Down { .. } => {
                self.effects.push(Effect::Cancel { name: name.clone() });
                self.forget_talk(&name, "is not called any more");
            }
        }
    }

    fn safety(&mut self) {
        let Some(name) = self.current.clone() else {
            self.notice = Some(format!("your safety number is {}", self.setup.number));
            return;
        };
        self.effects.push(Effect::Numbers { name });
    }

    fn trust(&mut self) {
        let Some(name) = self.current.clone() else { return };
        let Some(contact) = self.contacts.get_mut(&name) else { return };
        if contact.alarm.take().is_none() {
            self.notice = Some(format!("the key of {name} has not changed"));
            return;
        }
        self.effects.push(Effect::Trust { name: name.clone() });
        self.write_note(&name, format!("the next key of {name} is trusted"));
        self.call(&name);
    }

    fn block(&mut self, is_blocked: bool) {
        let Some(name) = self.current.clone() else { return };
        if let Some(contact) = self.contacts.get_mut(&name) {
            contact.is_blocked = is_blocked;
        }
        self.effects.push(Effect::Save);
        let said = if is_blocked { "are refused" } else { "ring again" };
        self.write_note(&name, format!("calls of {name} {said}"));
    }

    fn remove(&mut self) {
        let Some((name, contact)) = self.current() else { return };
        if contact.talk.is_some() {
            self.notice = Some("end the talk first: /bye".to_owned());
            return;
        }
        let name = name.to_owned();
        self.contacts.remove(&name);
        self.effects.extend([Effect::Unwatch(name), Effect::Save]);
        self.current = self.order().first().map(|name| (*name).to_owned());
    }
}
