//! Loads a file of lines `type@@@sentence`, piece by piece, on several threads.
//!
//! A piece is the lines that start within a range of bytes of the file. One thread reads it, checks it and arranges it in blocks,
//! so the most memory beyond the text itself is two pieces per thread. Lines that are not rows are skipped and reported:
//! [`Oddities`].

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use super::block::{Block, Lay, MOST_ROWS, Row};
use crate::error::SearchError;

const PIECE_BYTES: u64 = 4 << 20;
/// The file's first bytes are smaller pieces, so that the first rows of an answer come soon even if all text is scanned.
const FIRST_BYTES: u64 = 4 << 20;
const FIRST_PIECE_BYTES: u64 = 1 << 20;
/// The longest line.
const MOST_LINE_BYTES: usize = 16 << 20;
const SEPARATOR: &[u8] = b"@@@";
/// The most bytes of an invalid line to show.
const EXCERPT_BYTES: usize = 60;

/// The irregularities of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Lines that are not rows because they have no type: no answer contains them.
    pub without_type: u64,
    /// The first of them: its number in the file, from 1, and its beginning.
    pub first_without_type: Option<(u64, String)>,
    /// Rows that ended in carriage return and line feed: the carriage return is not part of the sentence.
    pub carriage_returns: u64,
    /// Rows that are not UTF-8: U+FFFD replaces the invalid bytes, as Java's readers do.
    pub not_utf8: u64,
    /// Rows without a word after the separator.
    pub empty: u64,
}

/// The result of a piece of the file.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) blocks: Vec<Block>,
    lines: u64,
    oddities: Oddities,
}

/// Reads a file of this size, unless it is stopped.
pub(crate) fn read(
    file: &File,
    path: &Path,
    size: u64,
    lay: Lay,
    threads: usize,
    stop: &AtomicBool,
) -> Result<(Vec<Piece>, Oddities), SearchError> {
    let pieces = pieces(size);
    let source = Source { file, path, size };
    let done: Vec<OnceLock<Result<Piece, SearchError>>> = pieces.iter().map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some((piece, slot)) = claim(&pieces, &done, &next) {
            let read = if stop.load(Ordering::Relaxed) {
                Err(SearchError::Stopped)
            } else {
                source.piece(piece).and_then(|bytes| parse(&bytes, lay))
            };
            if read.is_err() {
                next.store(pieces.len(), Ordering::Relaxed);
            }
            let _ = slot.set(read);
        }
    };
    // This thread is one of them, so a short file starts none.
    thread::scope(|scope| {
        (1..threads.min(pieces.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    // Pieces are claimed in order, so the ones not read after a failure come behind it.
    let read: Vec<Piece> = done.into_iter().map_while(OnceLock::into_inner).collect::<Result<_, _>>()?;
    let mut oddities = Oddities::default();
    let mut lines = 0;
    for piece in &read {
        oddities.add(&piece.oddities, lines);
        lines += piece.lines;
    }
    if lines > u64::from(u32::MAX) {
        return Err(SearchError::TooManyLines { path: path.to_owned() });
    }
    Ok((read, oddities))
}

fn claim<'a, A, B>(work: &'a [A], slots: &'a [B], next: &AtomicUsize) -> Option<(&'a A, &'a B)> {
    let at = next.fetch_add(1, Ordering::Relaxed);
    Some((work.get(at)?, &slots[at]))
}

fn pieces(size: u64) -> Vec<Range<u64>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while at < size {
        let length = if at < FIRST_BYTES { FIRST_PIECE_BYTES } else { PIECE_BYTES };
        pieces.push(at..(at + length).min(size));
        at += length;
    }
    pieces
}

struct Source<'a> {
    file: &'a File,
    path: &'a Path,
    size: u64,
}

