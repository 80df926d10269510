//! The input: lines of text with a cursor, keys as readline has them, and earlier lines.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use crate::action::Edit;
use crate::text::drawn;

/// The longest input, in bytes: that of a message.
pub(crate) const MOST_TEXT: usize = kendall_talk::protocol::MOST_TEXT;

/// Inputs that are remembered.
const MOST_BEFORE: usize = 200;

/// The input.
#[derive(Clone, Debug, Default)]
pub(crate) struct Editor {
    text: String,
    /// Where the next character goes, in bytes.
    cursor: usize,
    /// What was cut last.
    cut: String,
    before: Vec<String>,
    /// Which of those before is shown, and what was typed in its place.
    recalled: Option<(usize, String)>,
}

impl Editor {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub(crate) fn to_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Inserts what is typed or pasted, as far as it fits. Line breaks stay; other control characters are left out.
    pub(crate) fn insert(&mut self, text: &str) {
        let plain = text.replace("\r\n", "\n").replace('\r', "\n");
        let mut space = MOST_TEXT - self.text.len();
        let fits = |it: &char| {
            space = space.saturating_sub(it.len_utf8());
            space > 0
        };
        let kept: String =
            plain.chars().filter(|it| !it.is_control() || "\n\t".contains(*it)).take_while(fits).collect();
        self.text.insert_str(self.cursor, &kept);
        self.cursor += kept.len();
    }

    /// Replaces the text before the cursor from a place on.
    pub(crate) fn complete(&mut self, from: usize, with: &str) {
        self.text.replace_range(from..self.cursor, "");
        self.cursor = from;
        self.insert(with);
    }

    pub(crate) fn edit(&mut self, edit: Edit) {
        match edit {
            Edit::Backspace => drop(self.remove(self.left(), self.cursor)),
            Edit::Delete => drop(self.remove(self.cursor, self.right())),
            Edit::Left => self.cursor = self.left(),
            Edit::Right => self.cursor = self.right(),
            Edit::WordLeft => self.cursor = self.word_left(),
            Edit::WordRight => self.cursor = self.word_right(),
            Edit::LineStart => self.cursor = self.line_start(),
            Edit::LineEnd => self.cursor = self.line_end(),
            Edit::KillToEnd => {
                // At its end, the line break goes, as in Emacs.
                let end = if self.line_end() == self.cursor { self.right() } else { self.line_end() };
                self.cut = self.remove(self.cursor, end);
            }
            Edit::KillToStart => self.cut = self.remove(self.line_start(), self.cursor),
            Edit::KillWordBack => self.cut = self.remove(self.word_left(), self.cursor),
            Edit::KillWord => self.cut = self.remove(self.cursor, self.word_right()),
            Edit::Yank => self.insert(&self.cut.clone()),
        }
    }

    /// A line up, or what was typed before.
    pub(crate) fn up(&mut self) {
        let start = self.line_start();
        if start > 0 {
            let column = self.text[start..self.cursor].graphemes(true).count();
            self.move_to(self.text[..start - 1].rfind('\n').map_or(0, |at| at + 1), column);
            return;
        }
        let next = self.recalled.as_ref().map_or(self.before.len(), |(at, _)| *at);
        if next > 0 {
            let typed = self.recalled.take().map_or_else(|| self.text.clone(), |(_, typed)| typed);
            self.recalled = Some((next - 1, typed));
            self.show(self.before[next - 1].clone());
        }
    }

    /// A line down, or what was typed after it.
    pub(crate) fn down(&mut self) {
        let end = self.line_end();
        if end < self.text.len() {
            let column = self.text[self.line_start()..self.cursor].graphemes(true).count();
            self.move_to(end + 1, column);
            return;
        }
        let Some((at, typed)) = self.recalled.take() else { return };
        match self.before.get(at + 1).cloned() {
            Some(later) => {
                self.recalled = Some((at + 1, typed));
                self.show(later);
            }
            None => self.show(typed),
        }
    }

    /// Takes the text, and remembers it.
    pub(crate) fn take(&mut self) -> String {
        let text = std::mem::take(&mut self.text);
        self.cursor = 0;
        self.recalled = None;
        if !text.trim().is_empty() && self.before.last() != Some(&text) {
            self.before.push(text.clone());
            if self.before.len() > MOST_BEFORE {
                self.before.remove(0);
            }
        }
        text
    }

