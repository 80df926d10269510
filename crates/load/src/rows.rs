//! Rows from the generator, in batches over a bounded channel; and the instants of the sends, where several threads send.
//!
//! The thread that sends requests only appends a row to the batch in memory and passes full batches on. It encodes no
//! row, writes no file and reads no clock for a row; the caller's thread does all of that.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use kendall_record::RequestRow;

use crate::sends::{Meter, SendMerger, Sends};

/// Rows per batch, unless requests are rare.
const BATCH: usize = 256;
/// The longest that a row waits for its batch to fill, in nanoseconds, plus or minus the time between two checks of the
/// generator.
const LONGEST_NS: i64 = 50_000_000;
/// The most batches in the channel, about 10 MB. If the receiver falls that far behind, the generator waits for it, and
/// the wait shows as send lag.
const BATCHES: usize = 256;

/// The rows of a run, in the order in which the requests ended. The iterator ends when the run is over.
#[derive(Debug)]
pub struct RowBatches {
    receiver: Receiver<Message>,
    merger: Arc<Mutex<SendMerger>>,
}

/// A message of a sending thread.
#[derive(Debug)]
enum Message {
    Rows(Vec<RequestRow>),
    /// The instants of a thread's sends, and the instant before which it makes no further ones.
    Sends {
        thread: usize,
        sent_ns: Vec<i64>,
        until_ns: i64,
    },
}

impl Iterator for RowBatches {
    type Item = Vec<RequestRow>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.receiver.recv().ok()? {
                Message::Rows(rows) => return Some(rows),
                Message::Sends { thread, sent_ns, until_ns } => {
                    let mut merger = self.merger.lock().unwrap_or_else(PoisonError::into_inner);
                    merger.take(thread, sent_ns, until_ns);
                }
            }
        }
    }
}

/// The end of one of the generator's threads. Dropping it sends its remaining rows.
pub(crate) struct RowSink {
    sender: SyncSender<Message>,
    batch: Vec<RequestRow>,
    sent_ns: i64,
    /// The thread's sends since the last message, if they are merged with those of other threads.
    sends: Option<(usize, Vec<i64>)>,
}

/// The sends of several threads, merged on the thread that takes the rows.
pub(crate) struct MergedSends(Arc<Mutex<SendMerger>>);

impl MergedSends {
    /// The statistics of all sends whose rows were taken. `dues` has when requests were due.
    pub(crate) fn summary(self, dues: Meter) -> Sends {
        let mut merger = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *merger).summary(dues)
    }
}

/// The ends of the channel: one for each thread that sends, and that of the caller.
pub(crate) fn channel(threads: usize) -> (Vec<RowSink>, RowBatches, MergedSends) {
    let (sender, receiver) = sync_channel(BATCHES);
    let sink = |thread| RowSink {
        sender: sender.clone(),
        batch: Vec::with_capacity(BATCH),
        sent_ns: i64::MIN,
        sends: (threads > 1).then(|| (thread, Vec::new())),
    };
    let sinks = (0..threads).map(sink).collect();
    let merger = Arc::new(Mutex::new(SendMerger::new(threads)));
    (sinks, RowBatches { receiver, merger: Arc::clone(&merger) }, MergedSends(merger))
}

impl RowSink {
    pub(crate) fn push(&mut self, row: RequestRow) {
        self.batch.push(row);
        if self.batch.len() >= BATCH {
            self.send();
        }
    }

    /// Keeps the instant of a send for the merger; returns whether sends are merged.
    pub(crate) fn keep_sent(&mut self, at_ns: i64) -> bool {
        let Some((_, sent_ns)) = &mut self.sends else { return false };
        sent_ns.push(at_ns);
        true
    }

    /// Sends a batch that is not full if the last one was sent long ago, and the instants of the sends. Further ones follow
    /// `relative_ns`, which is now by the clock of the run.
    pub(crate) fn send_if_old(&mut self, now_ns: i64, relative_ns: i64) {
        if !self.batch.is_empty() && now_ns >= self.sent_ns.saturating_add(LONGEST_NS) {
            self.sent_ns = now_ns;
            self.send();
        }
        self.pass_sends(relative_ns);
    }

    fn pass_sends(&mut self, until_ns: i64) {
        if let Some((thread, sent_ns)) = &mut self.sends {
            let (thread, sent_ns) = (*thread, std::mem::take(sent_ns));
            let _ = self.sender.send(Message::Sends { thread, sent_ns, until_ns });
        }
    }

    fn send(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // If the receiver is gone, it needs no more rows; if it panicked, the panic is passed on at the end of the run.
        let _ = self.sender.send(Message::Rows(batch));
    }
}

impl Drop for RowSink {
    fn drop(&mut self) {
        if !self.batch.is_empty() {
            self.send();
        }
        self.pass_sends(i64::MAX);
    }
}
