//! An answer of lines that is sent while its search runs.
//!
//! It is stored as numbers of lines, from which each reader makes rows once its client has read the previous ones. So a slow
//! client costs a piece of 64 KB besides the matches of the search, and delays no other client.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kendall_service::{BodyFuture, Reader, Source};
use tokio::sync::watch;

use crate::protocol::{END, error_row, fill_empty_rows};
use crate::rows::{Form, Reading, Rows};
use crate::search::Search;

/// The approximate size of the pieces in which rows are sent.
pub(crate) const PIECE_BYTES: usize = 64 * 1024;

/// The memory of all answers that are computed or sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnswerMemory(Arc<AtomicUsize>);

impl AnswerMemory {
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// An answer that may still grow.
#[derive(Debug)]
pub(crate) struct Answer {
    form: Form,
    search: Arc<Search>,
    /// The reason why it ended early, if it did. Readers are notified of each change, and when more is found.
    failed: watch::Sender<Option<Arc<str>>>,
    kept: AnswerMemory,
    counted: AtomicUsize,
}

impl Answer {
    pub(crate) fn new(search: Arc<Search>, form: Form, kept: &AnswerMemory) -> Self {
        let answer = Self {
            form,
            search,
            failed: watch::Sender::new(None),
            kept: kept.clone(),
            counted: AtomicUsize::new(0),
        };
        answer.count();
        answer
    }

    /// Notifies readers of more matches, or of the end.
    pub(crate) fn grew(&self) {
        self.failed.send_modify(|_| ());
        self.count();
    }

    /// Ends it, for this reason.
    pub(crate) fn fail(&self, why: &str) {
        self.failed.send_replace(Some(why.into()));
    }

    fn count(&self) {
        let now = self.search.bytes();
        let before = self.counted.swap(now, Ordering::Relaxed);
        // The sum wraps, and is right again, where an answer has become smaller.
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
        Box::new(Sending {
            rows: Rows::new(Arc::clone(&self.search), self.form),
            failed: self.failed.subscribe(),
            answer: self,
            piece: Vec::new(),
            next: Next::Rows,
        })
    }
}

/// An answer that is being sent to one client.
#[derive(Debug)]
struct Sending {
    answer: Arc<Answer>,
    failed: watch::Receiver<Option<Arc<str>>>,
    rows: Rows,
    piece: Vec<u8>,
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
            let failed = self.failed.borrow_and_update().clone();
            let reading = self.rows.read(&mut self.piece, PIECE_BYTES);
            if self.answer.form == Form::Sentence {
                fill_empty_rows(&mut self.piece, 0);
            }
            if reading == Reading::End && self.answer.search.is_complete() {
                self.piece.push(END);
                self.next = Next::Nothing;
            } else if let (Reading::End | Reading::Waiting, Some(why)) = (reading, failed) {
                self.piece.extend(error_row(&why).into_bytes());
                self.next = Next::Failure(why);
            }
            if !self.piece.is_empty() {
                return Ok(());
            }
            if reading != Reading::Full && self.failed.changed().await.is_err() {
                return Err(io::Error::other("no worker continues this answer"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use tokio::runtime::Builder;

    use super::*;
    use crate::database::Database;
    use crate::opening::{OpenOptions, Saving};
    use crate::query::Query;
    use crate::semantics::Semantics;

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

    /// If two requests share a search, one can fail at its deadline while the other continues.
    #[test]
    fn an_answer_that_fails_while_its_search_goes_on_does_not_look_whole() {
        let search = search(200_000);
        search.advance(Duration::ZERO);
        let answers =
            [0, 1].map(|_| Arc::new(Answer::new(Arc::clone(&search), Form::Row, &AnswerMemory::default())));
        answers[0].fail("too slow");
        let runtime = Builder::new_current_thread().build().unwrap();
        let read = |answer: &Arc<Answer>| runtime.block_on(rest(&mut *Arc::clone(answer).open()));
        let (part, is_whole) = read(&answers[0]);
        assert!(!is_whole && part.ends_with(b"error@@@too slow\n"));
        search.run().unwrap();
        answers[1].grew();
        let (all, is_whole) = read(&answers[1]);
        assert!(is_whole && all.ends_with(b"of some\n\n") && all.len() > part.len());
    }

    #[test]
    fn an_answer_that_fails_says_why_and_does_not_look_whole() {
        let search = search(200_000);
        search.advance(Duration::ZERO);
        search.cancel();
        let kept = AnswerMemory::default();
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
