//! Calls, talks and presence: when to call, what to answer, and what became of messages.

use super::contact::{Delivery, From, Link, Message, Talk};
use super::{Directory, Effect, Event, MOST_RINGING, Model, Ringing, TalkEvent};
use crate::history::Entry;

/// The wait after the first failure. It doubles with each.
const FIRST_MS: u64 = 1000;
/// The longest wait.
const LONGEST_MS: u64 = 60_000;
/// The caller calls again after a loss; the called side waits this much longer, so that calls seldom cross.
const CALLED_SIDE_MS: u64 = 3000;
/// Messages that a talk has and that have not arrived. A conversation keeps twice as many.
const MOST_GIVEN: u64 = 512;

/// How long to wait after a number of failures: doubled each time, and spread by the name so that clients do not all come at once.
fn back_off(attempts: u32, name: &str) -> u64 {
    let wait = (FIRST_MS << attempts.min(6)).min(LONGEST_MS);
    let spread = name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    wait + wait * (spread % 64) / 256
}

impl Model {
    /// Takes what directory and peers say.
    pub(super) fn hear(&mut self, event: Event) {
        match event {
            Event::Online => self.online(),
            Event::Offline { why } => self.offline(why),
            Event::Presence { name, is_there } => self.presence(&name, is_there),
            Event::Incoming { call, name, talk } => self.incoming(call, &name, talk),
            Event::RingingEnded { call } => {
                if let Some(at) = self.ringing.iter().position(|ringing| ringing.call == call) {
                    let Ringing { name, .. } = self.ringing.remove(at);
                    self.ensure_contact(&name);
                    self.write_note(&name, "a call that was not answered".to_owned());
                }
            }
            Event::CallFailed { name, talk, why, is_refusal } if self.is_talk(&name, talk) => {
                self.not_reached(&name, why, is_refusal);
            }
            Event::NewKey { name, number } => {
                self.write_note(&name, format!("first talk with {name}, whose safety number is {number}"));
            }
            Event::ChangedKey { name, number } => self.changed_key(&name, number),
            Event::Talk { name, talk, event } if self.is_talk(&name, talk) => self.talk_event(&name, event),
            _ => {}
        }
    }

    /// Whether this is the talk with a contact that goes on; what an earlier one still reports counts no more.
    fn is_talk(&self, name: &str, id: u128) -> bool {
        let talk = self.contacts.get(name).and_then(|contact| contact.talk.as_ref());
        talk.is_some_and(|talk| talk.id == id)
    }

    fn online(&mut self) {
        self.directory = Directory::Online;
        let names: Vec<String> = self.contacts.keys().cloned().collect();
        self.effects.extend(names.into_iter().map(Effect::Watch));
        let now_ms = self.now_ms;
        for contact in self.contacts.values_mut() {
            // Attempts during the outage say nothing of the contact.
            if let Link::Down { again_ms, .. } = &mut contact.link {
                *again_ms = (*again_ms).min(now_ms + FIRST_MS);
            }
        }
        self.redial();
    }

    fn offline(&mut self, why: String) {
        let attempts = match &self.directory {
            Directory::Connecting { attempts } | Directory::Offline { attempts, .. } => attempts + 1,
            Directory::Online => 0,
        };
        let again_ms = self.now_ms + back_off(attempts, &self.setup.name);
        self.directory = Directory::Offline { why, again_ms, attempts };
        // Calls end with the session. Talks go on without the directory.
        self.ringing.clear();
        let now_ms = self.now_ms;
        for contact in self.contacts.values_mut() {
            contact.presence = None;
            if contact.link == Link::Calling {
                contact.link = Link::Down { why: "the directory is lost".to_owned(), again_ms: now_ms };
            }
        }
    }

    fn presence(&mut self, name: &str, is_there: bool) {
        let now_ms = self.now_ms;
        let Some(contact) = self.contacts.get_mut(name) else { return };
        if contact.presence == Some(true) || is_there {
            contact.last_seen_ms = Some(now_ms);
        }
        contact.presence = Some(is_there);
        let has_waiting = contact.has_waiting();
        match &mut contact.link {
            // The contact logs in first and waits for calls then.
            Link::Down { again_ms, .. } if is_there => *again_ms = (*again_ms).min(now_ms + 500),
            Link::None if is_there && has_waiting && contact.alarm.is_none() => {
                contact.link = Link::Down { why: "messages wait".to_owned(), again_ms: now_ms + 500 };
            }
            Link::Down { .. } if !is_there && !has_waiting && contact.transfers.is_empty() => {
                self.forget_talk(name, "is gone")
            }
            _ => {}
        }
    }

    /// Connects and calls whatever is due.
    pub(super) fn redial(&mut self) {
        match &self.directory {
            Directory::Offline { again_ms, attempts, .. } if *again_ms <= self.now_ms => {
                self.directory = Directory::Connecting { attempts: *attempts };
                self.effects.push(Effect::Connect);
            }
            Directory::Online => {
                let now_ms = self.now_ms;
                let due = |link: &Link| matches!(link, Link::Down { again_ms, .. } if *again_ms <= now_ms);
                let names: Vec<String> = self
                    .contacts
                    .iter()
                    .filter(|(_, it)| due(&it.link) && it.presence != Some(false) && it.alarm.is_none())
                    .map(|(name, _)| name.clone())
                    .collect();
                names.iter().for_each(|name| self.call(name));
            }
            _ => {}
        }
    }

