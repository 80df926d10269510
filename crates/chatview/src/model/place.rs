//! Which part of which conversation is on the screen.

use super::{Focus, Model, Search, layout};
use crate::text::one_line;

impl Model {
    /// Goes through the list of contacts.
    pub(super) fn go(&mut self, by: isize) {
        let order = self.order();
        let at = order.iter().position(|name| Some(*name) == self.current.as_deref());
        let next = at.map_or(0, |at| at.saturating_add_signed(by)).min(order.len().saturating_sub(1));
        if let Some(name) = order.get(next).map(|name| (*name).to_owned()) {
            self.show(name);
        }
    }

    /// Shows the conversation with a contact.
    pub(super) fn show(&mut self, name: String) {
        self.page = None;
        if self.current.as_ref() == Some(&name) {
            return;
        }
        self.search = None;
        // What was new there has been seen.
        if let Some(contact) = self.current.as_ref().and_then(|left| self.contacts.get_mut(left)) {
            contact.new_from = None;
            contact.scroll = 0;
        }
        self.current = Some(name);
    }

    pub(super) fn escape(&mut self) {
        let is_scrolled = self.current().is_some_and(|(_, contact)| contact.scroll > 0);
        if self.page.take().is_some() {
        } else if self.search.take().is_some() || is_scrolled {
            self.page(i64::MIN);
        } else {
            self.focus = if self.focus == Focus::Input { Focus::Contacts } else { Focus::Input };
        }
    }

    /// Scrolls back by pages; a negative number goes on.
    pub(super) fn page(&mut self, pages: i64) {
        let area = layout::areas(self).conversation;
        let height = i64::from(area.height.max(2)) - 1;
        let by = pages.saturating_mul(height);
        let moved = |at: usize, by: i64| {
            usize::try_from(i64::try_from(at).unwrap_or(i64::MAX).saturating_add(by).max(0))
                .unwrap_or(usize::MAX)
        };
        if let Some(page) = &mut self.page {
            let most = layout::page_rows(page, area.width).len().saturating_sub(1);
            page.above = moved(page.above, by.saturating_neg()).min(most);
            return;
        }
        let Some((name, contact)) = self.current() else { return };
        let (name, wanted) = (name.to_owned(), moved(contact.scroll, by));
        let scroll = layout::scroll_within(self, wanted);
        if let Some(contact) = self.contacts.get_mut(&name) {
            contact.scroll = scroll;
        }
    }

    /// Goes to the next message that has the text which is searched for.
    pub(super) fn find(&mut self, back: bool) {
        let Some(search) = self.search.clone() else {
            self.notice = Some("type what to search for: /search TEXT".to_owned());
            return;
        };
        let Some((_, contact)) = self.current() else { return };
        let wanted = search.text.to_lowercase();
        let numbered = (contact.earlier + 1..).zip(contact.messages());
        let has = |text: &str| one_line(text).to_lowercase().contains(&wanted);
        let fitting: Vec<u64> = numbered.filter(|(_, it)| has(&it.text)).map(|(number, _)| number).collect();
        let mut fitting = fitting.into_iter();
        let found = match search.at {
            None => fitting.last(),
            Some(at) if back => fitting.take_while(|number| *number < at).last(),
            Some(at) => fitting.find(|number| *number > at),
        };
        let is_repeated = search.at.is_some();
        match found {
            Some(number) => {
                self.search = Some(Search { at: Some(number), ..search });
                self.scroll_to(number);
            }
            None if is_repeated => self.notice = Some("there is no other place with it".to_owned()),
            None => {
                self.notice = Some(format!("\"{}\" is not in this conversation", search.text));
                self.search = None;
            }
        }
    }

    /// Scrolls so that a message is on the screen.
    fn scroll_to(&mut self, number: u64) {
        let Some((name, contact)) = self.current() else { return };
        let name = name.to_owned();
        let last = contact.earlier + contact.messages.len() as u64;
        let below: usize = (number + 1..=last).map(|it| layout::message_rows(self, &name, it).len()).sum();
        let height = usize::from(layout::areas(self).conversation.height);
        if let Some(contact) = self.contacts.get_mut(&name) {
            contact.scroll = below.saturating_sub(height / 2);
        }
    }
}
