//! The books of a run whose requests other processes send: their rows, counts and parts become one run.

use kendall_record::RequestRow;

use crate::part::RunPart;
use crate::progress::{Counts, Progress, Recent};
use crate::sends::SendLog;
use crate::summary::RunSummary;

/// The rows that processes have reported. It shows them to watchers as a generator of this process does.
pub struct ReceivedRows {
    ended: [u64; 5],
    recent: Recent,
    sends: SendLog,
}

/// The requests of the processes that have not ended.
#[derive(Clone, Copy, Debug, Default)]
pub struct OpenRequests {
    /// Requests that were due up to now, ended or not.
    pub sent: u64,
    /// Requests that are on a connection now.
    pub in_flight: u64,
    /// Requests that wait for a connection now.
    pub waiting: u64,
}

/// The rows of a run do not match its figures.
#[derive(Debug, thiserror::Error)]
#[error("{received} rows have arrived of {sent} requests that were sent")]
pub struct RowsMissing {
    received: u64,
    sent: u64,
}

impl Default for ReceivedRows {
    fn default() -> Self {
        Self { ended: [0; 5], recent: Recent::new(0), sends: SendLog::default() }
    }
}

impl ReceivedRows {
    /// Takes rows of any process, in any order.
    pub fn take(&mut self, rows: &[RequestRow]) {
        for row in rows {
            self.ended[row.outcome as usize] += 1;
            self.sends.add(row.index, row.scheduled, row.sent);
            if let Some(response_ns) = row.response_ns() {
                self.recent.add(response_ns);
            }
        }
    }

    /// Shows watchers the rows up to now.
    pub fn publish(&mut self, open: OpenRequests, progress: &Progress) {
        self.recent.publish(self.counts(open), progress);
    }

    fn counts(&self, open: OpenRequests) -> Counts {
        let OpenRequests { sent, in_flight, waiting } = open;
        Counts { sent: sent.max(self.ended.iter().sum()), outcomes: self.ended, in_flight, waiting }
    }

    /// Ends the run, of whose parts this is the sum. Its start is at an instant of this machine's clock.
    ///
    /// # Errors
    /// Fails where rows are missing, or more than the requests.
    pub fn end(
        mut self,
        part: RunPart,
        start_ns: i64,
        progress: &Progress,
    ) -> Result<RunSummary, RowsMissing> {
        self.recent.publish_last(self.counts(OpenRequests::default()), progress);
        if self.ended != part.ended {
            return Err(RowsMissing { received: self.ended.iter().sum(), sent: part.sent });
        }
        Ok(RunPart { start_ns, ..part }.summary(self.sends.summary()))
    }
}
