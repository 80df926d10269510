//! The server's own stamps of each answered request, written by a separate thread.
//!
//! Workers pass stamps through a bounded channel and never wait for the disk: stamps that do not fit are
//! dropped and counted.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kendall_record::RecordError;
use kendall_record::stamps::{Stamp, StampWriter};
use prometheus_client::metrics::counter::Counter;

use crate::error::ServiceError;

/// The capacity of the channel: the stamps of one polling interval at 800,000 answers a second.
const CAPACITY: usize = 16_384;
/// How long a stamp may stay in memory.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The workers' end: accepts stamps, or drops them.
#[derive(Clone, Debug)]
pub struct StampLog {
    sender: Option<SyncSender<Stamp>>,
    dropped: Counter,
}

/// The thread at the other end.
#[derive(Debug)]
pub(crate) struct StampThread(Option<JoinHandle<Result<(), RecordError>>>);

/// Opens the file and starts its thread; without a path, both ends do nothing.
pub(crate) fn open(path: Option<&Path>, dropped: Counter) -> Result<(StampLog, StampThread), ServiceError> {
    let Some(path) = path else { return Ok((StampLog { sender: None, dropped }, StampThread(None))) };
    let writer = StampWriter::create(path)?;
    let (sender, stamps) = sync_channel(CAPACITY);
    let thread = thread::Builder::new()
        .name("stamps".into())
        .spawn(move || write_all(writer, &stamps))
        .map_err(|source| ServiceError::Start { what: "thread for stamps", source })?;
    Ok((StampLog { sender: Some(sender), dropped }, StampThread(Some(thread))))
}

impl StampLog {
    /// Passes a stamp on, or drops and counts it.
    pub(crate) fn write(&self, stamp: Stamp) {
        if self.sender.as_ref().is_some_and(|sender| sender.try_send(stamp).is_err()) {
            self.dropped.inc();
        }
    }
}

impl StampThread {
    /// Waits until every stamp is on the disk. All [`StampLog`]s must be gone, or this does not return.
    pub(crate) fn finish(self) -> Result<(), ServiceError> {
        match self.0 {
            Some(thread) => Ok(thread.join().expect("the thread for stamps does not panic")?),
            None => Ok(()),
        }
    }
}

/// Polls for stamps rather than waiting for one: so a worker need not wake this thread and is not delayed.
fn write_all(mut writer: StampWriter, stamps: &Receiver<Stamp>) -> Result<(), RecordError> {
    loop {
        match stamps.try_recv() {
            Ok(stamp) => writer.write(&stamp)?,
            Err(TryRecvError::Empty) => {
                writer.flush()?;
                thread::sleep(LOOK_EVERY);
            }
            Err(TryRecvError::Disconnected) => return writer.flush(),
        }
    }
}