    /// Calls a contact, for the talk that was interrupted or for a new one.
    pub(super) fn call(&mut self, name: &str) {
        if self.directory != Directory::Online {
            let now_ms = self.now_ms;
            if let Some(contact) = self.contacts.get_mut(name) {
                contact.link = Link::Down { why: "the directory is offline".to_owned(), again_ms: now_ms };
            }
            return;
        }
        let fresh = self.next_talk();
        let Some(contact) = self.contacts.get_mut(name) else { return };
        contact.link = Link::Calling;
        let id = contact.talk.as_ref().map(|talk| talk.id);
        if id.is_none() {
            self.begin(name, fresh, true);
        }
        self.effects.push(Effect::Call { name: name.to_owned(), talk: id.unwrap_or(fresh) });
    }

    fn next_talk(&mut self) -> u128 {
        self.setup.first_talk = self.setup.first_talk.wrapping_add(1);
        self.setup.first_talk
    }

    /// Begins a talk and gives it what waits.
    fn begin(&mut self, name: &str, id: u128, is_caller: bool) {
        self.end_files(name);
        let Some(contact) = self.contacts.get_mut(name) else { return };
        contact.talk = Some(Talk::new(id, is_caller));
        self.effects.push(Effect::Begin { name: name.to_owned(), talk: id });
        self.give_waiting(name);
    }

    /// Gives the talk messages that wait, as far as it takes them.
    pub(super) fn give_waiting(&mut self, name: &str) {
        let Some(contact) = self.contacts.get_mut(name) else { return };
        let Some(talk) = &contact.talk else { return };
        let on_the_way = contact.waiting().take_while(|(number, _)| *number <= talk.through).count() as u64;
        let space = MOST_GIVEN.saturating_sub(on_the_way) as usize;
        let through = talk.through;
        let waiting = contact.waiting().skip_while(|(number, _)| *number <= through).take(space);
        let next: Vec<(u64, u64, String)> =
            waiting.map(|(number, it)| (number, it.at_ms, it.text.clone())).collect();
        let Some(talk) = &mut contact.talk else { return };
        for (number, at_ms, text) in next {
            talk.given.push_back((talk.next, number));
            talk.next += 1;
            talk.through = number;
            self.effects.push(Effect::Send { name: name.to_owned(), at_ms, text });
        }
    }

    fn incoming(&mut self, call: u64, name: &str, talk: u128) {
        let (own, rings) = (self.setup.name.clone(), self.ringing.len());
        let Some(contact) = self.ensure_contact(name) else {
            return self.effects.push(Effect::Refuse { call });
        };
        match &contact.link {
            _ if contact.is_blocked || contact.alarm.is_some() => self.effects.push(Effect::Refuse { call }),
            // Two calls cross: the side with the smaller name is the one that is called.
            Link::Calling if own.as_str() > name => {}
            Link::Calling => {
                self.effects.push(Effect::Cancel { name: name.to_owned() });
                self.take_call(call, name, talk);
            }
            // The user talks with this contact already, whose program calls again.
            Link::Down { .. } | Link::Connected { .. } => self.take_call(call, name, talk),
            Link::None if rings >= MOST_RINGING => self.effects.push(Effect::Refuse { call }),
            Link::None => {
                self.ringing.retain(|ringing| ringing.name != name);
                self.ringing.push(Ringing { call, name: name.to_owned(), talk });
                self.effects.push(Effect::Bell);
            }
        }
    }

    /// Takes a call.
    pub(super) fn take_call(&mut self, call: u64, name: &str, talk: u128) {
        if !self.is_talk(name, talk) {
            self.begin(name, talk, false);
        }
        if let Some(contact) = self.contacts.get_mut(name) {
            contact.link = Link::Calling;
        }
        self.effects.push(Effect::Answer { call, name: name.to_owned(), talk });
    }

    fn not_reached(&mut self, name: &str, why: String, is_refusal: bool) {
        let now_ms = self.now_ms;
        let Some(contact) = self.contacts.get_mut(name) else { return };
        let has_waiting = contact.has_waiting();
        if is_refusal {
            let kept = if has_waiting { "; what waits is sent with the next talk" } else { "" };
            return self.forget_talk(name, &format!("refused the call{kept}"));
        }
        contact.attempts += 1;
        let wait = back_off(contact.attempts, name);
        let is_first = contact.attempts == 1;
        contact.link = Link::Down { why: why.clone(), again_ms: now_ms + wait };
        if is_first {
            self.write_note(
                name,
                format!("not reached: {why}. It is called again until it answers; /bye ends that"),
            );
        }
    }

