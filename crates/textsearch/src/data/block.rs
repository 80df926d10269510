//! A block: up to 65,536 rows that follow each other in the file, a few megabytes of text.
//!
//! Within it the sentences of each type are contiguous, each ended by a line feed, so that one type is one stretch of memory and
//! all types are one, too. `rows` records the order in the file. As a block covers the same rows of the file whatever their
//! types, answers in the order of the file need nothing from other blocks: a block is the unit of work, of answers and of
//! distribution among processors.

use std::ops::Range;

use super::bytes::Bytes;
use crate::error::SearchError;

/// Rows are numbered by 16 bits within a block.
pub(crate) const MOST_ROWS: usize = 1 << 16;

/// The index of a line in a block's text, in the order of memory.
pub(crate) type Line = u16;

#[derive(Debug)]
pub(crate) struct Block {
    text: Bytes,
    /// Where each line starts, and where the last one ends.
    starts: Vec<u32>,
    order: Order,
    /// Whether a sentence has a character at which Java's `.` ends, other than the line feed.
    pub(crate) has_terminators: bool,
    /// The checksum of all bytes of the piece of the file that it was made from.
    pub(crate) checksum: u32,
}

/// The order of the lines.
#[derive(Debug)]
enum Order {
    /// The order of the file, with the type of each line.
    File { kinds: Vec<i32> },
    /// Type by type: where each begins, and the row in the file of each line, from the block's first.
    ByKind { groups: Vec<Group>, rows: Vec<u16> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    kind: i32,
    first: u32,
}

/// The order that a block should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lay {
    File,
    ByKind,
}

/// A line of the file: its type, and the bytes of its sentence.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    pub(crate) kind: i32,
    pub(crate) sentence: Range<u32>,
}

impl Block {
    /// Arranges rows, whose sentences are in `piece`, in the given order. There must be at most [`MOST_ROWS`].
    pub(crate) fn new(piece: &[u8], rows: &[Row], lay: Lay) -> Result<Self, SearchError> {
        debug_assert!(rows.len() <= MOST_ROWS, "rows are numbered by 16 bits");
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        if lay == Lay::ByKind {
            order.sort_by_key(|&row| rows[row as usize].kind);
        }
        let length = rows.iter().map(|row| row.sentence.len() + 1).sum();
        let mut text = Bytes::zeroed(length)?;
        let mut starts = Vec::with_capacity(rows.len() + 1);
        let mut at = 0;
        starts.push(0);
        for &row in &order {
            let Range { start, end } = rows[row as usize].sentence;
            let sentence = &piece[start as usize..end as usize];
            text[at..at + sentence.len()].copy_from_slice(sentence);
            at += sentence.len();
            text[at] = b'\n';
            at += 1;
            starts.push(at as u32);
        }
        let order = match lay {
            Lay::File => Order::File { kinds: rows.iter().map(|row| row.kind).collect() },
            Lay::ByKind => {
                let kinds = order.iter().map(|&row| rows[row as usize].kind);
                Order::ByKind { groups: groups(kinds), rows: order.iter().map(|&row| row as u16).collect() }
            }
        };
        let has_terminators = has_terminators(&text);
        Ok(Self { text, starts, order, has_terminators, checksum: 0 })
    }

    /// The number of its lines.
    pub(crate) fn lines(&self) -> usize {
        self.starts.len() - 1
    }

    /// All sentences, each with a line feed behind it.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Where the lines start, and where the last one ends.
    pub(crate) fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// The sentence of a line, without its line feed.
    pub(crate) fn sentence(&self, line: usize) -> &[u8] {
        &self.text[self.starts[line] as usize..self.starts[line + 1] as usize - 1]
    }

    /// The type of a line.
    pub(crate) fn kind(&self, line: usize) -> i32 {
        match &self.order {
            Order::File { kinds } => kinds[line],
            Order::ByKind { groups, .. } => {
                groups[groups.partition_point(|group| group.first as usize <= line) - 1].kind
            }
        }
    }

    /// The lines of these types, in stretches that do not touch; all lines if no type is given. Blocks in the order of the file
    /// return all lines: the caller then checks the type of each.
    pub(crate) fn lines_of(&self, kinds: &[i32]) -> Vec<Range<usize>> {
        let all = 0..self.lines();
        let Order::ByKind { groups, .. } = &self.order else { return vec![all] };
        if kinds.is_empty() {
            return vec![all];
        }
        let mut found: Vec<Range<usize>> = Vec::new();
        for &kind in kinds {
            let Ok(at) = groups.binary_search_by_key(&kind, |group| group.kind) else { continue };
            let lines = self.group(groups, at);
            match found.last_mut() {
                Some(last) if last.end == lines.start => last.end = lines.end,
                _ => found.push(lines),
            }
        }
        found
    }

    /// The number of rows of these types; of all rows if no type is given.
    pub(crate) fn rows_of(&self, kinds: &[i32]) -> usize {
        match &self.order {
            Order::File { kinds: own } if !kinds.is_empty() => {
                own.iter().filter(|kind| kinds.binary_search(kind).is_ok()).count()
            }
            _ => self.lines_of(kinds).iter().map(ExactSizeIterator::len).sum(),
        }
    }