impl Source<'_> {
    /// The lines that start within these bytes of the file.
    fn piece(&self, range: &Range<u64>) -> Result<Vec<u8>, SearchError> {
        // From the byte before, because a line starts after a line feed.
        let from = range.start.saturating_sub(1);
        let mut bytes = Vec::new();
        self.append(&mut bytes, from..range.end)?;
        let first = if range.start == 0 { Some(0) } else { memchr::memchr(b'\n', &bytes).map(|at| at + 1) };
        let own = bytes.len();
        let Some(first) = first.filter(|&first| first < own) else { return Ok(Vec::new()) };
        let mut ended = bytes.ends_with(b"\n");
        while !ended && from + (bytes.len() as u64) < self.size {
            let (seen, at) = (bytes.len(), from + bytes.len() as u64);
            if seen - own > MOST_LINE_BYTES {
                let line = memchr::memrchr(b'\n', &bytes[..own]).map_or(first, |at| at + 1);
                return Err(SearchError::LineTooLong {
                    path: self.path.to_owned(),
                    at_byte: from + line as u64,
                    limit_bytes: MOST_LINE_BYTES,
                });
            }
            self.append(&mut bytes, at..(at + (1 << 16)).min(self.size))?;
            if let Some(end) = memchr::memchr(b'\n', &bytes[seen..]) {
                bytes.truncate(seen + end + 1);
                ended = true;
            }
        }
        bytes.drain(..first);
        Ok(bytes)
    }

    fn append(&self, bytes: &mut Vec<u8>, range: Range<u64>) -> Result<(), SearchError> {
        let old = bytes.len();
        bytes.resize(old + (range.end - range.start) as usize, 0);
        self.file.read_exact_at(&mut bytes[old..], range.start).map_err(|reason| {
            if reason.kind() == std::io::ErrorKind::UnexpectedEof {
                SearchError::Changed(self.path.to_owned())
            } else {
                SearchError::Read { path: self.path.to_owned(), reason }
            }
        })
    }
}

/// Builds blocks of whole lines.
fn parse(bytes: &[u8], lay: Lay) -> Result<Piece, SearchError> {
    let checksum = crc32fast::hash(bytes);
    let mut oddities = Oddities::default();
    let clean = str::from_utf8(bytes).is_ok();
    let replaced = if clean { None } else { Some(replace(bytes, &mut oddities)) };
    let bytes = replaced.as_deref().unwrap_or(bytes);
    let mut rows = Vec::with_capacity(bytes.len() / 64);
    let (mut at, mut lines) = (0, 0);
    while at < bytes.len() {
        let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |length| at + length);
        lines += 1;
        match row(bytes, at..end, &mut oddities) {
            Some(row) => rows.push(row),
            None => oddities.no_type(lines, &bytes[at..end]),
        }
        at = end + 1;
    }
    let block = |rows: &[Row]| {
        let mut block = Block::new(bytes, rows, lay)?;
        block.checksum = checksum;
        Ok(block)
    };
    let blocks = rows.chunks(MOST_ROWS).map(block).collect::<Result<_, SearchError>>()?;
    Ok(Piece { blocks, lines, oddities })
}

fn row(bytes: &[u8], line: Range<usize>, oddities: &mut Oddities) -> Option<Row> {
    let text = &bytes[line.clone()];
    // A type has at most eleven characters.
    let mark = text.iter().take(12).position(|&byte| byte == b'@')?;
    if !text[mark..].starts_with(SEPARATOR) {
        return None;
    }
    let kind = kind(&text[..mark])?;
    let start = line.start + mark + SEPARATOR.len();
    let mut end = line.end;
    if end > start && bytes[end - 1] == b'\r' {
        end -= 1;
        oddities.carriage_returns += 1;
    }
    oddities.empty += u64::from(start == end);
    Some(Row { kind, sentence: start as u32..end as u32 })
}

/// A type in Java's notation: answers repeat rows unchanged, so there must be only one notation for each type.
fn kind(word: &[u8]) -> Option<i32> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let canonical = match digits {
        [b'0'] => word.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return None;
    }
    str::from_utf8(word).ok()?.parse().ok()
}

/// The same lines with U+FFFD in place of bytes that are not UTF-8.
fn replace(bytes: &[u8], oddities: &mut Oddities) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let valid = String::from_utf8_lossy(line);
        oddities.not_utf8 += u64::from(matches!(valid, std::borrow::Cow::Owned(_)));
        replaced.extend_from_slice(valid.as_bytes());
    }
    replaced
}

impl Oddities {
    fn no_type(&mut self, line: u64, text: &[u8]) {
        self.without_type += 1;
        self.first_without_type.get_or_insert_with(|| {
            let excerpt = &text[..text.len().min(EXCERPT_BYTES)];
            (line, String::from_utf8_lossy(excerpt).into_owned())
        });
    }

    /// Adds the oddities of a later piece, before which there are this many lines.
    fn add(&mut self, piece: &Self, lines_before: u64) {
        self.without_type += piece.without_type;
        self.carriage_returns += piece.carriage_returns;
        self.not_utf8 += piece.not_utf8;
        self.empty += piece.empty;
        if self.first_without_type.is_none() {
            self.first_without_type =
                piece.first_without_type.clone().map(|(line, text)| (lines_before + line, text));
        }
    }
}