    /// Forgets the talk with a contact, and says why.
    pub(super) fn forget_talk(&mut self, name: &str, why: &str) {
        let Some(contact) = self.contacts.get_mut(name) else { return };
        contact.link = Link::None;
        contact.attempts = 0;
        if contact.talk.take().is_some() {
            self.effects.push(Effect::Drop { name: name.to_owned() });
        }
        self.end_files(name);
        self.write_note(name, format!("{name} {why}"));
    }

    fn changed_key(&mut self, name: &str, number: String) {
        let Some(contact) = self.contacts.get_mut(name) else { return };
        contact.alarm = Some(number);
        contact.link = Link::None;
        contact.talk = None;
        self.effects.extend([Effect::Drop { name: name.to_owned() }, Effect::Bell]);
        self.end_files(name);
    }

    fn talk_event(&mut self, name: &str, event: TalkEvent) {
        let now_ms = self.now_ms;
        let Some(contact) = self.contacts.get_mut(name) else { return };
        match event {
            TalkEvent::Connected { is_relayed } => {
                let is_back = contact.attempts > 0 || matches!(contact.link, Link::Down { .. });
                contact.link = Link::Connected { is_relayed };
                contact.attempts = 0;
                let way = if is_relayed { "through the server's relay" } else { "directly" };
                let connected = if is_back { "connected again" } else { "connected" };
                self.write_note(name, format!("{connected} {way}"));
            }
            TalkEvent::Message { number, at_ms, text } => self.message(name, number, at_ms, text),
            TalkEvent::Delivered(through) => {
                for number in contact.come(through, Delivery::Delivered) {
                    let Some(message) = contact.message(number) else { continue };
                    let entry = Entry::Delivered { at_ms: message.at_ms };
                    self.effects.push(Effect::Record { name: name.to_owned(), entry });
                }
                self.give_waiting(name);
            }
            TalkEvent::Read(through) => drop(contact.come(through, Delivery::Read)),
            TalkEvent::Typing => contact.typing_ms = Some(now_ms),
            TalkEvent::File { file, event } => self.file_event(name, file, event),
            TalkEvent::Bye => self.write_note(name, format!("{name} has ended the talk")),
            TalkEvent::Over => {
                contact.link = Link::None;
                contact.talk = None;
                self.effects.push(Effect::Drop { name: name.to_owned() });
                self.end_files(name);
            }
            TalkEvent::Lost(why) => {
                let wait = contact.talk.as_ref().filter(|talk| talk.is_caller).map_or(CALLED_SIDE_MS, |_| 0);
                contact.attempts += 1;
                let again_ms = now_ms + wait + back_off(0, name);
                contact.link = Link::Down { why: why.clone(), again_ms };
                self.write_note(name, format!("the connection is lost: {why}"));
            }
            TalkEvent::Broken(why) => {
                contact.talk = None;
                contact.attempts += 1;
                let again_ms = now_ms + back_off(contact.attempts, name);
                contact.link = Link::Down { why: why.clone(), again_ms };
                self.effects.push(Effect::Drop { name: name.to_owned() });
                self.end_files(name);
                self.write_note(name, format!("the talk broke off: {why}"));
            }
        }
    }

    fn message(&mut self, name: &str, number: u64, at_ms: u64, text: String) {
        let is_current = self.current.as_deref() == Some(name);
        let Some(contact) = self.contacts.get_mut(name) else { return };
        contact.typing_ms = None;
        if let Some(talk) = &mut contact.talk {
            talk.received = number;
        }
        if contact.has_said(at_ms, &text) {
            return;
        }
        let is_first = contact.unread == 0;
        contact.unread += 1;
        let is_watched = is_current && contact.scroll == 0;
        let entry = Entry::Said { own: false, at_ms, text: text.clone() };
        self.effects.push(Effect::Record { name: name.to_owned(), entry });
        let number = self.add(name, Message { from: From::Peer, at_ms, text });
        let Some(contact) = self.contacts.get_mut(name) else { return };
        if is_first && !is_watched && contact.new_from.is_none() {
            contact.new_from = number;
        }
        if !is_current {
            self.effects.push(Effect::Bell);
        }
    }

    /// Says something to the contact whose conversation is shown.
    pub(super) fn speak(&mut self, text: String) {
        let Some(name) = self.current.clone() else {
            self.notice = Some("choose a contact first: /open NAME".to_owned());
            return;
        };
        let now_ms = self.now_ms;
        let Some(contact) = self.contacts.get_mut(&name) else { return };
        // A contact recognises what it was sent twice by its time, so each message has its own.
        let own = contact.messages.iter().rev().find(|it| matches!(it.from, From::Own(_)));
        let at_ms = own.map_or(0, |last| last.at_ms + 1).max(now_ms);
        contact.new_from = None;
        contact.scroll = 0;
        let has_link = contact.link != Link::None || contact.alarm.is_some();
        let entry = Entry::Said { own: true, at_ms, text: text.clone() };
        self.effects.push(Effect::Record { name: name.clone(), entry });
        self.add(&name, Message { from: From::Own(Delivery::Waiting), at_ms, text });
        self.give_waiting(&name);
        if !has_link {
            self.call(&name);
        }
    }
}