    /// The types, with the number of contiguous rows of each.
    pub(crate) fn kinds(&self) -> Vec<(i32, usize)> {
        match &self.order {
            Order::File { kinds } => kinds.iter().map(|&kind| (kind, 1)).collect(),
            Order::ByKind { groups, .. } => {
                (0..groups.len()).map(|at| (groups[at].kind, self.group(groups, at).len())).collect()
            }
        }
    }

    /// Type by type, its lines. One stretch without a type if the lines are in the order of the file.
    pub(crate) fn groups(&self) -> Vec<(Option<i32>, Range<usize>)> {
        match &self.order {
            Order::File { .. } => vec![(None, 0..self.lines())],
            Order::ByKind { groups, .. } => {
                (0..groups.len()).map(|at| (Some(groups[at].kind), self.group(groups, at))).collect()
            }
        }
    }

    fn group(&self, groups: &[Group], at: usize) -> Range<usize> {
        groups[at].first as usize..groups.get(at + 1).map_or_else(|| self.lines(), |next| next.first as usize)
    }

    /// Puts lines in the order of the file.
    pub(crate) fn sort_as_in_file(&self, lines: &mut [Line]) {
        if let Order::ByKind { rows, .. } = &self.order {
            lines.sort_unstable_by_key(|&line| rows[usize::from(line)]);
        }
    }

    /// All lines in the order of the file.
    pub(crate) fn all_as_in_file(&self) -> Vec<Line> {
        match &self.order {
            Order::File { .. } => (0..self.lines()).map(|line| line as Line).collect(),
            Order::ByKind { rows, .. } => {
                let mut lines = vec![0; rows.len()];
                for (line, &row) in rows.iter().enumerate() {
                    lines[usize::from(row)] = line as Line;
                }
                lines
            }
        }
    }

    /// The memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let order = match &self.order {
            Order::File { kinds } => size_of_val(&kinds[..]),
            Order::ByKind { groups, rows } => size_of_val(&groups[..]) + size_of_val(&rows[..]),
        };
        self.text.len() + size_of_val(&self.starts[..]) + order
    }
}

fn groups(kinds: impl Iterator<Item = i32>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (line, kind) in kinds.enumerate() {
        if groups.last().is_none_or(|last| last.kind != kind) {
            groups.push(Group { kind, first: line as u32 });
        }
    }
    groups
}

/// Carriage return, U+0085, U+2028 and U+2029.
fn has_terminators(text: &[u8]) -> bool {
    memchr::memchr(b'\r', text).is_some()
        || memchr::memmem::find(text, "\u{85}".as_bytes()).is_some()
        || memchr::memmem::find_iter(text, b"\xe2\x80")
            .any(|at| matches!(text.get(at + 2), Some(0xa8 | 0xa9)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(rows: &[(i32, &str)], lay: Lay) -> Block {
        let mut piece = String::new();
        let rows: Vec<Row> = rows
            .iter()
            .map(|(kind, sentence)| {
                let start = piece.len() as u32;
                piece.push_str(sentence);
                Row { kind: *kind, sentence: start..piece.len() as u32 }
            })
            .collect();
        Block::new(piece.as_bytes(), &rows, lay).unwrap()
    }

    const ROWS: [(i32, &str); 5] = [(3, "c"), (-1, ""), (3, "dd"), (0, "a\u{2029}"), (-1, "b")];

    #[test]
    fn types_are_contiguous_and_their_order_in_the_file_is_kept() {
        let block = block(&ROWS, Lay::ByKind);
        assert_eq!(block.text(), "\nb\na\u{2029}\nc\ndd\n".as_bytes());
        let back: Vec<(i32, &[u8])> = block
            .all_as_in_file()
            .into_iter()
            .map(|line| (block.kind(line.into()), block.sentence(line.into())))
            .collect();
        assert_eq!(back, ROWS.map(|(kind, sentence)| (kind, sentence.as_bytes())));
        assert!(block.has_terminators);
        let mut some = [0, 2, 4];
        block.sort_as_in_file(&mut some);
        assert_eq!(some, [0, 4, 2]);
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "one stretch is what is found")]
    fn neighbouring_types_are_one_stretch() {
        let block = block(&ROWS, Lay::ByKind);
        assert_eq!(block.lines_of(&[]), [0..5]);
        assert_eq!(block.lines_of(&[-1, 0]), [0..3]);
        assert_eq!(block.lines_of(&[-1, 2, 3]), [0..2, 3..5]);
        assert!(block.lines_of(&[7]).is_empty());
    }

    #[test]
    fn in_the_order_of_the_file_each_line_knows_its_type() {
        let block = block(&ROWS, Lay::File);
        assert_eq!(block.text(), "c\n\ndd\na\u{2029}\nb\n".as_bytes());
        assert_eq!((0..5).map(|line| block.kind(line)).collect::<Vec<_>>(), [3, -1, 3, 0, -1]);
    }
}
