//! Draws the state onto a buffer of cells.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};

use crate::model::layout::{self, RowKind, areas, input_columns};
use crate::model::{Contact, Directory, Focus, Link, Model, Urgency};
use crate::text::{cut, one_line, width};

/// How long a peer counts as typing after it has said so.
const TYPING_MS: u64 = 6000;

/// The colours and styles of the screen.
#[derive(Clone, Copy, Debug)]
pub struct Theme {
    has_colours: bool,
}

impl Theme {
    /// With colours, or with bold, dim and reversed text alone.
    pub fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    fn coloured(self, colour: Color, otherwise: Modifier) -> Style {
        if self.has_colours { Style::new().fg(colour) } else { Style::new().add_modifier(otherwise) }
    }

    fn bar(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    fn alarm(self) -> Style {
        let loud = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
        if self.has_colours { loud.fg(Color::Red) } else { loud }
    }
}

/// Draws everything; where the cursor is.
pub fn draw(model: &Model, buffer: &mut Buffer, theme: Theme) -> Option<Position> {
    let areas = areas(model);
    contacts(model, buffer, areas.contacts, theme);
    match &model.page {
        Some(page) => {
            put(buffer, areas.header, 0, &format!("{} (Esc closes it)", page.title), theme.bar());
            let rows = layout::page_rows(page, areas.conversation.width).into_iter().skip(page.above);
            for (row, line) in (0..areas.conversation.height).zip(rows) {
                put(buffer, areas.conversation, row, &line, Style::new());
            }
        }
        None => {
            header(model, buffer, areas.header);
            conversation(model, buffer, areas.conversation, theme);
        }
    }
    banners(model, buffer, areas.banner, theme);
    status(model, buffer, areas.status, theme);
    // A terminal that has just become smaller is drawn on before its new size is known.
    input(model, buffer, areas.input, theme).filter(|cursor| buffer.area.contains(*cursor))
}

/// Writes a row of an area, as far as it fits.
fn put(buffer: &mut Buffer, area: Rect, row: u16, text: &str, style: Style) {
    put_at(buffer, area, (0, row), text, style);
}

/// Writes into an area from a column and a row of it on; the column after the text.
fn put_at(buffer: &mut Buffer, area: Rect, (column, row): (u16, u16), text: &str, style: Style) -> u16 {
    let area = area.intersection(buffer.area);
    if row >= area.height || column >= area.width {
        return column;
    }
    let columns = usize::from(area.width - column);
    let text = cut(text, columns);
    buffer.set_stringn(area.x + column, area.y + row, &text, columns, style);
    column + u16::try_from(width(&text)).unwrap_or(area.width)
}

fn contacts(model: &Model, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let order = model.order();
    let height = usize::from(area.height);
    let chosen = order.iter().position(|name| Some(*name) == model.current.as_deref()).unwrap_or(0);
    let above = (chosen + 1).saturating_sub(height);
    for (row, name) in (0..area.height).zip(order.iter().skip(above)) {
        let Some(contact) = model.contact(name) else { continue };
        let (dot, style) = match contact.presence {
            Some(true) => ("●", theme.coloured(Color::Green, Modifier::BOLD)),
            Some(false) => ("○", Style::new().add_modifier(Modifier::DIM)),
            None => ("?", Style::new().add_modifier(Modifier::DIM)),
        };
        let is_chosen = Some(*name) == model.current.as_deref();
        let line = if is_chosen { theme.bar() } else { Style::new() };
        if is_chosen {
            put(buffer, area, row, &" ".repeat(usize::from(area.width)), line);
        }
        let count = count(contact);
        let names = Rect { width: area.width.saturating_sub(width(&count) as u16), ..area };
        let next = put_at(buffer, names, (0, row), dot, style.patch(line));
        put_at(buffer, names, (next + 1, row), &one_line(name), line);
        let loud = if contact.alarm.is_some() { theme.alarm() } else { line.add_modifier(Modifier::BOLD) };
        put_at(buffer, area, (names.width, row), &count, loud);
    }
    let line = area.right();
    if area.width > 0 && line < buffer.area.right() {
        for row in area.y..area.bottom() {
            put(
                buffer,
                Rect { x: line, y: row, width: 1, height: 1 },
                0,
                "│",
                Style::new().add_modifier(Modifier::DIM),
            );
        }
    }
    if model.contacts.is_empty() && area.height > 0 {
        put(buffer, area, 0, "no contacts", Style::new().add_modifier(Modifier::DIM));
    }
}

/// What stands behind a contact's name.
fn count(contact: &Contact) -> String {
    match contact.unread {
        _ if contact.alarm.is_some() => " !".to_owned(),
        0 => String::new(),
        unread @ 1..=999 => format!(" {unread}"),
        _ => " 999+".to_owned(),
    }
}

fn header(model: &Model, buffer: &mut Buffer, area: Rect) {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let Some((name, contact)) = model.current() else {
        return put(buffer, area, 0, "no contact yet: /open NAME, /who, /help", bold);
    };
    let presence = match (contact.presence, contact.last_seen_ms) {
        (Some(true), _) => ", there".to_owned(),
        (Some(false), Some(at_ms)) => format!(", away since {}", layout::instant(model, at_ms).1),
        (Some(false), None) => ", away".to_owned(),
        (None, _) => String::new(),
    };
    let is_typing = contact.typing_ms.is_some_and(|at| model.now_ms.saturating_sub(at) < TYPING_MS);
    let typing = if is_typing { ", is typing…" } else { "" };
    let blocked = if contact.is_blocked { ", blocked" } else { "" };
    put(buffer, area, 0, &format!("{}{presence}{blocked}{typing}", one_line(name)), bold);
}

fn conversation(model: &Model, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let Some((name, contact)) = model.current() else { return };
    let height = usize::from(area.height);
    // From the newest message up, as many rows as are on the screen or hidden below it.
    let mut rows = Vec::new();
    let last = contact.earlier + contact.messages().len() as u64;
    for number in (contact.earlier + 1..=last).rev() {
        if rows.len() >= contact.scroll.saturating_add(height) {
            break;
        }
        let is_found = model.search.as_ref().is_some_and(|search| search.at == Some(number));
        rows.extend(layout::message_rows(model, name, number).into_iter().rev().map(|row| (row, is_found)));
    }
    let shown: Vec<_> = rows.into_iter().skip(contact.scroll).take(height).collect();
    // A short conversation begins at the top.
    for (row, (line, is_found)) in (0..).zip(shown.iter().rev()) {
        let dim = Style::new().add_modifier(Modifier::DIM);
        let who = match line.kind {
            RowKind::Own => theme.coloured(Color::Cyan, Modifier::BOLD),
            RowKind::Peer => theme.coloured(Color::Yellow, Modifier::BOLD),
            RowKind::Program | RowKind::Rule => dim,
        };
        let text = match line.kind {
            RowKind::Program | RowKind::Rule => dim,
            _ if *is_found => theme.bar(),
            _ => Style::new(),
        };
        let next = put_at(buffer, area, (0, row), &line.front, dim);
        let next = put_at(buffer, area, (next, row), &line.who, who);
        put_at(buffer, area, (next, row), &line.text, text);
    }
    if contact.scroll > 0 && area.height > 0 {
        let below = format!(" ↓ {} ", contact.scroll);
        let column = area.width.saturating_sub(width(&below) as u16);
        put_at(buffer, area, (column, area.height - 1), &below, theme.bar());
    }
}

fn banners(model: &Model, buffer: &mut Buffer, area: Rect, theme: Theme) {
    let urgencies: Vec<Urgency> = model.banners().into_iter().map(|(urgency, _)| urgency).collect();
    for (row, (place, text)) in (0..area.height).zip(layout::banner_rows(model, area.width)) {
        let style = match urgencies.get(place) {
            Some(Urgency::Alarm) => theme.alarm(),
            Some(Urgency::Call) => {
                theme.coloured(Color::Green, Modifier::BOLD).add_modifier(Modifier::REVERSED)
            }
            _ => theme.coloured(Color::Yellow, Modifier::BOLD),
        };
        put(buffer, area, row, &text, style);
    }
}

fn status(model: &Model, buffer: &mut Buffer, area: Rect, theme: Theme) {
    put(buffer, area, 0, &" ".repeat(usize::from(area.width)), theme.bar());
    let left = format!("{}: {}", one_line(&model.setup.name), directory(model));
    let unread: usize = model.contacts.values().map(|contact| contact.unread).sum();
    let unread = if unread > 0 { format!("{unread} new · ") } else { String::new() };
    let talk = model
        .current()
        .map_or(String::new(), |(name, contact)| format!("{}: {}", one_line(name), link(model, contact)));
    let right = format!("{unread}{talk}");
    // The talk is what matters here; who one is, one knows.
    let column = area.width.saturating_sub(u16::try_from(width(&right)).unwrap_or(u16::MAX));
    let left_area = Rect { width: column.saturating_sub(2), ..area };
    put(buffer, left_area, 0, &left, theme.bar());
    put_at(buffer, area, (column, 0), &right, theme.bar());
}

fn seconds(model: &Model, at_ms: u64) -> u64 {
    at_ms.saturating_sub(model.now_ms).div_ceil(1000)
}

fn directory(model: &Model) -> String {
    match &model.directory {
        Directory::Online => "online".to_owned(),
        Directory::Connecting { .. } => format!("connecting to {}", model.setup.server),
        Directory::Offline { why, again_ms, .. } => {
            format!("offline, again in {} s: {}", seconds(model, *again_ms), one_line(why))
        }
    }
}

fn link(model: &Model, contact: &Contact) -> String {
    match &contact.link {
        _ if contact.alarm.is_some() => "KEY CHANGED".to_owned(),
        Link::None => "no talk".to_owned(),
        Link::Calling => "calling".to_owned(),
        Link::Connected { is_relayed: false } => "direct".to_owned(),
        Link::Connected { is_relayed: true } => "relayed".to_owned(),
        Link::Down { .. } if model.directory != Directory::Online => "offline".to_owned(),
        Link::Down { .. } if contact.presence == Some(false) => "offline, called when there".to_owned(),
        Link::Down { again_ms, .. } => format!("offline, called in {} s", seconds(model, *again_ms)),
    }
}

fn input(model: &Model, buffer: &mut Buffer, area: Rect, theme: Theme) -> Option<Position> {
    if area.height == 0 || area.width == 0 {
        return None;
    }
    let columns = input_columns(area.width);
    let (rows, (cursor_row, cursor_column)) = model.editor.rows(columns);
    let height = usize::from(area.height);
    let above = (cursor_row + 1).saturating_sub(height);
    let prompt = if area.width > 2 { 2 } else { 0 };
    put(buffer, area, 0, if prompt > 0 { ">" } else { "" }, theme.coloured(Color::Cyan, Modifier::BOLD));
    for (row, text) in (0..area.height).zip(rows.iter().skip(above)) {
        put_at(buffer, area, (prompt, row), text, Style::new());
    }
    if model.focus == Focus::Contacts {
        return None;
    }
    let column = (usize::from(prompt) + cursor_column).min(usize::from(area.width) - 1);
    Some(Position { x: area.x + column as u16, y: area.y + (cursor_row - above) as u16 })
}
