//! Where things are on the screen, and the rows of a conversation: shared by the state, which scrolls, and by what draws.

use jiff::Timestamp;
use ratatui::layout::Rect;

use super::{Delivery, Focus, From, Link, Model, Page};
use crate::text::{one_line, rows, width};

/// The width from which on the list of contacts is shown next to the conversation.
const WIDE: u16 = 60;
/// The columns of the list.
const LIST: u16 = 20;
/// The most rows of what is written above the input.
const MOST_BANNER: u16 = 6;
/// The columns of time and mark in front of a message.
const FRONT: usize = 9;
/// Below this width, they are left out.
const NARROWEST: usize = 24;

/// The parts of the screen. A part for which there is no place is empty.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Areas {
    pub(crate) contacts: Rect,
    pub(crate) header: Rect,
    pub(crate) conversation: Rect,
    pub(crate) banner: Rect,
    pub(crate) input: Rect,
    pub(crate) status: Rect,
}

/// A row of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Time and mark, or spaces.
    pub(crate) front: String,
    /// Who says it; on the first row of a message.
    pub(crate) who: String,
    pub(crate) text: String,
    pub(crate) kind: RowKind,
}

/// What a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// A line across the conversation: a date, or where new messages begin.
    Rule,
    Own,
    Peer,
    Program,
}

/// Divides the screen.
pub(crate) fn areas(model: &Model) -> Areas {
    let (columns, height) = model.size;
    if columns == 0 || height == 0 {
        return Areas::default();
    }
    let input_rows = model.editor.rows(input_columns(columns)).0.len();
    let mut bottom = height;
    let mut take = |wanted: u16, keep: u16| {
        let rows = wanted.min(bottom.saturating_sub(keep));
        bottom -= rows;
        Rect { x: 0, y: bottom, width: columns, height: rows }
    };
    // The input is there also where nothing else is.
    let status = take(1, 1);
    let wanted = u16::try_from(input_rows).unwrap_or(u16::MAX).min((height / 3).max(1));
    let input = take(wanted, 0);
    let banner_rows: usize = banner_rows(model, columns).len();
    let banner = take(u16::try_from(banner_rows).unwrap_or(u16::MAX).min(MOST_BANNER), 2);
    let main = Rect { x: 0, y: 0, width: columns, height: bottom };
    let list = match (columns >= WIDE, model.focus) {
        (true, _) => LIST,
        (false, Focus::Contacts) => columns,
        (false, Focus::Input) => 0,
    };
    let contacts = Rect { width: list, ..main };
    // A column separates them.
    let left = if list == 0 { 0 } else { (list + 1).min(columns) };
    let header = Rect { x: left, y: 0, width: columns - left, height: main.height.min(1) };
    let conversation = Rect { y: header.height, height: main.height - header.height, ..header };
    Areas { contacts, header, conversation, banner, input, status }
}

/// The columns for the text of the input, after its prompt.
pub(crate) fn input_columns(columns: u16) -> usize {
    usize::from(columns.saturating_sub(2).max(1))
}

/// What is above the input, each row with the place of its banner.
pub(crate) fn banner_rows(model: &Model, columns: u16) -> Vec<(usize, String)> {
    let banners = model.banners().into_iter().enumerate();
    let of = |(place, (_, text)): (usize, (_, String))| {
        rows(&one_line(&text), usize::from(columns)).into_iter().map(move |row| (place, row))
    };
    banners.flat_map(of).collect()
}

/// The rows of a page.
pub(crate) fn page_rows(page: &Page, columns: u16) -> Vec<String> {
    page.lines.iter().flat_map(|line| rows(&one_line(line), usize::from(columns))).collect()
}

/// How far the conversation is scrolled back where that many rows were wanted: it ends at its first message.
pub(crate) fn scroll_within(model: &Model, wanted: usize) -> usize {
    let Some((name, contact)) = model.current().filter(|_| wanted > 0) else { return 0 };
    let height = usize::from(areas(model).conversation.height);
    let last = contact.earlier + contact.messages().len() as u64;
    // Only as many rows as matter are made.
    let enough = wanted.saturating_add(height);
    let mut sum = 0;
    for number in (contact.earlier + 1..=last).rev() {
        if sum >= enough {
            break;
        }
        sum += message_rows(model, name, number).len();
    }
    sum.saturating_sub(height).min(wanted)
}

/// The rows of a message, with the date above it where it is the first of its day, and the line where new messages begin.
pub(crate) fn message_rows(model: &Model, name: &str, number: u64) -> Vec<Row> {
    let columns = usize::from(conversation_columns(model));
    let Some(contact) = model.contact(name) else { return Vec::new() };
    let place = usize::try_from(number - contact.earlier - 1).ok();
    let Some(message) = place.and_then(|place| contact.messages.get(place)) else { return Vec::new() };
    let before = place.and_then(|place| place.checked_sub(1)).and_then(|place| contact.messages.get(place));
    let (date, time) = instant(model, message.at_ms);
    let mut rows_of = Vec::new();
    if before.is_none_or(|before| instant(model, before.at_ms).0 != date) {
        rows_of.push(rule(&date, columns));
    }
    if contact.new_from == Some(number) {
        rows_of.push(rule("new", columns));
    }
    let is_connected = matches!(contact.link, Link::Connected { .. });
    let (mark, who, kind) = match message.from {
        From::Own(delivery) => (mark(delivery, is_connected), "you: ".to_owned(), RowKind::Own),
        From::Peer => ("", format!("{}: ", one_line(name)), RowKind::Peer),
        From::Program => ("", "– ".to_owned(), RowKind::Program),
    };
    let front = if columns < NARROWEST { 0 } else { FRONT };
    let first = format!("{time} {mark:<3}");
    let text = format!("{who}{}", message.text);
    for (place, row) in rows(&text, columns - front).into_iter().enumerate() {
        let front = match place {
            _ if front == 0 => String::new(),
            0 => first.clone(),
            _ => " ".repeat(FRONT),
        };
        let (who, text) = match row.strip_prefix(&who).filter(|_| place == 0) {
            Some(text) => (who.clone(), text.to_owned()),
            None => (String::new(), row),
        };
        rows_of.push(Row { front, who, text, kind });
    }
    rows_of
}

/// The columns of the conversation.
fn conversation_columns(model: &Model) -> u16 {
    let columns = model.size.0;
    if columns >= WIDE { columns - LIST - 1 } else { columns }
}

fn rule(text: &str, columns: usize) -> Row {
    let text = format!("── {text} ");
    let line = "─".repeat(columns.saturating_sub(width(&text)));
    Row { front: String::new(), who: String::new(), text: text + &line, kind: RowKind::Rule }
}

fn mark(delivery: Delivery, is_connected: bool) -> &'static str {
    match delivery {
        Delivery::Waiting if is_connected => "↑",
        Delivery::Waiting => "·",
        Delivery::Delivered => "✓",
        Delivery::Read => "✓✓",
    }
}

/// The date and the time of an instant, where the user is.
pub(crate) fn instant(model: &Model, at_ms: u64) -> (String, String) {
    let timestamp = i64::try_from(at_ms).ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    let zoned = timestamp.map(|timestamp| timestamp.to_zoned(model.setup.zone.clone()));
    // A peer may write any time.
    zoned.map_or_else(
        || ("at an unknown time".to_owned(), "--:--".to_owned()),
        |zoned| (zoned.strftime("%a %d %b %Y").to_string(), zoned.strftime("%H:%M").to_string()),
    )
}
