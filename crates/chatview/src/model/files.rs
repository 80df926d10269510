//! Files of talks: each has a line in the conversation that shows its progress.

use kendall_chatcli::size;
use kendall_talk::{FileId, safe_name};

use super::contact::{From, Message};
use super::transfer::Transfer;
use super::{Effect, FileEvent, Model};

impl Model {
    /// Offers a file to the contact whose conversation is shown.
    pub(super) fn offer(&mut self, path: String) {
        let Some(name) = self.current.clone() else {
            self.notice = Some("choose a contact first: /open NAME".to_owned());
            return;
        };
        let has_talk = |model: &Self| model.contacts.get(&name).is_some_and(|it| it.talk.is_some());
        if self.contacts.get(&name).is_some_and(|it| it.alarm.is_some()) {
            self.notice = Some(format!("nothing is sent before you /trust the new key of {name}"));
            return;
        }
        if !has_talk(self) {
            self.call(&name);
        }
        if has_talk(self) {
            self.effects.push(Effect::Offer { name, path });
        } else {
            self.notice = Some("offline: offer the file again when you are online".to_owned());
        }
    }

    /// Takes the file that the contact has offered first, or the one whose name begins so.
    pub(super) fn take_file(&mut self, beginning: Option<&str>) {
        let Some((name, transfer)) = self.pick_file(beginning, |it| it.is_asked) else { return };
        transfer.is_asked = false;
        let (FileId::Peer(file) | FileId::Own(file), title) = (transfer.file, transfer.title.clone());
        self.effects.push(Effect::Take { name, file, title });
    }

    /// Refuses a file, or ends one that is on its way.
    pub(super) fn cancel_file(&mut self, beginning: Option<&str>, is_asked: bool) {
        let Some((name, transfer)) = self.pick_file(beginning, |it| it.is_asked == is_asked) else { return };
        let (file, title) = (transfer.file, transfer.title.clone());
        self.effects.push(Effect::CancelFile { name: name.clone(), file });
        let done = if is_asked { "refused" } else { "cancelled" };
        self.end_file(&name, file, format!("{title}: {done}"));
    }

    /// The first file of the shown conversation that is wanted.
    fn pick_file(
        &mut self,
        beginning: Option<&str>,
        is_wanted: impl Fn(&Transfer) -> bool,
    ) -> Option<(String, &mut Transfer)> {
        let name = self.current.clone()?;
        let begins = |it: &Transfer| beginning.is_none_or(|beginning| it.title.starts_with(beginning));
        let transfers = self.contacts.get_mut(&name).map_or(&mut [][..], |it| &mut it.transfers);
        let found = transfers.iter_mut().find(|it| is_wanted(it) && begins(it));
        if found.is_none() {
            self.notice = Some("there is no such file here".to_owned());
        }
        found.map(|transfer| (name, transfer))
    }

    /// Takes what happens to a file.
    pub(super) fn file_event(&mut self, name: &str, file: FileId, event: FileEvent) {
        let now_ms = self.now_ms;
        let is_own = matches!(file, FileId::Own(_));
        let Some(transfers) = self.contacts.get_mut(name).map(|it| &mut it.transfers) else { return };
        let known = transfers.iter_mut().find(|it| it.file == file);
        match (event, known) {
            (FileEvent::Offered { name: title, size }, None) => {
                self.offered(name, file, &safe_name(&title), size)
            }
            (FileEvent::Progress(bytes), Some(transfer)) => {
                let (line, text) = (transfer.line, transfer.progress(bytes, now_ms));
                self.rewrite(name, line, text);
            }
            (FileEvent::Whole { place }, Some(Transfer { title, size: bytes, .. })) => {
                let what = format!("{title} ({})", size(*bytes));
                let text = match place {
                    Some(place) => format!("{what} is there: {place}"),
                    None => format!("{what} has arrived"),
                };
                self.end_file(name, file, text);
            }
            (FileEvent::Dropped, Some(Transfer { title, .. })) => {
                let text = match is_own {
                    true => format!("{name} does not take {title}"),
                    false => format!("{name} has taken {title} back"),
                };
                self.end_file(name, file, text);
            }
            (FileEvent::Failed(why), Some(Transfer { title, .. })) => {
                let text = format!("{title} has not arrived: {why}");
                self.end_file(name, file, text);
            }
            _ => {}
        }
    }

    fn offered(&mut self, name: &str, file: FileId, title: &str, bytes: u64) {
        let is_asked = matches!(file, FileId::Peer(_));
        let what = format!("{title} ({})", size(bytes));
        let text = match is_asked {
            true => format!("{name} offers {what}: /take or /decline"),
            false => format!("you offer {what}; {name} can take it"),
        };
        let at_ms = self.now_ms;
        let Some(line) = self.add(name, Message { from: From::Program, at_ms, text }) else { return };
        let is_current = self.current.as_deref() == Some(name);
        let Some(contact) = self.contacts.get_mut(name) else { return };
        let title = title.to_owned();
        contact.transfers.push(Transfer::new(file, title, bytes, line));
        if is_asked {
            contact.unread += 1;
        }
        if is_asked && !is_current {
            self.effects.push(Effect::Bell);
        }
    }

    /// Ends all files of a talk that is gone.
    pub(super) fn end_files(&mut self, name: &str) {
        let transfers = self.contacts.get(name).map(|it| it.transfers.clone()).unwrap_or_default();
        for Transfer { file, title, .. } in transfers {
            self.end_file(name, file, format!("{title} has not arrived: the talk has ended"));
        }
    }

    fn end_file(&mut self, name: &str, file: FileId, text: String) {
        let Some(contact) = self.contacts.get_mut(name) else { return };
        if let Some(at) = contact.transfers.iter().position(|it| it.file == file) {
            let line = contact.transfers.remove(at).line;
            self.rewrite(name, line, text);
        }
    }

    /// Replaces a line of this program, which stays where it is.
    fn rewrite(&mut self, name: &str, line: u64, text: String) {
        if let Some(message) = self.contacts.get_mut(name).and_then(|it| it.message(line)) {
            message.text = text;
        }
    }
}
