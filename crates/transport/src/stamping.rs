//! The server's stamps, which a separate thread writes to a file.
//!
//! A handler never waits for the disk: stamps that do not fit into the queue are dropped and counted.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kendall_record::RecordError;
use kendall_record::stamps::{Stamp, StampWriter};

use crate::error::TransportError;

/// The capacity of the queue.
const CAPACITY: usize = 16_384;
/// The longest time that a stamp stays in memory.
const FLUSH_EVERY: Duration = Duration::from_millis(20);

/// The handlers' end of the queue.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    sender: Option<SyncSender<Stamp>>,
    dropped: AtomicU64,
}

/// The thread that writes.
pub(crate) struct Writing(JoinHandle<Result<(), RecordError>>);

impl Stamps {
    /// Opens the file and starts its thread; without a path, stamps are discarded.
    pub(crate) fn open(path: Option<&Path>) -> Result<(Self, Option<Writing>), TransportError> {
        let Some(path) = path else { return Ok((Self::default(), None)) };
        let writer = StampWriter::create(path)?;
        let (sender, stamps) = sync_channel(CAPACITY);
        let thread = thread::Builder::new()
            .name("stamps".into())
            .spawn(move || write_all(writer, &stamps))
            .map_err(|source| TransportError::Start { what: "thread for stamps", source })?;
        Ok((Self { sender: Some(sender), dropped: AtomicU64::new(0) }, Some(Writing(thread))))
    }

    pub(crate) fn put(&self, stamp: Stamp) {
        if self.sender.as_ref().is_some_and(|sender| sender.try_send(stamp).is_err()) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Stamps {
    fn drop(&mut self) {
        match self.dropped.load(Ordering::Relaxed) {
            0 => {}
            dropped => tracing::warn!(dropped, "stamps were dropped: the disk is too slow"),
        }
    }
}

impl Writing {
    /// Waits until every stamp is on the disk. All [`Stamps`] must be gone.
    pub(crate) fn finish(self) -> Result<(), TransportError> {
        Ok(self.0.join().expect("the thread for stamps does not panic")?)
    }
}

fn write_all(mut writer: StampWriter, stamps: &Receiver<Stamp>) -> Result<(), RecordError> {
    loop {
        match stamps.recv_timeout(FLUSH_EVERY) {
            Ok(stamp) => writer.write(&stamp)?,
            Err(RecvTimeoutError::Timeout) => writer.flush()?,
            Err(RecvTimeoutError::Disconnected) => return writer.flush(),
        }
    }
}
