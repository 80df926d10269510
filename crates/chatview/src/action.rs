//! The meaning of keys: those of readline where it has them.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// An action of the user by a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A character is typed.
    Type(char),
    /// A line break is typed.
    Newline,
    /// The input is sent, or the selected contact opened.
    Submit,
    /// Edits the input.
    Edit(Edit),
    /// The row above, in the input the one before.
    Up,
    /// The row below.
    Down,
    /// A page of the conversation back.
    PageUp,
    /// A page of the conversation on.
    PageDown,
    /// Completes a name or a command.
    Complete,
    /// The next contact of the list.
    NextContact,
    /// The contact before it.
    PreviousContact,
    /// Closes what is open: a list, a search, the scrollback; otherwise changes to the list of contacts and
    /// back.
    Escape,
    /// The found text's next place further back.
    FindBack,
    /// The found text's next place further on.
    FindOn,
    /// Takes the call that rings.
    Accept,
    /// Refuses the call that rings.
    Refuse,
    /// Clears the input.
    Interrupt,
    /// Deletes a character, or ends the program where the input is empty.
    DeleteOrEnd,
    /// Draws the whole screen again.
    Redraw,
}

/// An edit of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of readline")]
pub enum Edit {
    Backspace,
    Delete,
    Left,
    Right,
    WordLeft,
    WordRight,
    LineStart,
    LineEnd,
    KillToEnd,
    KillToStart,
    KillWordBack,
    KillWord,
    Yank,
}

impl Action {
    /// What a key does; `None` for a key without a meaning.
    pub fn of(key: KeyEvent) -> Option<Self> {
        if key.kind == KeyEventKind::Release {
            return None;
        }
        let (control, alt) =
            (key.modifiers.contains(KeyModifiers::CONTROL), key.modifiers.contains(KeyModifiers::ALT));
        match key.code {
            KeyCode::Char(character) if control => Self::of_control(character),
            KeyCode::Char(character) if alt => Self::of_alt(character),
            KeyCode::Char(character) => Some(Self::Type(character)),
            KeyCode::Enter if alt || key.modifiers.contains(KeyModifiers::SHIFT) => Some(Self::Newline),
            KeyCode::Enter => Some(Self::Submit),
            KeyCode::Backspace if alt => Some(Self::Edit(Edit::KillWordBack)),
            KeyCode::Backspace => Some(Self::Edit(Edit::Backspace)),
            KeyCode::Delete => Some(Self::Edit(Edit::Delete)),
            KeyCode::Left if control || alt => Some(Self::Edit(Edit::WordLeft)),
            KeyCode::Right if control || alt => Some(Self::Edit(Edit::WordRight)),
            KeyCode::Left => Some(Self::Edit(Edit::Left)),
            KeyCode::Right => Some(Self::Edit(Edit::Right)),
            KeyCode::Home => Some(Self::Edit(Edit::LineStart)),
            KeyCode::End => Some(Self::Edit(Edit::LineEnd)),
            KeyCode::Up if alt => Some(Self::PreviousContact),
            KeyCode::Down if alt => Some(Self::NextContact),
            KeyCode::Up => Some(Self::Up),
            KeyCode::Down => Some(Self::Down),
            KeyCode::PageUp => Some(Self::PageUp),
            KeyCode::PageDown => Some(Self::PageDown),
            KeyCode::Tab => Some(Self::Complete),
            KeyCode::Esc => Some(Self::Escape),
            _ => None,
        }
    }

    fn of_control(character: char) -> Option<Self> {
        Some(match character {
            'a' => Self::Edit(Edit::LineStart),
            'e' => Self::Edit(Edit::LineEnd),
            'b' => Self::Edit(Edit::Left),
            'f' => Self::Edit(Edit::Right),
            'h' => Self::Edit(Edit::Backspace),
            'k' => Self::Edit(Edit::KillToEnd),
            'u' => Self::Edit(Edit::KillToStart),
            'w' => Self::Edit(Edit::KillWordBack),
            'y' => Self::Edit(Edit::Yank),
            'p' => Self::Up,
            'n' => Self::Down,
            'j' => Self::Newline,
            'r' => Self::FindBack,
            's' => Self::FindOn,
            'c' => Self::Interrupt,
            'd' => Self::DeleteOrEnd,
            'l' => Self::Redraw,
            _ => return None,
        })
    }

    fn of_alt(character: char) -> Option<Self> {
        Some(match character {
            'b' => Self::Edit(Edit::WordLeft),
            'f' => Self::Edit(Edit::WordRight),
            'd' => Self::Edit(Edit::KillWord),
            'a' => Self::Accept,
            'r' => Self::Refuse,
            _ => return None,
        })
    }
}
