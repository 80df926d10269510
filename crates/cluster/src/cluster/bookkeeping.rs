//! The thread that writes the ledger: it takes what is queued and writes it as one transaction, so that many reports share one
//! flush. While the ledger cannot be written, as on a full disk, it keeps what is to be written, refuses new jobs at once, and
//! tries again.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use tokio::sync::mpsc as channel;

use super::Reply;
use super::talking::Talk;
use crate::ledger::{Ledger, LedgerEntry, LedgerRecord};
use crate::spec::JobId;

/// How long changes wait for which no worker waits.
const UNHURRIED: Duration = Duration::from_millis(500);
/// The most bookings in one transaction, and the most that wait for it.
pub(super) const MOST_BOOKINGS: usize = 4_096;
/// The most ranges that wait while the ledger cannot be written. Changes beyond them are dropped: workers deliver their reports
/// again, and what this machine tested is tested again by the next server.
const MOST_UNWRITTEN: usize = 1 << 18;
/// How long to wait before a failed transaction is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Work for the ledger.
#[derive(Debug)]
pub(super) enum Booking {
    /// Begin a job and answer what is known of it. Without an answer, the sender is dropped.
    Begin { job: JobId, answer: Sender<LedgerEntry> },
    /// Write changes, then answer a worker.
    Record { records: Vec<LedgerRecord>, reply: Option<Reply> },
    /// Write what is queued, and end.
    End,
}

/// Keeps the books until [`Booking::End`].
pub(super) fn keep_books(
    ledger: Ledger,
    bookings: &Receiver<Booking>,
    talks: &channel::UnboundedSender<Talk>,
) {
    let mut books = Books { ledger, unwritten: BTreeMap::new(), due: None, is_failing: false };
    loop {
        let Batch { replies, begins, is_last } = books.take_batch(bookings);
        if books.write() {
            for reply in replies {
                let _ = talks.send(Talk::Answer(reply));
            }
            for (job, answer) in begins {
                match books.ledger.begin(job) {
                    Ok(entry) => drop(answer.send(entry)),
                    Err(error) => {
                        tracing::error!(%error, "cannot read the ledger; the search stays on this machine");
                    }
                }
            }
        }
        if is_last {
            return;
        }
    }
}

/// The ledger, and the changes that are not in it yet.
struct Books {
    ledger: Ledger,
    unwritten: BTreeMap<JobId, LedgerEntry>,
    /// When these are to be written.
    due: Option<Instant>,
    /// Whether the last transaction failed.
    is_failing: bool,
}

/// What waits for a transaction.
#[derive(Default)]
struct Batch {
    replies: Vec<Reply>,
    begins: Vec<(JobId, Sender<LedgerEntry>)>,
    is_last: bool,
}

impl Books {
    /// Takes bookings until a transaction is due: at once if a job begins or a worker waits, unless the last one failed.
    fn take_batch(&mut self, bookings: &Receiver<Booking>) -> Batch {
        let mut batch = Batch::default();
        for _ in 0..MOST_BOOKINGS {
            let is_hurried = !batch.begins.is_empty() || !(batch.replies.is_empty() || self.is_failing);
            let next = match self.due {
                _ if is_hurried => bookings.recv_timeout(Duration::ZERO),
                Some(due) => bookings.recv_timeout(due.saturating_duration_since(Instant::now())),
                None => bookings.recv().map_err(RecvTimeoutError::from),
            };
            match next {
                Ok(Booking::Record { records, reply }) => match self.note(records) {
                    true => batch.replies.extend(reply),
                    false => tracing::debug!("too many changes wait for the ledger; one was dropped"),
                },
                Ok(Booking::Begin { job, answer }) => batch.begins.push((job, answer)),
                Err(RecvTimeoutError::Timeout) => break,
                Ok(Booking::End) | Err(RecvTimeoutError::Disconnected) => {
                    batch.is_last = true;
                    break;
                }
            }
        }
        batch
    }

