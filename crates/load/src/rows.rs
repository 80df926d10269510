//! Rows from the generator, in batches over a bounded channel.
//!
//! The thread that sends requests only appends a row to the batch in memory and passes full batches on. It encodes no
//! row, writes no file and reads no clock for a row; the caller's thread does all of that.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use kendall_record::RequestRow;

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
pub struct RowBatches(Receiver<Vec<RequestRow>>);

impl Iterator for RowBatches {
    type Item = Vec<RequestRow>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.recv().ok()
    }
}

/// The generator's end. Dropping it sends its remaining rows.
pub(crate) struct RowSink {
    sender: SyncSender<Vec<RequestRow>>,
    batch: Vec<RequestRow>,
    sent_ns: i64,
}

/// The two ends of the channel.
pub(crate) fn channel() -> (RowSink, RowBatches) {
    let (sender, receiver) = sync_channel(BATCHES);
    (RowSink { sender, batch: Vec::with_capacity(BATCH), sent_ns: i64::MIN }, RowBatches(receiver))
}

impl RowSink {
    pub(crate) fn push(&mut self, row: RequestRow) {
        self.batch.push(row);
        if self.batch.len() >= BATCH {
            self.send();
        }
    }

    /// Sends a batch that is not full if the last one was sent long ago.
    pub(crate) fn send_if_old(&mut self, now_ns: i64) {
        if !self.batch.is_empty() && now_ns >= self.sent_ns.saturating_add(LONGEST_NS) {
            self.sent_ns = now_ns;
            self.send();
        }
    }

    fn send(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // If the receiver is gone, it needs no more rows; if it panicked, the panic is passed on at the end of the run.
        let _ = self.sender.send(batch);
    }
}

impl Drop for RowSink {
    fn drop(&mut self) {
        if !self.batch.is_empty() {
            self.send();
        }
    }
}
