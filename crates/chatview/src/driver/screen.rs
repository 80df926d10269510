//! The terminal: taken over, drawn on, and given back, after a panic, too.

use std::fs::{File, OpenOptions};
use std::io::{self, Write, stdout};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

use anyhow::Context;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    DisableBracketedPaste, EnableBracketedPaste, Event as Input, read as read_event,
};
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute};
use rustix::stdio::dup2_stderr;

use super::{Events, Happened};
use crate::action::Action;
use crate::draw::{Theme, draw};
use crate::model::{Event, Model};

/// The exit status of a program that has panicked, as Rust sets it.
const PANICKED: i32 = 101;

/// Standard error, as it was before the screen was taken over. `None` while it is not.
static STANDARD_ERROR: Mutex<Option<OwnedFd>> = Mutex::new(None);

/// The screen of the program.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<io::Stdout>>,
}

impl Screen {
    /// Takes the terminal over, and passes what is typed. What the program logs meanwhile goes to a file.
    pub(crate) fn open(log: &Path, events: Events) -> anyhow::Result<Self> {
        let logged = OpenOptions::new().append(true).create(true).open(log);
        let logged = logged.with_context(|| format!("cannot open the log {}", log.display()))?;
        let before = rustix::io::dup(io::stderr())?;
        enable_raw_mode().context("the full-screen program needs a terminal")?;
        *STANDARD_ERROR.lock().expect("no holder panics") = Some(before);
        Self::take_over(&logged, events).inspect_err(|_| give_back())
    }

    fn take_over(log: &File, events: Events) -> anyhow::Result<Self> {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            usual(panic);
            // A task that is gone would leave a program that no longer does all that it shows.
            std::process::exit(PANICKED);
        }));
        dup2_stderr(log)?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        let terminal = Terminal::new(CrosstermBackend::new(stdout()))?;
        // It ends with the program: a read of the terminal cannot be cancelled.
        thread::spawn(move || pass_input(&events));
        Ok(Self { terminal })
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> anyhow::Result<(u16, u16)> {
        let size = self.terminal.size()?;
        Ok((size.width, size.height))
    }

    /// Draws the state, unless the terminal was given back: what is said then must not be drawn over.
    pub(crate) fn draw(&mut self, model: &Model, theme: Theme) -> anyhow::Result<()> {
        let _drawing = stdout().lock();
        if STANDARD_ERROR.lock().is_ok_and(|kept| kept.is_none()) {
            return Ok(());
        }
        self.terminal.draw(|frame| {
            if let Some(cursor) = draw(model, frame.buffer_mut(), theme) {
                frame.set_cursor_position(cursor);
            }
        })?;
        Ok(())
    }

    pub(crate) fn clear(&mut self) -> anyhow::Result<()> {
        Ok(self.terminal.clear()?)
    }

    pub(crate) fn bell(&self) -> anyhow::Result<()> {
        let mut out = stdout();
        out.write_all(b"\x07")?;
        Ok(out.flush()?)
    }

    /// Gives the terminal back.
    pub(crate) fn close(&mut self) {
        give_back();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Gives the terminal back, once.
fn give_back() {
    // Another thread may be drawing. This lock can be taken twice, so a panic while drawing comes through.
    let _drawing = stdout().lock();
    let Some(before) = STANDARD_ERROR.lock().ok().and_then(|mut kept| kept.take()) else { return };
    _ = execute!(stdout(), DisableBracketedPaste, LeaveAlternateScreen, cursor::Show);
    _ = disable_raw_mode();
    _ = dup2_stderr(before);
}

/// Passes what is typed, until the terminal or the program is gone.
fn pass_input(events: &Events) {
    while let Ok(input) = read_event() {
        let event = match input {
            Input::Key(key) => Action::of(key).map(Event::Action),
            Input::Paste(text) => Some(Event::Paste(text)),
            Input::Resize(columns, rows) => Some(Event::Resize { columns, rows }),
            _ => None,
        };
        if let Some(event) = event
            && events.blocking_send(Happened::Event(event)).is_err()
        {
            return;
        }
    }
    _ = events.blocking_send(Happened::Fatal(anyhow::anyhow!("the terminal was closed")));
}
