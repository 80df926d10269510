//! The thread that writes the ledger: it takes what is queued and writes it as one transaction, so that many reports share one
//! flush.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc as channel;

use super::Reply;
use super::talking::Talk;
use crate::ledger::{Ledger, LedgerEntry, LedgerRecord};
use crate::spec::JobId;

/// How long changes wait for which no worker waits.
const UNHURRIED: Duration = Duration::from_millis(500);
/// The most bookings in one transaction.
const MOST_BOOKINGS: usize = 4_096;
/// How long to wait before a failed transaction is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Work for the ledger.
#[derive(Debug)]
pub(super) enum Booking {
    /// Begin a job and answer what is known of it.
    Begin { job: JobId, answer: mpsc::Sender<LedgerEntry> },
    /// Write changes, then answer a worker.
    Record { records: Vec<LedgerRecord>, reply: Option<Reply> },
    /// Write what is queued, and end.
    End,
}

/// Keeps the books until [`Booking::End`].
pub(super) fn keep_books(
    mut ledger: Ledger,
    bookings: &mpsc::Receiver<Booking>,
    talks: &channel::UnboundedSender<Talk>,
) {
    let mut is_ending = false;
    while !is_ending {
        let (mut records, mut replies, mut begins) = (Vec::new(), Vec::new(), Vec::new());
        let mut due: Option<Instant> = None;
        // Waits while only unhurried changes are there.
        for _ in 0..MOST_BOOKINGS {
            let is_hurried = !replies.is_empty() || !begins.is_empty();
            let wait = match due {
                _ if is_hurried => Some(Duration::ZERO),
                Some(due) => Some(due.saturating_duration_since(Instant::now())),
                None => None,
            };
            let next = match wait {
                Some(wait) => {
                    bookings.recv_timeout(wait).map_err(|error| error == mpsc::RecvTimeoutError::Disconnected)
                }
                None => bookings.recv().map_err(|_| true),
            };
            match next {
                Ok(Booking::Record { records: more, reply }) => {
                    records.extend(more);
                    replies.extend(reply);
                    due.get_or_insert_with(|| Instant::now() + UNHURRIED);
                }
                Ok(Booking::Begin { job, answer }) => begins.push((job, answer)),
                Ok(Booking::End) | Err(true) => {
                    is_ending = true;
                    break;
                }
                Err(false) => break,
            }
        }
        if !records.is_empty() {
            while let Err(error) = ledger.record(&records) {
                // Workers wait, or deliver their reports again.
                tracing::error!(%error, "cannot write the ledger; trying again");
                if is_ending {
                    return;
                }
                std::thread::sleep(AGAIN);
            }
        }
        for reply in replies {
            let _ = talks.send(Talk::Answer(reply));
        }
        for (job, answer) in begins {
            match ledger.begin(job) {
                Ok(entry) => drop(answer.send(entry)),
                Err(error) => {
                    tracing::error!(%error, "cannot read the ledger; the search stays on this machine")
                }
            }
        }
    }
}
