//! The rows of an answer, returned in the order of the file while the search runs.

use std::io::Write as _;
use std::sync::Arc;

use crate::data::block::Line;
use crate::search::Search;

/// The form in which a row is returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The row as in the file: `type@@@sentence`.
    #[default]
    Row,
    /// The sentence alone.
    Sentence,
}

/// Reads the answer of a search, from its first row on. It holds no row: at most the numbers of the lines of one part.
#[derive(Debug)]
pub struct Rows {
    search: Arc<Search>,
    form: Form,
    /// The part that is being read, and its lines that were not returned yet.
    part: usize,
    lines: Option<std::vec::IntoIter<Line>>,
}

/// The reason why reading stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The limit is reached; more rows may be ready.
    Full,
    /// The next part is not done yet.
    Waiting,
    /// There are no more rows: the search has completed, or ended early, see [`Search::failure`] and [`Search::is_cancelled`].
    End,
}

impl Rows {
    /// The rows of a search, which may still run.
    pub fn new(search: Arc<Search>, form: Form) -> Self {
        Self { search, form, part: 0, lines: None }
    }

    /// Blocks until the part that [`read`](Self::read) waits for is done, the search ended early, or a part was given back and a
    /// thread must do it.
    pub fn wait(&self) {
        self.search.wait_for_part(self.part);
    }

    /// Appends rows, each ended by a line feed, until `out` has at least this many bytes. It exceeds that by no more than a row.
    pub fn read(&mut self, out: &mut Vec<u8>, until_bytes: usize) -> Reading {
        loop {
            if self.lines.is_none() {
                if self.part == self.search.parts().1 {
                    return Reading::End;
                }
                // Checked before the part is read: a part that was done by then is found.
                let ended = self.search.failure().is_some() || self.search.is_cancelled();
                let Some(found) = self.search.part_done(self.part) else {
                    return if ended { Reading::End } else { Reading::Waiting };
                };
                let block = &self.search.database().blocks[self.part];
                self.lines = Some(found.lines(block, self.search.query().kinds()).into_iter());
            }
            let block = &self.search.database().blocks[self.part];
            for line in self.lines.iter_mut().flatten() {
                let line = usize::from(line);
                if self.form == Form::Row {
                    let _ = write!(out, "{}@@@", block.kind(line));
                }
                out.extend_from_slice(block.sentence(line));
                out.push(b'\n');
                if out.len() >= until_bytes {
                    return Reading::Full;
                }
            }
            self.lines = None;
            self.part += 1;
        }
    }
}