    /// Adds changes to those that are to be written. Returns whether there was capacity.
    fn note(&mut self, records: Vec<LedgerRecord>) -> bool {
        let waiting: usize = self.unwritten.values().map(|entry| 1 + entry.tested.parts()).sum();
        if waiting >= MOST_UNWRITTEN {
            return false;
        }
        self.due.get_or_insert_with(|| Instant::now() + UNHURRIED);
        for LedgerRecord { job, tested, found } in records {
            let entry = self.unwritten.entry(job).or_default();
            for range in tested {
                entry.tested.insert(range);
            }
            entry.found = found.or(entry.found);
        }
        true
    }

    /// Writes the changes. If that fails, they are kept for the next time.
    fn write(&mut self) -> bool {
        let record = |(job, entry): (&JobId, &LedgerEntry)| LedgerRecord {
            job: *job,
            tested: entry.tested.iter().collect(),
            found: entry.found,
        };
        let records: Vec<_> = self.unwritten.iter().map(record).collect();
        let result = if records.is_empty() { Ok(()) } else { self.ledger.record(&records) };
        self.is_failing = result.is_err();
        match result {
            Ok(()) => {
                self.unwritten.clear();
                self.due = None;
            }
            Err(error) => {
                // The batch's searches stay on this machine, and its workers deliver their reports again.
                tracing::error!(%error, "cannot write the ledger; trying again");
                self.due = Some(Instant::now() + AGAIN);
            }
        }
        !self.is_failing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{CoordinatorId, ReportAnswer};
    use crate::ranges::RangeSet;
    use std::iter::once;
    use std::sync::mpsc;
    use std::thread;

    const JOB: JobId = JobId([7; 16]);
    /// Only a hanging thread takes this long.
    const LONG: Duration = Duration::from_secs(60);

    fn ledger() -> Ledger {
        let mut ledger = Ledger::in_memory(CoordinatorId(1)).unwrap();
        ledger.begin(JOB).unwrap();
        ledger
    }

    fn record(start: u64) -> LedgerRecord {
        LedgerRecord { job: JOB, tested: once(start..start + 1).collect(), found: None }
    }

    #[test]
    fn a_full_disk_keeps_searches_here_and_lets_the_server_end() {
        let ledger = ledger();
        ledger.set_writable(false);
        let (bookings, to_book) = mpsc::sync_channel(MOST_BOOKINGS);
        let (talks, mut to_talk) = channel::unbounded_channel();
        let keeping = thread::spawn(move || keep_books(ledger, &to_book, &talks));
        let reply = Reply { subject: "_INBOX.a".into(), answer: ReportAnswer::Recorded };
        bookings.send(Booking::Record { records: vec![record(3)], reply: Some(reply) }).unwrap();
        let (answer, known) = mpsc::channel();
        bookings.send(Booking::Begin { job: JobId([8; 16]), answer }).unwrap();
        assert_eq!(known.recv_timeout(LONG), Err(RecvTimeoutError::Disconnected));
        bookings.send(Booking::End).unwrap();
        keeping.join().unwrap();
        assert!(to_talk.try_recv().is_err(), "a worker has an answer although nothing is written");
    }

    #[test]
    fn what_cannot_be_written_is_written_later_and_has_a_bound() {
        let mut books = Books { ledger: ledger(), unwritten: BTreeMap::new(), due: None, is_failing: false };
        books.ledger.set_writable(false);
        for start in 0..9 {
            assert!(books.note(vec![record(start)]));
            assert!(!books.write());
        }
        books.ledger.set_writable(true);
        assert!(books.write() && books.due.is_none());
        assert_eq!(books.ledger.entry(JOB).unwrap().tested, RangeSet::of(0..9));
        let apart = (0..MOST_UNWRITTEN as u64).flat_map(|at| record(2 * at).tested).collect();
        assert!(books.note(vec![LedgerRecord { tested: apart, ..record(0) }]));
        assert!(!books.note(vec![record(1)]));
    }
}
