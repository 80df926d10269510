//! Screens at 40, 80 and 120 columns, cell by cell, on ratatui's own test terminal.
//!
//! Where a screen changes on purpose, the failed test prints it as it is now.

use jiff::tz::TimeZone;
use kendall_chatview::Action;
use kendall_chatview::draw::{Theme, draw};
use kendall_chatview::history::Entry;
use kendall_chatview::model::{Event, Model, Remembered, Setup, TalkEvent};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::Color;
use unicode_width::UnicodeWidthStr;

/// 23 November 2026, 09:41 in UTC.
const MORNING: u64 = 1_795_426_860_000;
/// The talk that the first call begins.
const TALK: u128 = 1;

fn screen(columns: u16, rows: u16, model: &mut Model, theme: Theme) -> Terminal<TestBackend> {
    model.update(Event::Resize { columns, rows });
    let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
    terminal
        .draw(|frame| {
            if let Some(cursor) = draw(model, frame.buffer_mut(), theme) {
                frame.set_cursor_position(cursor);
            }
        })
        .unwrap();
    terminal
}

/// What a screen shows, without the spaces at the ends of rows.
fn text(terminal: &Terminal<TestBackend>) -> String {
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(buffer.area.width));
    let shown = |row: &[Cell]| {
        let (mut line, mut column) = (String::new(), 0);
        // The cells that a wide character covers have their own spaces.
        while let Some(cell) = row.get(column) {
            line += cell.symbol();
            column += cell.symbol().width().max(1);
        }
        line.trim_end().to_owned() + "\n"
    };
    rows.map(shown).collect()
}

fn enter(model: &mut Model, line: &str) {
    model.update(Event::Paste(line.to_owned()));
    model.update(Event::Action(Action::Submit));
}

fn hear(model: &mut Model, event: TalkEvent) {
    model.update(Event::Talk { name: "bob".to_owned(), talk: TALK, event });
}

/// Ann's program in the middle of a morning.
fn morning() -> Model {
    let setup = Setup {
        name: "ann".to_owned(),
        server: "chat.example:5011".to_owned(),
        number: "25653 70245 60552 35497 89361 48424".to_owned(),
        zone: TimeZone::UTC,
        receipts: true,
        first_talk: TALK - 1,
    };
    let said = |own, at_ms, text: &str| Entry::Said { own, at_ms, text: text.to_owned() };
    let day = 86_400_000;
    let history = vec![
        said(false, MORNING - day, "are you coming tomorrow?"),
        said(true, MORNING - day + 60_000, "yes"),
        Entry::Delivered { at_ms: MORNING - day + 60_000 },
    ];
    let remembered = |name: &str, history| Remembered { name: name.to_owned(), is_blocked: false, history };
    let mut model = Model::new(
        setup,
        vec![remembered("bob", history), remembered("日本太郎", Vec::new()), remembered("carl", Vec::new())],
    );
    model.update(Event::Tick { now_ms: MORNING });
    model.update(Event::Online);
    for (name, is_there) in [("bob", true), ("carl", false)] {
        model.update(Event::Presence { name: name.to_owned(), is_there });
    }
    enter(
        &mut model,
        "good morning, the agenda of today has three points and they are long enough to fill two rows",
    );
    hear(&mut model, TalkEvent::Connected { is_relayed: false });
    hear(&mut model, TalkEvent::Delivered(1));
    hear(&mut model, TalkEvent::Read(1));
    model.update(Event::Tick { now_ms: MORNING + 60_000 });
    let at_ms = MORNING + 60_000;
    hear(&mut model, TalkEvent::Message { number: 1, at_ms, text: "日本語も \u{1b}[2J ok".to_owned() });
    enter(&mut model, "on its way");
    model.update(Event::Incoming { call: 4, name: "carl".to_owned(), talk: 9 });
    model.update(Event::Paste("two\nlines".to_owned()));
    model
}

#[test]
fn forty_columns_have_the_conversation_alone() {
    let shown = text(&screen(40, 20, &mut morning(), Theme::new(true)));
    assert_eq!(shown, include_str!("screens/40.txt"), "\n{shown}");
}

#[test]
fn eighty_columns_have_the_contacts_beside_it() {
    let shown = text(&screen(80, 20, &mut morning(), Theme::new(true)));
    assert_eq!(shown, include_str!("screens/80.txt"), "\n{shown}");
}

#[test]
fn a_hundred_and_twenty_columns_break_fewer_lines() {
    let shown = text(&screen(120, 20, &mut morning(), Theme::new(true)));
    assert_eq!(shown, include_str!("screens/120.txt"), "\n{shown}");
}

#[test]
fn a_changed_key_is_the_loudest_thing_on_the_screen() {
    let mut model = morning();
    model.update(Event::ChangedKey {
        name: "bob".to_owned(),
        number: "11111 22222 33333 44444 55555 66666".to_owned(),
    });
    let terminal = screen(80, 20, &mut model, Theme::new(true));
    let shown = text(&terminal);
    assert_eq!(shown, include_str!("screens/alarm.txt"), "\n{shown}");
    let red = terminal.backend().buffer().content.iter().filter(|cell| cell.fg == Color::Red);
    assert!(red.count() > 80);
}

#[test]
fn help_lists_keys_and_commands() {
    let mut model = morning();
    model.update(Event::Action(Action::Interrupt));
    enter(&mut model, "/help");
    let shown = text(&screen(80, 34, &mut model, Theme::new(true)));
    assert_eq!(shown, include_str!("screens/help.txt"), "\n{shown}");
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut model = morning();
    model.update(Event::ChangedKey { name: "bob".to_owned(), number: "1".to_owned() });
    let cells = screen(80, 20, &mut model, Theme::new(false));
    let coloured = |terminal: &Terminal<TestBackend>| {
        terminal.backend().buffer().content.iter().any(|it| it.fg != Color::Reset || it.bg != Color::Reset)
    };
    assert!(!coloured(&cells));
    assert!(coloured(&screen(80, 20, &mut model, Theme::new(true))));
}
