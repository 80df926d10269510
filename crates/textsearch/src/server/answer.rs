//! An answer of lines that is sent while its search goes on.
//!
//! What is kept of it are numbers of lines, which each reader makes rows of when its client has taken those before. So a slow
//! client costs a piece of 64 KB besides what the search has found, and keeps nobody from anything.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kendall_service::{BodyFuture, Reader, Source};
use tokio::sync::watch;

use crate::protocol::{END, error_row, fill_empty_rows};
use crate::{Form, Reading, Rows, Search};

/// Rows are handed over in pieces of about this.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// The memory that answers take, of all that are made or sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept(Arc<AtomicUsize>);

impl Kept {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// An answer that may still grow.
#[derive(Debug)]
pub(crate) struct Answer {
    form: Form,
    state: watch::Sender<State>,
    kept: Kept,
    counted: AtomicUsize,
}

#[derive(Clone, Debug)]
struct State {
    search: Arc<Search>,
    /// Why it ended early.
    failed: Option<Arc<str>>,
}

impl Answer {
    pub(crate) fn new(search: Arc<Search>, form: Form, kept: &Kept) -> Self {
        let answer = Self {
            form,
            state: watch::Sender::new(State { search, failed: None }),
            kept: kept.clone(),
            counted: AtomicUsize::new(0),
        };
        answer.count();
        answer
    }

    /// More was found, or all.
    pub(crate) fn grew(&self) {
        self.state.send_modify(|_| ());
        self.count();
    }

    /// The search was begun anew.
    pub(crate) fn replace(&self, search: &Arc<Search>) {
        self.state.send_modify(|state| state.search = Arc::clone(search));
    }

    /// It ends here, for this reason.
    pub(crate) fn fail(&self, why: &str) {
        self.state.send_modify(|state| state.failed = Some(why.into()));
    }

    fn count(&self) {
        let now = self.state.borrow().search.bytes();
        let before = self.counted.swap(now, Ordering::Relaxed);
        // The sum wraps, and comes out right, where an answer has become smaller.
        self.kept.0.fetch_add(now.wrapping_sub(before), Ordering::Relaxed);
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.kept.0.fetch_sub(self.counted.load(Ordering::Relaxed), Ordering::Relaxed);
    }
}

impl Source for Answer {
    fn open(self: Arc<Self>) -> Box<dyn Reader> {
        let states = self.state.subscribe();
        let search = Arc::clone(&states.borrow().search);
        Box::new(Sending {
            rows: Rows::new(Arc::clone(&search), self.form),
            search,
            states,
            answer: self,
            piece: Vec::new(),
            given_bytes: 0,
            again_bytes: 0,
            next: Next::Rows,
        })
    }
}

/// An answer on its way to one client.
#[derive(Debug)]
struct Sending {
    answer: Arc<Answer>,
    states: watch::Receiver<State>,
    search: Arc<Search>,
    rows: Rows,
    piece: Vec<u8>,
    /// Bytes of rows that the client was given.
    given_bytes: u64,
    /// Bytes that it has already and that are read again.
    again_bytes: u64,
    next: Next,
}

#[derive(Debug)]
enum Next {
    Rows,
    Nothing,
    Failure(Arc<str>),
}

impl Reader for Sending {
    fn piece(&mut self) -> BodyFuture<'_, &[u8]> {
        Box::pin(async {
            self.piece.clear();
            match &self.next {
                Next::Nothing => {}
                Next::Failure(why) => return Err(io::Error::other(why.to_string())),
                Next::Rows => self.fill().await?,
            }
            Ok(self.piece.as_slice())
        })
    }
}

impl Sending {
    /// Waits until there is a piece, and makes it.
    async fn fill(&mut self) -> io::Result<()> {
        loop {
            let state = self.states.borrow_and_update().clone();
            if !Arc::ptr_eq(&state.search, &self.search) {
                self.rows = Rows::new(Arc::clone(&state.search), self.answer.form);
                self.search = state.search;
                self.again_bytes = self.given_bytes;
            }
            let reading = self.read();
            if reading == Reading::End && self.search.is_complete() {
                self.piece.push(END);
                self.next = Next::Nothing;
            } else if let (Reading::End, Some(why)) = (reading, state.failed) {
                self.piece.extend(error_row(&why).into_bytes());
                self.next = Next::Failure(why);
            }
            if !self.piece.is_empty() {
                return Ok(());
            }
            if reading != Reading::Full && self.states.changed().await.is_err() {
                return Err(io::Error::other("nobody works on this answer any more"));
            }
        }
    }

    /// Reads rows into the piece, but for those that the client has.
    fn read(&mut self) -> Reading {
        let reading = self.rows.read(&mut self.piece, PIECE_BYTES);
        if self.answer.form == Form::Sentence {
            fill_empty_rows(&mut self.piece, 0);
        }
        let again = usize::try_from(self.again_bytes).unwrap_or(usize::MAX).min(self.piece.len());
        self.piece.drain(..again);
        self.again_bytes -= again as u64;
        self.given_bytes += self.piece.len() as u64;
        reading
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::*;
    use crate::{Database, OpenOptions, Query, Saving, Semantics};

    fn search(rows: usize) -> Arc<Search> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        (0..rows).for_each(|row| writeln!(file, "1@@@row {row} of some").unwrap());
        let options = OpenOptions { saving: Saving::Off, ..OpenOptions::default() };
        let database = Arc::new(Database::open(file.path(), &options).unwrap());
        Arc::new(database.search(&Arc::new(Query::parse(";", &Semantics::default()).unwrap())))
    }

    async fn rest(reader: &mut dyn Reader) -> (Vec<u8>, bool) {
        let mut all = Vec::new();
        loop {
            match reader.piece().await {
                Ok([]) => return (all, true),
                Ok(piece) => all.extend_from_slice(piece),
                Err(_) => return (all, false),
            }
        }
    }

    #[test]
    fn a_search_that_is_begun_anew_neither_repeats_nor_loses_rows() {
        let (first, again) = (search(200_000), search(200_000));
        again.run().unwrap();
        first.advance(Duration::ZERO);
        let answer = Arc::new(Answer::new(Arc::clone(&first), Form::Row, &Kept::default()));
        let (all, part) = Builder::new_current_thread().build().unwrap().block_on(async {
            let mut reader = Arc::clone(&answer).open();
            let mut part = reader.piece().await.unwrap().to_vec();
            first.cancel();
            answer.replace(&again);
            answer.grew();
            let (others, is_whole) = rest(&mut *reader).await;
            assert!(is_whole);
            part.extend(others);
            (rest(&mut *Arc::clone(&answer).open()).await.0, part)
        });
        assert_eq!(part.len(), all.len());
        assert!(part == all && all.ends_with(b"of some\n\n"));
    }

    #[test]
    fn an_answer_that_fails_says_why_and_does_not_look_whole() {
        let search = search(200_000);
        search.advance(Duration::ZERO);
        search.cancel();
        let kept = Kept::default();
        let answer = Arc::new(Answer::new(search, Form::Row, &kept));
        assert!(kept.bytes() > 0);
        answer.fail("too slow");
        let mut reader = Arc::clone(&answer).open();
        let (all, is_whole) = Builder::new_current_thread().build().unwrap().block_on(rest(&mut *reader));
        assert!(!is_whole && all.ends_with(b" of some\nerror@@@too slow\n"));
        drop((reader, answer));
        assert_eq!(kept.bytes(), 0);
    }
}
