//! The output of a session's program, numbered, as far as a client may need it again. No I/O.
//!
//! The log holds a bounded number of bytes. While a client is expected to go on, output that it has not acknowledged is kept
//! and the log says how much more fits; otherwise the oldest output makes place for new.

use std::collections::VecDeque;

use crate::shell::protocol::Source;

/// The numbered output of a program.
#[derive(Debug)]
pub(crate) struct OutputLog {
    /// Output from offset `start`.
    bytes: VecDeque<u8>,
    start: u64,
    /// Where runs of one source begin, the first at or before `start`.
    runs: VecDeque<(u64, Source)>,
    acknowledged: u64,
    capacity: usize,
}

impl OutputLog {
    /// A log that holds this many bytes.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { bytes: VecDeque::new(), start: 0, runs: VecDeque::new(), acknowledged: 0, capacity }
    }

    /// Offset of the oldest byte that is held.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Offset of the oldest byte that no client has acknowledged.
    pub(crate) fn unacknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Offset after the newest byte: the length of all output.
    pub(crate) fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// How many bytes fit without losing one that is not acknowledged, where at most `bound` may wait to be acknowledged.
    pub(crate) fn free(&self, bound: usize) -> usize {
        let waiting = usize::try_from(self.end() - self.acknowledged).unwrap_or(usize::MAX);
        self.capacity.min(bound).saturating_sub(waiting)
    }

    /// Adds output. Where it does not fit, the oldest is dropped.
    pub(crate) fn push(&mut self, source: Source, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.runs.back().is_none_or(|(_, last)| *last != source) {
            self.runs.push_back((self.end(), source));
        }
        self.bytes.extend(bytes);
        let excess = self.bytes.len().saturating_sub(self.capacity);
        self.bytes.drain(..excess);
        self.start += excess as u64;
        self.acknowledged = self.acknowledged.max(self.start);
        while self.runs.get(1).is_some_and(|(begin, _)| *begin <= self.start) {
            self.runs.pop_front();
        }
    }

    /// The client has everything before this offset. False where no such output exists yet.
    pub(crate) fn acknowledge(&mut self, offset: u64) -> bool {
        let exists = offset <= self.end();
        if exists {
            self.acknowledged = self.acknowledged.max(offset);
        }
        exists
    }

    /// A piece of the output of one source, at most this long, from an offset that is held.
    pub(crate) fn piece(&self, offset: u64, most: usize) -> Option<(Source, &[u8])> {
        let from = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let run = self.runs.partition_point(|(begin, _)| *begin <= offset).checked_sub(1)?;
        let (front, back) = self.bytes.as_slices();
        let rest = if from < front.len() { &front[from..] } else { back.get(from - front.len()..)? };
        let run_end = self.runs.get(run + 1).map_or(u64::MAX, |(begin, _)| *begin);
        let of_run = usize::try_from(run_end - offset).unwrap_or(usize::MAX);
        let piece = &rest[..rest.len().min(most).min(of_run)];
        (!piece.is_empty()).then_some((self.runs[run].1, piece))
    }

    /// Where a client that attaches anew begins: at all that no client has acknowledged, and before that at up to `screen`
    /// bytes, from the beginning of a line.
    pub(crate) fn recent(&self, screen: u64) -> u64 {
        let from = self.end().saturating_sub(screen).clamp(self.start, self.acknowledged.max(self.start));
        if from == self.start && self.start == 0 {
            return 0;
        }
        let index = |offset: u64| usize::try_from(offset - self.start).unwrap_or(self.bytes.len());
        let shown_before = self.bytes.range(index(from)..index(self.acknowledged));
        match shown_before.into_iter().position(|byte| *byte == b'\n') {
            Some(line) => from + line as u64 + 1,
            None => self.acknowledged,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn pieces_are_of_one_source_and_in_order() {
        let mut log = OutputLog::new(10);
        log.push(Source::Output, b"abc");
        log.push(Source::Errors, b"DE");
        log.push(Source::Output, b"f");
        assert_eq!(log.piece(0, 99), Some((Source::Output, &b"abc"[..])));
        assert_eq!(log.piece(1, 1), Some((Source::Output, &b"b"[..])));
        assert_eq!(log.piece(3, 99), Some((Source::Errors, &b"DE"[..])));
        assert_eq!(log.piece(5, 99), Some((Source::Output, &b"f"[..])));
        assert_eq!((log.piece(6, 99), log.piece(60, 9)), (None, None));
        assert_eq!((log.free(10), log.acknowledge(4), log.free(99), log.acknowledge(7)), (4, true, 8, false));
    }

    #[test]
    fn a_fresh_client_begins_at_a_line_and_misses_nothing_that_is_not_acknowledged() {
        let mut log = OutputLog::new(100);
        assert_eq!(log.recent(8), 0);
        log.push(Source::Output, b"one\ntwo\nthree\nfour\n");
        assert_eq!(log.recent(8), 0);
        log.acknowledge(19);
        assert_eq!(log.recent(8), 14);
        log.push(Source::Output, b"five");
        assert_eq!(log.recent(2), 19);
        assert_eq!(log.recent(5), 19);
        assert_eq!(log.recent(10), 14);
        assert_eq!(log.recent(1000), 0);
    }

    proptest! {
        #[test]
        fn the_log_is_the_end_of_what_was_written(
            pushes in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..40), 0..60_u64), 0..30),
        ) {
            let (mut log, mut all) = (OutputLog::new(64), Vec::new());
            for (errors, bytes, acknowledged) in pushes {
                let source = if errors { Source::Errors } else { Source::Output };
                let (free, kept) = (log.free(64), log.acknowledged);
                log.push(source, &bytes);
                all.extend(bytes.iter().map(|byte| (source, *byte)));
                // What fits displaces nothing that is not acknowledged.
                prop_assert!(bytes.len() > free || log.acknowledged == kept);
                prop_assert!(log.free(99) <= 64 && log.bytes.len() <= 64);
                prop_assert_eq!(log.end(), all.len() as u64);
                log.acknowledge(acknowledged);
                let (mut at, mut read) = (log.start(), Vec::new());
                while let Some((source, piece)) = log.piece(at, 7) {
                    read.extend(piece.iter().map(|byte| (source, *byte)));
                    at += piece.len() as u64;
                }
                prop_assert_eq!(&read[..], &all[usize::try_from(log.start()).unwrap()..]);
                let recent = log.recent(16);
                prop_assert!(recent <= log.acknowledged && recent >= log.start());
            }
        }
    }
}