    /// Rows of at most this width, and the row and the column of the cursor.
    pub(crate) fn rows(&self, columns: usize) -> (Vec<String>, (usize, usize)) {
        let columns = columns.max(1);
        let (mut rows, mut used, mut cursor) = (vec![String::new()], 0, (0, 0));
        for (at, cluster) in self.text.grapheme_indices(true) {
            if at <= self.cursor {
                cursor = (rows.len() - 1, used);
            }
            if cluster == "\n" {
                rows.push(String::new());
                used = 0;
                continue;
            }
            for cluster in drawn(cluster).graphemes(true) {
                if used + cluster.width() > columns && used > 0 {
                    rows.push(String::new());
                    used = 0;
                }
                rows.last_mut().expect("there is a first row").push_str(cluster);
                used += cluster.width();
            }
        }
        if self.cursor == self.text.len() {
            if used >= columns {
                rows.push(String::new());
                used = 0;
            }
            cursor = (rows.len() - 1, used);
        }
        (rows, cursor)
    }

    fn show(&mut self, text: String) {
        self.cursor = text.len();
        self.text = text;
    }

    fn remove(&mut self, from: usize, to: usize) -> String {
        self.cursor = from;
        self.text.drain(from..to).collect()
    }

    fn move_to(&mut self, line: usize, column: usize) {
        let rest = &self.text[line..];
        let rest = &rest[..rest.find('\n').unwrap_or(rest.len())];
        self.cursor = line + rest.graphemes(true).take(column).map(str::len).sum::<usize>();
    }

    fn left(&self) -> usize {
        self.to_cursor().grapheme_indices(true).next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.cursor + self.text[self.cursor..].graphemes(true).next().map_or(0, str::len)
    }

    fn word_left(&self) -> usize {
        let word = self.to_cursor().trim_end();
        word.rfind(char::is_whitespace)
            .map_or(0, |at| at + word[at..].chars().next().map_or(0, char::len_utf8))
    }

    fn word_right(&self) -> usize {
        let rest = &self.text[self.cursor..];
        let spaces = rest.len() - rest.trim_start().len();
        self.cursor + spaces + rest[spaces..].find(char::is_whitespace).unwrap_or(rest.len() - spaces)
    }

    fn line_start(&self) -> usize {
        self.to_cursor().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn typed(text: &str) -> Editor {
        let mut editor = Editor::default();
        editor.insert(text);
        editor
    }

    #[test]
    fn keys_work_on_characters_words_and_lines() {
        let mut editor = typed("one two\nthree e\u{301}");
        editor.edit(Edit::Backspace);
        assert_eq!(editor.text(), "one two\nthree ");
        editor.edit(Edit::KillWordBack);
        editor.edit(Edit::Left);
        editor.edit(Edit::WordLeft);
        editor.edit(Edit::Yank);
        assert_eq!(editor.text(), "one three two\n");
        editor.edit(Edit::KillToEnd);
        editor.edit(Edit::LineStart);
        editor.edit(Edit::KillWord);
        assert_eq!(editor.text(), " three \n");
    }

    #[test]
    fn up_moves_through_lines_and_then_through_what_was_typed() {
        let mut editor = typed("first");
        editor.take();
        editor.insert("second\nline");
        editor.take();
        editor.insert("draft");
        editor.up();
        assert_eq!(editor.text(), "second\nline");
        editor.up();
        assert_eq!((editor.text(), editor.to_cursor()), ("second\nline", "seco"));
        editor.up();
        assert_eq!(editor.text(), "first");
        editor.down();
        editor.down();
        assert_eq!(editor.text(), "draft");
    }

    #[test]
    fn a_paste_keeps_its_lines_and_loses_other_control_characters() {
        assert_eq!(typed("a\r\nb\rc\u{1b}[31m\td").text(), "a\nb\nc[31m\td");
        assert!(typed(&"x".repeat(2 * MOST_TEXT)).text().len() <= MOST_TEXT);
    }

    #[test]
    fn rows_have_the_cursor_where_the_next_character_goes() {
        let mut editor = typed("abc日");
        assert_eq!(editor.rows(4), (vec!["abc".into(), "日".into()], (1, 2)));
        editor.edit(Edit::Left);
        assert_eq!(editor.rows(5).1, (0, 3));
        assert_eq!(typed("ab").rows(2), (vec!["ab".into(), String::new()], (1, 0)));
    }

    pub(crate) fn edits() -> impl Strategy<Value = Edit> {
        use Edit::*;
        proptest::sample::select(vec![
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
        ])
    }

    proptest! {
        #[test]
        fn no_edit_leaves_the_text(steps in proptest::collection::vec(
            (any::<Option<String>>(), edits(), 0_u8..4, 1_usize..30), 0..60)) {
            let mut editor = Editor::default();
            for (text, edit, step, columns) in steps {
                editor.insert(text.as_deref().unwrap_or("\u{301}"));
                editor.edit(edit);
                match step { 0 => editor.up(), 1 => editor.down(), 2 => drop(editor.take()), _ => {} }
                let (rows, (row, column)) = editor.rows(columns);
                prop_assert!(row < rows.len() && column <= columns.max(4), "{row} {column}");
                prop_assert!(editor.text().is_char_boundary(editor.cursor));
            }
        }
    }
}
